//! Busy loops beside a crowd, at ordinary priority and in the session of whoever gives
//! the orders: where the kernel groups by session, they compete with it and not with
//! the keepers.

use std::process::{Child, Command, Stdio};

pub struct Busy(Vec<Child>);

impl Busy {
    pub fn start(loops: usize) -> std::io::Result<Self> {
        let mut busy = Self(Vec::with_capacity(loops));
        for _ in 0..loops {
            let mut command = Command::new("sh");
            command.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
            busy.0.push(command.spawn()?);
        }
        Ok(busy)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        // Our own children, not reaped yet: the numbers are still theirs.
        for child in &mut self.0 {
            let _ = child.kill();
        }
        for child in &mut self.0 {
            let _ = child.wait();
        }
    }
}
