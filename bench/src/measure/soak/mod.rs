//! `cargo xtask soak`: what an issue asks for in large counts, seconds and ratios. Each
//! scenario is one file here, and one variant of [`Scenario`].

mod agents;
mod busy;
mod cost;
mod crowd;
mod followers;
mod growth;
mod idle;
mod library;
mod ticker;
mod watched;
mod windows;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use fullstop_bench::soak::{Job, Scenario};

use crate::Outcome;

/// Plays one scenario, in a pid namespace and a cgroup of its own.
pub fn play(job: &Path) -> Outcome<()> {
    let job: Job = serde_json::from_slice(&std::fs::read(job)?)?;
    let answer = match job.scenario {
        Scenario::Crowd => crowd::play(&job)?,
        Scenario::BusyLibrary => library::play(&job)?,
        Scenario::Growth => growth::play(&job)?,
        Scenario::Followers => followers::play(&job)?,
        Scenario::Watched => watched::play(&job)?,
        Scenario::Windows => windows::play(&job)?,
        Scenario::Ticker => ticker::play(&job)?,
    };
    std::fs::write(&job.answer, serde_json::to_vec(&answer)?)?;
    Ok(())
}

/// How an agent ends that was given its time.
const SAVED: &str = r#"stopped, {"code":0}"#;
/// The figure of reports that say so. A keeper that was killed while it stopped keeps its
/// reason, and so does a leader that was killed: only both together tell.
const REPORTS: &str = "reports: stopped, and the leader exited";

/// For so long what waits is watched.
const MINUTE: Duration = Duration::from_mins(1);

/// Texts, each with its count.
type Counts = BTreeMap<String, usize>;

/// The most frequent texts, each with its count.
fn notes(of: &str, counts: &Counts) -> Vec<String> {
    const MOST: usize = 5;
    let mut sorted: Vec<_> = counts.iter().collect();
    sorted.sort_by_key(|&(_, &count)| Reverse(count));
    let mut notes: Vec<String> =
        sorted.iter().take(MOST).map(|(text, count)| format!("{of}: {count} × {text}")).collect();
    if let Some(more @ 1..) = sorted.len().checked_sub(MOST) {
        notes.push(format!("{of}: {more} more"));
    }
    notes
}

fn step(what: &str) {
    eprintln!("soak: {what}");
}
