//! One process as `/proc` shows it, and the census of the whole world.

use std::fmt;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::{Context, Outcome};

/// What `/proc/PID` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    pub pid: i32,
    pub ppid: i32,
    pub pgid: i32,
    pub sid: i32,
    pub uid: u32,
    pub state: char,
    pub threads: u32,
    pub start_ticks: u64,
    /// The short name, at most fifteen characters.
    pub comm: String,
    /// The command line, words separated by spaces.
    pub command: String,
}

impl Process {
    /// Reads one process; `None` when there is no such process (any more).
    pub fn read(pid: i32) -> Option<Self> {
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        let mut process = parse_stat(&String::from_utf8_lossy(&stat))?;
        process.uid = fs::metadata(format!("/proc/{pid}")).map_or(u32::MAX, |m| m.uid());
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line);
        line.trim_end_matches('\0').replace('\0', " ").clone_into(&mut process.command);
        Some(process)
    }

    /// Every process of this pid namespace, zombies included, in the order of
    /// their ids. Ids only grow in a young namespace and the kernel lists them
    /// upwards, so a child born during the scan is behind its parent and seen.
    pub fn all() -> Vec<Self> {
        let Ok(entries) = fs::read_dir("/proc") else {
            return Vec::new();
        };
        let mut pids: Vec<i32> = Vec::new();
        for entry in entries.flatten() {
            pids.extend(entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()));
        }
        pids.sort_unstable();
        pids.into_iter().filter_map(Self::read).collect()
    }

    /// A zombie is dead, unless it is an exited main thread whose other
    /// threads go on.
    pub fn alive(&self) -> bool {
        match self.state {
            'X' | 'x' => false,
            'Z' => self.threads > 1,
            _ => true,
        }
    }

    /// Still the same process, and not another one with its id?
    pub fn still_there(&self) -> Option<Self> {
        Self::read(self.pid).filter(|now| now.start_ticks == self.start_ticks)
    }

    /// Where in the kernel it waits, if that can be known.
    pub fn wchan(&self) -> String {
        fs::read_to_string(format!("/proc/{}/wchan", self.pid)).unwrap_or_default()
    }
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:>6} ppid {:<5} pgid {:<5} sid {:<5} uid {:<6} {} threads {} {:<16} {:<28} {}",
            self.pid,
            self.ppid,
            self.pgid,
            self.sid,
            self.uid,
            self.state,
            self.threads,
            self.comm,
            self.wchan(),
            self.command,
        )
    }
}

/// A handle that never means another process. The caller must know that the
/// process is not yet reaped (it is a child of ours) or check afterwards.
pub fn pidfd(pid: i32) -> Outcome<OwnedFd> {
    let pid = Pid::from_raw(pid).context("not a process id")?;
    pidfd_open(pid, PidfdFlags::empty()).context(format!("pidfd of {}", pid.as_raw_nonzero()))
}

/// Sends one signal to one process.
pub fn send_signal(pid: i32, signal: Signal) -> Outcome {
    let fd = pidfd(pid)?;
    pidfd_send_signal(&fd, signal).context(format!("signal {} to {pid}", signal.as_raw()))
}

/// The name may hold spaces and brackets: it ends at the *last* bracket.
fn parse_stat(stat: &str) -> Option<Process> {
    let (pid, rest) = stat.split_once(" (")?;
    let (comm, rest) = rest.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |i: usize| fields.get(i)?.parse::<i32>().ok();
    Some(Process {
        pid: pid.parse().ok()?,
        comm: comm.to_owned(),
        state: fields.first()?.chars().next()?,
        ppid: number(1)?,
        pgid: number(2)?,
        sid: number(3)?,
        threads: fields.get(17)?.parse().ok()?,
        start_ticks: fields.get(19)?.parse().ok()?,
        uid: u32::MAX,
        command: String::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAIL: &str = "1 7 8 0 -1 0 0 0 0 0 0 0 0 0 20 0 3 0 4711 0 0";

    #[test]
    fn a_name_may_hold_anything() {
        let process = parse_stat(&format!("42 (a) Z (b) R {TAIL}")).unwrap();
        assert_eq!(process.comm, "a) Z (b");
        assert_eq!((process.pid, process.ppid, process.pgid, process.sid), (42, 1, 7, 8));
        assert_eq!((process.threads, process.start_ticks), (3, 4711));
    }

    #[test]
    fn a_zombie_with_threads_lives() {
        let zombie = parse_stat(&format!("42 (z) Z {TAIL}")).unwrap();
        assert!(zombie.alive());
        let zombie = parse_stat(&format!("42 (z) Z {}", TAIL.replace(" 3 0", " 1 0"))).unwrap();
        assert!(!zombie.alive());
    }

    #[test]
    fn we_see_ourselves() {
        let me = i32::try_from(std::process::id()).unwrap();
        let found = Process::all().into_iter().find(|p| p.pid == me).unwrap();
        assert!(found.alive());
        assert!(found.still_there().is_some());
    }
}
