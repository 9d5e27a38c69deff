//! The followers that one source wakes.

use tokio::sync::watch;

#[derive(Debug, Default)]
pub(super) struct Waker {
    sender: watch::Sender<()>,
    /// How many have been added and not been removed.
    followers: usize,
}

impl Waker {
    pub fn add(&mut self) -> watch::Receiver<()> {
        self.followers += 1;
        self.sender.subscribe()
    }

    pub fn remove(&mut self) {
        self.followers = self.followers.saturating_sub(1);
    }

    pub fn is_unused(&self) -> bool {
        self.followers == 0
    }

    pub fn wake(&self) {
        self.sender.send_replace(());
    }
}
