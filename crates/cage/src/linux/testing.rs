//! What several tests need: a terminal, a way to wait, and a way to be alone.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::process::Command;

/// A new terminal: its master, and the side that a command gets.
pub fn terminal() -> (OwnedFd, OwnedFd) {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let master = open("/dev/ptmx", flags, Mode::empty()).expect("a terminal");
    let locked: libc::c_int = 0;
    // SAFETY: reads one number, and opens a descriptor that is nobody's yet.
    let slave = unsafe {
        libc::ioctl(master.as_raw_fd(), libc::TIOCSPTLCK, &raw const locked);
        let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
        libc::ioctl(master.as_raw_fd(), libc::TIOCGPTPEER, flags)
    };
    assert!(slave >= 0, "{}", std::io::Error::last_os_error());
    // SAFETY: the kernel has just opened it for us.
    (master, unsafe { OwnedFd::from_raw_fd(slave) })
}

/// Waits until there is something to read, or an end; not for ever.
pub fn is_ready(fd: impl AsFd) -> bool {
    const LONG: Timespec = Timespec { tv_sec: 20, tv_nsec: 0 };
    let mut fds = [PollFd::new(&fd, PollFlags::IN)];
    poll(&mut fds, Some(&LONG)).expect("poll") > 0
}

/// All that comes until the end. A terminal whose last user has left reads as an
/// error.
pub fn read_all(fd: impl AsFd) -> String {
    let (mut all, mut buffer) = (Vec::new(), [0; 4096]);
    while is_ready(&fd) {
        match rustix::io::read(&fd, &mut buffer) {
            Ok(0) | Err(_) => return String::from_utf8(all).expect("text"),
            Ok(length) => all.extend(&buffer[..length]),
        }
    }
    panic!("no end of it: {}", String::from_utf8_lossy(&all));
}

/// This test once more, by its full name, in a process of its own, where it finds
/// the variable `ALONE` set.
pub fn alone(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("a path"));
    command.args(["--exact", test, "--nocapture"]).env(ALONE, "1");
    command
}

/// Whether this test was done by a process of its own; else we are that process.
pub fn is_done_alone(test: &str) -> bool {
    if is_alone() {
        return false;
    }
    let done = alone(test).output().expect("a process");
    let said = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
    assert!(done.status.success() && said.contains("1 passed"), "{said}");
    true
}

pub fn is_alone() -> bool {
    std::env::var_os(ALONE).is_some()
}

const ALONE: &str = "FULLSTOP_TEST_ALONE";
