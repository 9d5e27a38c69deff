//! The processes of this pid namespace, as `/proc` shows them.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

pub struct ListedProcess {
    pub pid: u32,
    /// None for a process that is gone already or that we may not look into.
    pub exe: Option<PathBuf>,
}

/// Every living process but process 1 and ourselves. A zombie is not alive,
/// unless it still has threads.
pub fn living() -> Vec<ListedProcess> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|&pid| pid > 1 && pid != std::process::id())
        .filter(|&pid| alive(pid))
        .map(|pid| ListedProcess { pid, exe: fs::read_link(format!("/proc/{pid}/exe")).ok() })
        .collect()
}

pub fn living_of(exe: &Path) -> Vec<ListedProcess> {
    let mut seen = living();
    seen.retain(|process| process.exe.as_deref() == Some(exe));
    seen
}

fn alive(pid: u32) -> bool {
    let Some(stat) = stat(pid) else {
        return false;
    };
    match stat[STATE].as_str() {
        "X" => false,
        "Z" => stat.get(THREADS).and_then(|n| n.parse::<u32>().ok()).is_some_and(|n| n > 1),
        _ => true,
    }
}

/// One letter; None for a process that is dead, whether or not it was reaped.
pub fn state(pid: u32) -> Option<char> {
    if !alive(pid) {
        return None;
    }
    stat(pid)?[STATE].chars().next()
}

/// When it began, in clock ticks after boot.
pub fn start_ticks(pid: u32) -> Option<u64> {
    stat(pid)?.get(START)?.parse().ok()
}

/// How much of a processor it has had, in clock ticks.
pub fn ticks(pid: u32) -> Option<u64> {
    let stat = stat(pid)?;
    stat[USER..=SYSTEM].iter().map(|ticks| ticks.parse::<u64>().ok()).sum()
}

/// Where these stand among the fields after the command name.
const STATE: usize = 0;
const USER: usize = 11;
const SYSTEM: usize = 12;
const THREADS: usize = 17;
const START: usize = 19;

/// The fields of `stat` after the command name, at least one.
fn stat(pid: u32) -> Option<Vec<String>> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command name is in parentheses and may hold anything.
    let (_, after) = stat.rsplit_once(") ")?;
    Some(after.trim_end().split(' ').map(str::to_owned).collect())
}

/// What this process costs in memory, shared pages counted by share.
pub fn pss_kib(pid: u32) -> Option<u64> {
    fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))
        .ok()?
        .lines()
        .find_map(|line| line.strip_prefix("Pss:"))?
        .trim()
        .strip_suffix("kB")?
        .trim()
        .parse()
        .ok()
}

/// Kills a process of our own namespace that the bench has started.
pub fn kill(process: &ListedProcess) {
    let Some(pid) = i32::try_from(process.pid).ok().and_then(Pid::from_raw) else {
        return;
    };
    let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else {
        return;
    };
    // The number may have changed hands before the pidfd was opened.
    if fs::read_link(format!("/proc/{}/exe", process.pid)).ok() == process.exe {
        let _ = pidfd_send_signal(&pidfd, Signal::KILL);
    }
}

/// How much of all processors was in use over a while in which we do nothing.
pub fn busy_percent(watched: Duration) -> io::Result<u64> {
    let before = Ticks::now()?;
    std::thread::sleep(watched);
    let after = Ticks::now()?;
    let all = (after.all - before.all).max(1);
    Ok(100 - (after.idle - before.idle).min(all) * 100 / all)
}

struct Ticks {
    all: u64,
    idle: u64,
}

impl Ticks {
    fn now() -> io::Result<Self> {
        let stat = fs::read_to_string("/proc/stat")?;
        let first = stat.lines().next().unwrap_or_default();
        let ticks: Vec<u64> = first.split_whitespace().filter_map(|n| n.parse().ok()).collect();
        // user nice system idle iowait …: waiting for a disk leaves the processor free.
        Ok(Self { all: ticks.iter().sum(), idle: ticks.iter().skip(3).take(2).sum() })
    }
}
