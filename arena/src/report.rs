//! The report of a run, read as a stranger would: from the JSON alone, so that
//! a renamed field is a failure here.

use std::path::Path;
use std::time::SystemTime;

use serde::Deserialize;

use crate::{Context, Ended, Outcome};

#[derive(Debug, Clone, Deserialize)]
pub struct Report {
    pub version: u32,
    pub id: String,
    pub name: Option<String>,
    pub generation: u32,
    pub command: Vec<String>,
    pub cage: String,
    pub state: String,
    pub reason: String,
    pub exit: Option<Exit>,
    pub steps: Vec<Step>,
    pub leftovers: Vec<Member>,
    pub survivors: Vec<Member>,
    pub released: Vec<Member>,
    pub proof: Option<String>,
    #[serde(deserialize_with = "crate::time::instant")]
    pub started_at: SystemTime,
    pub elapsed_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Exit {
    Code(i32),
    Signal(String),
    Unknown,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Step {
    pub step: String,
    pub at_ms: u64,
    pub alive: usize,
    pub signalled: usize,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Member {
    pub pid: i32,
    pub ppid: i32,
    pub uid: u32,
    pub state: char,
    pub start_ticks: u64,
    pub command: String,
    pub wchan: Option<String>,
}

impl Report {
    pub fn read(path: &Path) -> Outcome<Self> {
        let text = std::fs::read_to_string(path).context("no report")?;
        serde_json::from_str(&text).context("the report cannot be read")
    }

    pub fn has_step(&self, label: &str) -> bool {
        self.steps.iter().any(|step| step.step == label)
    }

    /// How the leader ended, in the words of `wait`.
    pub fn leader(&self) -> Option<Ended> {
        match self.exit.as_ref()? {
            Exit::Code(code) => Some(Ended::Code(*code)),
            Exit::Signal(name) => signal_number(name).map(Ended::Signal),
            Exit::Unknown => None,
        }
    }
}

/// The signals that end somebody in the arena.
const NAMES: &[(&str, i32)] = &[
    ("hup", 1),
    ("int", 2),
    ("quit", 3),
    ("abrt", 6),
    ("kill", 9),
    ("segv", 11),
    ("pipe", 13),
    ("alrm", 14),
    ("term", 15),
];

pub fn signal_number(name: &str) -> Option<i32> {
    NAMES.iter().find(|(known, _)| *known == name).map(|(_, number)| *number)
}

pub fn signal_name(number: i32) -> &'static str {
    NAMES.iter().find(|(_, known)| *known == number).map_or("?", |(name, _)| name)
}
