//! Threads of this library's own.

use fullstop_cage::linux::hold_all;
use std::io;
use std::thread::Builder;

/// Starts a thread that hears no signal: a signal to this process is for its own threads,
/// which may hold it back, to read it one by one.
pub(crate) fn start(thread: Builder, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    // The thread inherits the mask, so that no signal can be quicker.
    let mask = hold_all();
    let started = thread.spawn(work);
    mask.restore();
    started.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_thread_of_ours_hears_no_signal_that_is_sent() {
        let held = || {
            let status = std::fs::read_to_string("/proc/thread-self/status").expect("status");
            let line =
                status.lines().find_map(|line| line.strip_prefix("SigBlk:")).expect("a mask");
            u64::from_str_radix(line.trim(), 16).expect("a number")
        };
        let before = held();
        let (tell, told) = channel();
        start(Builder::new(), move || tell.send(held()).expect("heard")).expect("a thread");
        let theirs = told.recv().expect("told");
        for (name, number) in [("HUP", 1), ("INT", 2), ("TERM", 15), ("WINCH", 28), ("TSTP", 20)] {
            assert!(theirs & (1 << (number - 1)) != 0, "{name} is heard: {theirs:x}");
        }
        assert!(theirs & (1 << (11 - 1)) == 0, "a fault of its own is held back");
        assert_eq!(held(), before, "the mask of whoever has started it");
    }
}
