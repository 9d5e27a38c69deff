//! Waiting for more to print: what those have in common that follow something.

use crate::fail::complain;
use fullstop::front::while_read;
use std::io;
use std::os::fd::AsFd as _;

/// Does this until stdout has no reader any more. Nothing, if it was not done by then.
pub async fn until_unread<T>(follow: impl Future<Output = T>) -> Option<T> {
    while_read(io::stdout().as_fd(), follow).await
}

/// Says once that it is looked again and again, for want of something that wakes.
#[derive(Default)]
pub struct Looking {
    is_told: bool,
}

impl Looking {
    pub fn tell(&mut self, what: &str, why: Option<String>) {
        if let Some(why) = why.filter(|_| !self.is_told) {
            complain(format!("looking for {what} four times a second: {why}"));
            self.is_told = true;
        }
    }
}
