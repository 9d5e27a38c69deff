//! Process groups and sessions as plain numbers. One that was founded outside our
//! pid namespace reads as 0, which rustix's non-zero `Pid` cannot hold.

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
