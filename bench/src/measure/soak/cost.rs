//! What processes cost over a while: processor time and wake-ups, as the kernel counts them.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::proc;

/// The processor time of a process and of all threads that it has had, in steps of 10 ms.
pub fn processor(pid: u32) -> io::Result<Duration> {
    let ticks = proc::ticks(pid).ok_or_else(|| io::Error::other(format!("{pid} is gone")))?;
    Ok(Duration::from_millis(ticks * 10))
}

pub fn descriptors(pid: u32) -> io::Result<usize> {
    Ok(fs::read_dir(format!("/proc/{pid}/fd"))?.count())
}

/// How often the processes of this executable were woken so far, and how many they are.
pub fn wake_ups(exe: &Path) -> (usize, usize) {
    let all = proc::living_of(exe);
    (all.iter().map(|seen| wake_ups_of(seen.pid)).sum(), all.len())
}

/// How often the first thread of a process was woken so far.
pub fn wake_ups_of(pid: u32) -> usize {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|it| it.strip_prefix("voluntary_ctxt_switches:"));
    line.and_then(|count| count.trim().parse().ok()).unwrap_or_default()
}
