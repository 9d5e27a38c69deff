//! Process groups and sessions as plain numbers. One that was founded outside our
//! pid namespace reads as 0, which rustix's non-zero `Pid` cannot hold.

use std::io;

pub fn own_group() -> i32 {
    // SAFETY: only asks.
    unsafe { libc::getpgrp() }
}

pub fn own_session() -> i32 {
    // SAFETY: only asks.
    unsafe { libc::getsid(0) }
}

/// The group of another process; nothing if there is no such process.
pub fn group_of(pid: i32) -> Option<i32> {
    // SAFETY: only asks.
    let group = unsafe { libc::getpgid(pid) };
    (group >= 0).then_some(group)
}

/// Whether a process has founded its session, which it then leads for as long as it lives.
/// Where the kernel does not say, it may have.
pub fn may_lead_session(pid: i32) -> bool {
    // SAFETY: only asks.
    let session = unsafe { libc::getsid(pid) };
    session == pid || session < 0 && io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leader_is_told_from_its_children_and_from_the_dead() {
        let child = std::process::Command::new("sleep").arg("60").spawn();
        let mut child = child.expect("a child");
        let pid = child.id().cast_signed();
        assert!(!may_lead_session(pid));
        child.kill().and_then(|()| child.wait()).expect("ended");
        assert!(!may_lead_session(pid), "it is gone");
        // It may have been founded outside our pid namespace, and its founder may be gone.
        let session = own_session();
        let is_there = std::path::Path::new(&format!("/proc/{session}")).exists();
        assert!(session == 0 || may_lead_session(session) == is_there);
    }
}
