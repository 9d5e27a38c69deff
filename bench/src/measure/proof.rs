//! The instant of a proof, seen from outside: the cgroup of a run is removed, which the
//! kernel refuses while anybody is in it.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use fullstop_bench::clock::now_ns;
use rustix::event::{PollFd, PollFlags};
use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};

/// Whether a cgroup below this one was removed.
pub struct Proof(OwnedFd);

impl Proof {
    pub fn watch(cgroup: &Path) -> io::Result<Self> {
        let fd = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        add_watch(&fd, cgroup, WatchFlags::DELETE | WatchFlags::ONLYDIR)?;
        Ok(Self(fd))
    }

    pub fn interest(&self) -> PollFd<'_> {
        PollFd::new(&self.0, PollFlags::IN)
    }

    /// Now, if it was removed since this was last asked.
    pub fn seen(&self) -> Option<u64> {
        let now = now_ns();
        let mut any = None;
        while rustix::io::read(&self.0, &mut [0; 4096]).is_ok_and(|length| length > 0) {
            any = Some(now);
        }
        any
    }
}
