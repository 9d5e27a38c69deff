//! `cargo xtask soak`: what an issue asks for in large counts, seconds and ratios. Each
//! scenario is one file here, and one variant of [`Scenario`].

mod agents;
mod busy;
mod crowd;
mod growth;
mod library;

use std::collections::BTreeMap;
use std::path::Path;

use fullstop_bench::soak::{Job, Scenario};

use crate::Outcome;

/// Plays one scenario, in a pid namespace and a cgroup of its own.
pub fn play(job: &Path) -> Outcome<()> {
    let job: Job = serde_json::from_slice(&std::fs::read(job)?)?;
    let answer = match job.scenario {
        Scenario::Crowd => crowd::play(&job)?,
        Scenario::BusyLibrary => library::play(&job)?,
        Scenario::Growth => growth::play(&job)?,
    };
    std::fs::write(&job.answer, serde_json::to_vec(&answer)?)?;
    Ok(())
}

/// Texts, each with its count.
type Counts = BTreeMap<String, usize>;

fn notes<'a>(of: &'a str, counts: &'a Counts) -> impl Iterator<Item = String> + 'a {
    counts.iter().map(move |(text, count)| format!("{of}: {count} × {text}"))
}

fn step(what: &str) {
    eprintln!("soak: {what}");
}
