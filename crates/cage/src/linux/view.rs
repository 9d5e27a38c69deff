//! Processes as they are shown to people. Not for signals.

use super::cgroup::Cgroup;
use super::descendants::{self, Bound};
use super::pinned_process::inode;
use super::procfs::{self, Stat, stat};
use fullstop_core::identity::Identity;
use std::path::Path;
use std::time::Duration;

/// One living process.
#[derive(Clone, Debug)]
pub struct Process(Stat);

impl Process {
    pub fn pid(&self) -> i32 {
        self.0.pid
    }

    pub fn ppid(&self) -> i32 {
        self.0.ppid
    }

    pub fn state(&self) -> char {
        self.0.state
    }

    /// How long it has lived.
    pub fn age(&self) -> Duration {
        self.0.age()
    }

    /// How long it was on a processor.
    pub fn cpu(&self) -> Duration {
        self.0.cpu()
    }

    /// What it holds in memory, in bytes.
    pub fn memory(&self) -> u64 {
        self.0.memory()
    }

    /// Its command line, fit to be shown.
    pub fn command(&self) -> String {
        procfs::command(&self.0)
    }
}

/// The living in a cgroup.
pub fn inside(cgroup: &Path) -> Vec<Process> {
    let pids = Cgroup::adopt(cgroup).map(|cgroup| cgroup.procs()).unwrap_or_default();
    pids.into_iter().filter_map(stat).filter(Stat::is_alive).map(Process).collect()
}

/// The living below a process that was written down; nobody, if its pid has passed on.
pub fn below(known: &Identity) -> Vec<Process> {
    let is_same = |stat: &Stat| stat.start_ticks == known.start_ticks;
    let found = stat(known.pid).filter(|stat| is_same(stat) && inode(known.pid) == known.inode);
    let Some(found) = found else { return Vec::new() };
    let mut family = descendants::family_of(found, Bound::NONE);
    family.retain(|stat| stat.pid != known.pid && stat.is_alive());
    family.into_iter().map(Process).collect()
}
