//! What was measured. Times are kept in nanoseconds; people are shown ratios.

use serde::{Deserialize, Serialize};

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Results {
    pub machine: Machine,
    pub spawn: Vec<Spawn>,
    pub stop: Vec<Stop>,
    pub memory: Vec<Memory>,
    pub survivors: Vec<Survivors>,
    pub records: Records,
    pub output: Output,
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

/// Whose row tells when the proof was there; its own tells when it had returned.
pub fn proven(contender: &str) -> String {
    format!("{contender}, proven")
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

/// What records cost, and whether they are found again.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Records {
    /// Where they were: the type of the filesystem.
    pub filesystem: String,
    pub recorded: Vec<Recorded>,
    pub crowd: Option<Crowd>,
    pub sweep: Option<Sweep>,
}

/// A run of `true`, from the order to spawn until it is known to be over.
#[derive(Debug, Serialize, Deserialize)]
pub struct Recorded {
    pub contender: String,
    /// How many ended runs stood in the directory before.
    pub ended: usize,
    pub kind: SpawnKind,
    pub sample: Sample,
}

/// Many live runs at once.
#[derive(Debug, Serialize, Deserialize)]
pub struct Crowd {
    pub runs: usize,
    pub ps: Sample,
    /// From the order `stop --all` until it had returned.
    pub stop_ns: u64,
    /// Its exit status, 0 when all of them were proven to be over.
    pub status: i32,
    /// Runs without a report that says ended, with a proof.
    pub unproven: usize,
    /// Commands alive at the instant it returned.
    pub alive_at_return: usize,
    /// A little later: any process, name in `live/`, cgroup of theirs.
    pub processes_left: usize,
    pub listed_left: usize,
    pub cgroups_left: usize,
    pub memory_kib: Levels,
    pub descriptors: Levels,
}

impl Crowd {
    /// Whatever should not be there after `stop --all`.
    pub fn left(&self) -> usize {
        usize::from(self.status != 0)
            + self.unproven
            + self.alive_at_return
            + self.processes_left
            + self.listed_left
            + self.cgroups_left
    }
}

/// Something of the whole machine: before the runs, with them, after them.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Levels {
    pub before: u64,
    pub during: u64,
    pub after: u64,
}

impl Levels {
    /// How much of what they had taken was not given back.
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    pub fn kept_percent(&self) -> Option<f64> {
        let taken = self.during.checked_sub(self.before).filter(|&taken| taken > 0)?;
        Some(self.after.saturating_sub(self.before) as f64 * 100.0 / taken as f64)
    }
}

/// A lost run without a cgroup, searched for among many processes.
#[derive(Debug, Serialize, Deserialize)]
pub struct Sweep {
    pub processes: usize,
    pub dry_run: Sample,
    /// `stat` and `environ` of every process, read and thrown away.
    pub raw_read: Sample,
    /// The sweep that ended it.
    pub sweep_ns: u64,
    /// Commands of the lost run that were alive after it, and names in `live/`.
    pub left: usize,
}

/// What capturing and showing output costs.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Output {
    /// Where the output went: the type of the filesystem.
    pub filesystem: String,
    /// How much a flood was.
    pub bytes: u64,
    pub captures: Vec<Capture>,
    pub keys: Vec<Keys>,
    /// Of idle runs whose output is captured.
    pub memory: Vec<Memory>,
}

/// Floods, captured into a file.
#[derive(Debug, Serialize, Deserialize)]
pub struct Capture {
    pub capturer: String,
    /// From the flood's first instruction until its last byte was in the file.
    pub flow: Sample,
    /// From the order until the flood was known to be over, and all was in the file.
    pub whole: Sample,
    /// Processor time of everything but the flood, which needs a cgroup to be known.
    pub cpu: Option<Sample>,
}

/// The key that is typed into a terminal, until the command's answer is seen.
#[derive(Debug, Serialize, Deserialize)]
pub struct Keys {
    pub way: String,
    pub sample: Sample,
}

/// A terminal with nothing in between.
pub const BARE: &str = "a bare pty";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_of_nothing_is_none() {
        assert!(Sample::of(Vec::new()).is_none());
    }

    #[test]
    fn what_is_kept_is_measured_by_what_was_taken() {
        let kept = |before, during, after| Levels { before, during, after }.kept_percent();
        assert_eq!(kept(100, 300, 110), Some(5.0));
        assert_eq!(kept(100, 300, 90), Some(0.0));
        assert_eq!(kept(100, 100, 100), None);
    }

    #[test]
    fn percentiles_come_from_sorted_times() {
        let sample = Sample::of((0..=100).rev().collect()).unwrap();
        assert_eq!((sample.p10_ns, sample.median_ns, sample.p90_ns), (10, 50, 90));
    }
}
