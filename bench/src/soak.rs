//! What `cargo xtask soak` and the measuring program say to each other: which
//! scenario is played with how many, and the figures that came of it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scenario {
    Crowd,
    BusyLibrary,
    Growth,
    Followers,
    Watched,
    Windows,
    Ticker,
}

impl Scenario {
    pub const ALL: [Self; 7] = [
        Self::Crowd,
        Self::BusyLibrary,
        Self::Growth,
        Self::Followers,
        Self::Watched,
        Self::Windows,
        Self::Ticker,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Crowd => "crowd",
            Self::BusyLibrary => "busy-library",
            Self::Growth => "growth",
            Self::Followers => "followers",
            Self::Watched => "watched",
            Self::Windows => "windows",
            Self::Ticker => "ticker",
        }
    }

    pub fn about(self) -> &'static str {
        match self {
            Self::Crowd => "many agents that save their work, ended by one `stop --all`",
            Self::BusyLibrary => "the same from an embedding program, beside many busy loops",
            Self::Growth => "a crowd, and one five times as large: what grows with it",
            Self::Followers => "silent runs, each log followed by one program",
            Self::Watched => "idle runs, all watched: a minute in which nothing happens",
            Self::Windows => {
                "a window that is killed with its guards and keepers beside a living one"
            }
            Self::Ticker => "a ticker of 1 ms on the thread that starts and stops runs",
        }
    }

    /// How many runs, or rounds of windows, unless told otherwise.
    pub fn runs(self) -> usize {
        match self {
            Self::Crowd | Self::Followers | Self::Ticker => 1000,
            Self::BusyLibrary => 300,
            Self::Windows => 200,
            Self::Growth | Self::Watched => 5000,
        }
    }

    /// How many busy loops stand beside them, unless told otherwise.
    pub fn busy(self) -> usize {
        match self {
            Self::BusyLibrary => 200,
            _ => 0,
        }
    }
}

/// The agents' ladder: patience enough for every one of them to save its work, also
/// where a core is hard to get.
pub const LADDER: &str = "term@leader:30s,kill";
/// A stop returns within its ladder and five seconds more.
pub const STOP_SECONDS: f64 = 35.0;

/// One scenario to be played.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Job {
    pub scenario: Scenario,
    pub runs: usize,
    pub busy: usize,
    pub fullstop: PathBuf,
    /// The program that embeds the library.
    pub host: PathBuf,
    /// One that follows the logs of all runs.
    pub follower: PathBuf,
    /// One window of an application.
    pub window: PathBuf,
    /// One that ticks while it starts and stops runs.
    pub ticker: PathBuf,
    /// A directory for records, on a disk where there is one.
    pub state: PathBuf,
    /// A directory for what the agents save.
    pub scratch: PathBuf,
    pub answer: PathBuf,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Answer {
    pub figures: Vec<Figure>,
    /// What the figures do not tell: errors, each with its count.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Figure {
    pub what: String,
    /// None when it could not be measured, which is a miss where something is wanted.
    pub measured: Option<f64>,
    pub unit: String,
    pub wanted: Option<Wanted>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wanted {
    AtMost(f64),
    Exactly(f64),
}

impl Figure {
    /// So many, which must be exactly so many.
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    pub fn count(what: &str, measured: usize, wanted: usize) -> Self {
        Self {
            what: what.to_owned(),
            measured: Some(measured as f64),
            unit: String::new(),
            wanted: Some(Wanted::Exactly(wanted as f64)),
        }
    }

    /// So many, and no more.
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    pub fn most(what: &str, measured: usize, most: usize) -> Self {
        Self::at_most(what, Some(measured as f64), "", most as f64)
    }

    pub fn at_most(what: &str, measured: Option<f64>, unit: &str, most: f64) -> Self {
        Self { wanted: Some(Wanted::AtMost(most)), ..Self::noted(what, measured, unit) }
    }

    /// Told, and not judged.
    pub fn noted(what: &str, measured: Option<f64>, unit: &str) -> Self {
        Self { what: what.to_owned(), measured, unit: unit.to_owned(), wanted: None }
    }

    pub fn is_missed(&self) -> bool {
        let (Some(wanted), measured) = (self.wanted, self.measured) else {
            return false;
        };
        !measured.is_some_and(|measured| match wanted {
            Wanted::AtMost(most) => measured <= most,
            Wanted::Exactly(count) => (measured - count).abs() < f64::EPSILON,
        })
    }
}

/// What the embedding program says once it has started all it could.
#[derive(Debug, Serialize, Deserialize)]
pub struct HostStarted {
    pub started: usize,
    /// Why the others could not be started, each with its count.
    pub failures: BTreeMap<String, usize>,
}

/// What it says once it has stopped them: how each ended, and the errors where there
/// was no report, each with its count.
#[derive(Debug, Serialize, Deserialize)]
pub struct HostStopped {
    pub endings: BTreeMap<String, usize>,
    pub failures: BTreeMap<String, usize>,
}

/// What a window says once it has tidied up what dead windows have left.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct WindowTidied {
    /// Runs without keeper and guard.
    pub swept: usize,
    /// Runs that lived on.
    pub stopped: usize,
    /// Runs of living windows.
    pub siblings: usize,
    /// What was left alone, and why.
    pub left: Vec<String>,
}

/// What a window says once it has started its runs.
#[derive(Debug, Serialize, Deserialize)]
pub struct WindowStarted {
    pub started: usize,
}

/// What the program with the ticker says.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Ticked {
    pub alone: Lateness,
    /// On the thread that starts and stops runs.
    pub beside: Lateness,
    /// On another thread, meanwhile.
    pub control: Lateness,
    pub longest_poll_us: u64,
    /// How many runs were stopped, with a proof.
    pub proven: usize,
    pub failures: BTreeMap<String, usize>,
}

/// How late a ticker was, in microseconds.
#[derive(Debug, Default, Clone, Copy, Serialize, Deserialize)]
pub struct Lateness {
    pub ticks: usize,
    pub median_us: u64,
    /// Of 99 in 100.
    pub most_us: u64,
    pub worst_us: u64,
}

/// What a report says of an end: why, and how the leader exited, as JSON.
pub fn ending(reason: &str, exit: &Value) -> String {
    format!("{reason}, {exit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_can_be_missed() {
        assert!(!Figure::at_most("ps", Some(0.4), "s", 0.4).is_missed());
        assert!(Figure::at_most("ps", Some(0.41), "s", 0.4).is_missed());
        assert!(Figure::at_most("ps", None, "s", 0.4).is_missed());
        assert!(!Figure::count("saved", 1000, 1000).is_missed());
        assert!(Figure::count("saved", 999, 1000).is_missed());
        assert!(Figure::count("left", 1, 0).is_missed());
        assert!(!Figure::noted("start", Some(1e9), "ms").is_missed());
    }

    #[test]
    fn scenarios_have_names_of_their_own() {
        for scenario in Scenario::ALL {
            let named = Scenario::ALL.iter().filter(|other| other.name() == scenario.name());
            assert_eq!(named.count(), 1, "{}", scenario.name());
        }
    }
}
