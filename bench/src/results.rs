//! What was measured. Times are kept in nanoseconds; people are shown ratios.

use serde::{Deserialize, Serialize};

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Results {
    pub machine: Machine,
    pub spawn: Vec<Spawn>,
    pub stop: Vec<Stop>,
    pub memory: Vec<Memory>,
    pub survivors: Vec<Survivors>,
    /// What could not be measured, and why.
    pub failures: Vec<Failure>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Machine {
    pub kernel: String,
    pub cpus: usize,
    /// Whether a cgroup v2 could be made for the bench.
    pub cgroup: bool,
    /// How busy the machine was with other things, just before.
    pub busy_percent: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Failure {
    pub contender: String,
    pub part: String,
    pub why: String,
}

/// Many measurements of one thing.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Sample {
    pub rounds: usize,
    pub p10_ns: u64,
    pub median_ns: u64,
    pub p90_ns: u64,
}

impl Sample {
    pub fn of(mut times: Vec<u64>) -> Option<Self> {
        times.sort_unstable();
        let last = times.len().checked_sub(1)?;
        let at = |percent: usize| times[last * percent / 100];
        Some(Self { rounds: times.len(), p10_ns: at(10), median_ns: at(50), p90_ns: at(90) })
    }

    #[expect(clippy::cast_precision_loss, reason = "durations far below 2^52 ns")]
    pub fn ratio_to(&self, other: &Self) -> f64 {
        self.median_ns as f64 / other.median_ns as f64
    }

    #[expect(clippy::cast_precision_loss, reason = "durations far below 2^52 ns")]
    pub fn median_ms(&self) -> f64 {
        self.median_ns as f64 / 1e6
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SpawnKind {
    /// From the order to spawn until the command's first instruction.
    Exec,
    /// From the order to spawn until a tiny static `true` is known to be over.
    Exit,
    /// The same with the system's own `/bin/true`.
    ExitSystem,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Spawn {
    pub contender: String,
    pub kind: SpawnKind,
    pub sample: Sample,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Stop {
    pub contender: String,
    pub size: u32,
    /// Stopped at the instant the tree stood, not a little later.
    pub young: bool,
    pub sample: Sample,
    /// The most processes of the tree that were still alive when the contender
    /// had returned, over all rounds.
    pub alive_at_return: usize,
}

/// The raw floors: `cgroup.kill`, then `populated 0`, watched in several ways.
/// The fastest of them is the floor that ratios are taken against.
pub const FLOORS: [&str; 4] =
    ["floor (spin)", "floor (nap)", "floor (poll)", "floor (leader, nap)"];
/// The floor in a program of its own, from SIGTERM to its exit, as fullstop is
/// measured: what waking up and exiting cost on top.
pub const FLOOR_PROGRAM: &str = "floor, as a program";
/// The floor and the reaping of every member: what `no-children` proves on top.
pub const FLOOR_REAPED: &str = "floor, reaped";

#[derive(Debug, Serialize, Deserialize)]
pub struct Memory {
    pub contender: String,
    pub runs: usize,
    /// Processes of the contender itself, the commands not counted.
    pub processes: usize,
    pub pss_kib_per_run: f64,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Survivors {
    pub contender: String,
    pub animal: String,
    /// Living members of the tree when the stop was ordered.
    pub before: usize,
    /// Living members one second after the contender returned, or after its
    /// time was up.
    pub survivors: usize,
    pub returned: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_of_nothing_is_none() {
        assert!(Sample::of(Vec::new()).is_none());
    }

    #[test]
    fn percentiles_come_from_sorted_times() {
        let sample = Sample::of((0..=100).rev().collect()).unwrap();
        assert_eq!((sample.p10_ns, sample.median_ns, sample.p90_ns), (10, 50, 90));
    }
}
