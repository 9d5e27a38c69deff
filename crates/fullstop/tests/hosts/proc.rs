//! The processes of this pid namespace, as `/proc` shows them.

use std::error::Error;
use std::process::Command;

/// One living process, which is not taken for another one of the same pid.
#[derive(Clone, Debug, PartialEq)]
pub struct Process {
    pub pid: i32,
    start_ticks: String,
}

impl Process {
    /// Whoever lives under this pid. A zombie does not.
    pub fn of(pid: i32) -> Option<Process> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // Behind the name, which may hold anything: the state first, the start time as the 20th.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let is_dead = matches!(fields.next()?, "Z" | "X");
        let start_ticks = fields.nth(18)?.to_owned();
        (!is_dead).then_some(Process { pid, start_ticks })
    }

    pub fn lives(&self) -> bool {
        Process::of(self.pid).as_ref() == Some(self)
    }

    pub fn is_stopped(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid)).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
    }

    pub fn all() -> Vec<Process> {
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter_map(Process::of).collect()
    }

    /// Windows, guards, keepers, and those that are about to be.
    pub fn all_of_this_program() -> Vec<Process> {
        let exe = |pid: &str| std::fs::read_link(format!("/proc/{pid}/exe")).ok();
        let own = exe("self");
        let mut all = Process::all();
        all.retain(|one| exe(&one.pid.to_string()) == own);
        all
    }
}

/// Sends a signal to processes of this closed world, in this order.
pub fn kill(signal: &str, processes: &[Process]) -> Result<(), Box<dyn Error>> {
    let pids = processes.iter().filter(|one| one.pid > 1).map(|one| one.pid.to_string());
    let output = Command::new("kill").arg(signal).args(pids).output()?;
    if output.status.success() { Ok(()) } else { Err("not all of them were there".into()) }
}
