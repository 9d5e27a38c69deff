//! One errand in a pid namespace of its own: many live runs, listed by `ps` and
//! ended by `stop --all`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fullstop_bench::clock::now_ns;
use fullstop_bench::results::{Crowd, Levels, Sample};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::level::Level;
use crate::{Outcome, proc};

/// Started side by side, so that starting them does not take all day.
const STARTERS: usize = 4;
/// Started and stopped before anything is counted: caches are filled by then.
const WARM_UP: usize = 8;
/// Every command ends itself after this many seconds.
const LIFE: &str = "600";
/// Keepers and guards go right after they have told that the run is over.
const GOODBYE: Duration = Duration::from_secs(5);

#[derive(Serialize, Deserialize)]
pub struct Errand {
    pub fullstop: PathBuf,
    pub state: PathBuf,
    pub runs: usize,
    pub rounds: usize,
    pub answer: PathBuf,
}

pub fn crowd(errand: &Path) -> Outcome<()> {
    let errand: Errand = serde_json::from_slice(&std::fs::read(errand)?)?;
    errand.start(WARM_UP)?;
    errand.fullstop(&["stop", "--all", "--quiet"])?;
    goodbye();
    let before = Level::now()?;

    errand.start(errand.runs)?;
    let during = Level::now()?;
    let members = errand.members()?;
    let ps = errand.ps()?;

    let start = now_ns();
    let stop = errand.fullstop(&["stop", "--all", "--json"])?;
    let stop_ns = now_ns() - start;
    let alive_at_return = members.iter().filter(|member| member.is_alive()).count();
    goodbye();
    let after = Level::back_to(before)?;
    let answer = Crowd {
        runs: errand.runs,
        ps,
        stop_ns,
        status: stop.status.code().unwrap_or(-1),
        unproven: errand.runs.saturating_sub(proven(&stop.stdout)),
        alive_at_return,
        processes_left: proc::living().len(),
        listed_left: errand.listed()?.len(),
        cgroups_left: members.iter().filter(|member| member.has_cgroup()).count(),
        memory_kib: Levels {
            before: before.memory_kib,
            during: during.memory_kib,
            after: after.memory_kib,
        },
        descriptors: Levels {
            before: before.descriptors,
            during: during.descriptors,
            after: after.descriptors,
        },
    };
    std::fs::write(&errand.answer, serde_json::to_vec(&answer)?)?;
    Ok(())
}

impl Errand {
    fn fullstop(&self, words: &[&str]) -> std::io::Result<Output> {
        Command::new(&self.fullstop)
            .args(words)
            .env("FULLSTOP_DIR", &self.state)
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
    }

    fn start(&self, count: usize) -> Outcome<()> {
        let next = AtomicUsize::new(0);
        let start = || -> std::io::Result<()> {
            while next.fetch_add(1, Ordering::Relaxed) < count {
                let status = self.fullstop(&["start", "--", "sleep", LIFE])?.status;
                if !status.success() {
                    let why = format!("`fullstop start` ended with {status}");
                    return Err(std::io::Error::other(why));
                }
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let starters = [(); STARTERS].map(|()| scope.spawn(start));
            starters.into_iter().try_for_each(|starter| {
                starter.join().unwrap_or_else(|_| Err(std::io::Error::other("a starter panicked")))
            })
        })?;
        let listed = self.listed()?.len();
        if listed != count {
            return Err(format!("{count} runs were started, {listed} are listed").into());
        }
        Ok(())
    }

    fn listed(&self) -> Outcome<Vec<PathBuf>> {
        let entries = std::fs::read_dir(self.state.join("live"))?;
        Ok(entries
            .map(|entry| entry.map(|entry| self.state.join("runs").join(entry.file_name())))
            .collect::<Result<_, _>>()?)
    }

    fn members(&self) -> Outcome<Vec<Member>> {
        let member =
            |run: &PathBuf| Ok(serde_json::from_slice(&std::fs::read(run.join("record.json"))?)?);
        self.listed()?.iter().map(member).collect()
    }

    fn ps(&self) -> Outcome<Sample> {
        let mut times = Vec::new();
        // The first one warms up and is not counted.
        for round in 0..=self.rounds {
            let start = now_ns();
            let output = self.fullstop(&["ps"])?;
            let end = now_ns();
            let lines =
                output.stdout.split(|&byte| byte == b'\n').filter(|l| !l.is_empty()).count();
            // One line is the head.
            if !output.status.success() || lines != self.runs + 1 {
                return Err(format!("`ps` of {} runs showed {lines} lines", self.runs).into());
            }
            if round > 0 {
                times.push(end - start);
            }
        }
        Sample::of(times).ok_or_else(|| "`ps` was not measured".into())
    }
}

/// What a record says of a run whose command has no children.
#[derive(Deserialize)]
struct Member {
    leader: Leader,
    cgroup: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Leader {
    pid: u32,
    start_ticks: u64,
}

impl Member {
    /// By its number and its birth. Not by its program: a keeper on its way out
    /// has none any more, and would be taken for a command.
    fn is_alive(&self) -> bool {
        let Leader { pid, start_ticks } = self.leader;
        proc::state(pid).is_some() && proc::start_ticks(pid) == Some(start_ticks)
    }

    fn has_cgroup(&self) -> bool {
        self.cgroup.as_ref().is_some_and(|dir| dir.exists())
    }
}

fn goodbye() {
    let deadline = Instant::now() + GOODBYE;
    while !proc::living().is_empty() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// How many reports say that a run is over, and why we may believe it.
fn proven(reports: &[u8]) -> usize {
    serde_json::Deserializer::from_slice(reports)
        .into_iter::<Value>()
        .flatten()
        .filter(|report| report["state"] == "ended" && !report["proof"].is_null())
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_without_a_proof_does_not_count() {
        let reports = br#"{"state":"ended","proof":"cgroup-empty"}
            {"state":"ended","proof":null} {"state":"stuck","proof":null}"#;
        assert_eq!(proven(reports), 1);
    }
}
