//! One job in a pid namespace of its own: many live runs, listed by `ps` and
//! ended by `stop --all`.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fullstop_bench::clock::now_ns;
use fullstop_bench::results::{Crowd, Levels};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::client::{Client, side_by_side};
use crate::level::Level;
use crate::{Outcome, proc};

/// Started and stopped before anything is counted: caches are filled by then.
const WARM_UP: usize = 8;
/// Every command ends itself after this many seconds.
const LIFE: &str = "600";
/// Keepers and guards go right after they have told that the run is over.
const GOODBYE: Duration = Duration::from_secs(5);

#[derive(Serialize, Deserialize)]
pub struct Job {
    pub client: Client,
    pub runs: usize,
    pub rounds: usize,
    pub answer: PathBuf,
}

pub fn crowd(job: &Path) -> Outcome<()> {
    let job: Job = serde_json::from_slice(&std::fs::read(job)?)?;
    job.start(WARM_UP)?;
    job.client.output(&["stop", "--all", "--quiet"])?;
    goodbye();
    let before = Level::now()?;

    job.start(job.runs)?;
    let during = Level::now()?;
    let members = job.members()?;
    let ps = job.client.ps(job.runs, job.rounds)?;

    let start = now_ns();
    let stop = job.client.output(&["stop", "--all", "--json"])?;
    let stop_ns = now_ns() - start;
    let alive_at_return = members.iter().filter(|member| member.is_alive()).count();
    goodbye();
    let after = Level::back_to(before)?;
    let answer = Crowd {
        runs: job.runs,
        ps,
        stop_ns,
        status: stop.status.code().unwrap_or(-1),
        unproven: job.runs.saturating_sub(proven(&stop.stdout)),
        alive_at_return,
        processes_left: proc::living().len(),
        listed_left: job.client.listed()?.len(),
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
    std::fs::write(&job.answer, serde_json::to_vec(&answer)?)?;
    Ok(())
}

impl Job {
    fn start(&self, count: usize) -> Outcome<()> {
        let words = ["start", "--", "sleep", LIFE];
        for output in side_by_side(count, |_| self.client.output(&words))? {
            let status = output?.status;
            if !status.success() {
                return Err(format!("`fullstop start` ended with {status}").into());
            }
        }
        let listed = self.client.listed()?.len();
        if listed != count {
            return Err(format!("{count} runs were started, {listed} are listed").into());
        }
        Ok(())
    }

    fn members(&self) -> Outcome<Vec<Member>> {
        let member =
            |run: &PathBuf| Ok(serde_json::from_slice(&std::fs::read(run.join("record.json"))?)?);
        self.client.listed()?.iter().map(member).collect()
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

/// Waits until nobody is left, or for a while.
pub fn goodbye() {
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
