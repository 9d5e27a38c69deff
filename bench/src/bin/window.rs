//! `bench-window STATE RUNS`: one window of an application that embeds the library. It tidies up
//! what dead windows have left, and says so. After a line on its stdin it starts so many runs,
//! and says that. When its stdin ends it stops them, and says how each ended.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{BufRead as _, Read as _, stdin};
use std::path::Path;
use std::process::ExitCode;

use fullstop::{HostedBy, Run, Runs, SweepFinding, blocking};
use fullstop_bench::soak::{HostStopped, WindowStarted, WindowTidied, ending};

const APP: &str = "bench-window";
/// Who leaves a worker in a session of its own, and ends itself after ten minutes.
const AGENT: &str = "setsid sleep 600 & exec sleep 600";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [state, runs] = words.as_slice() else {
        eprintln!("usage: bench-window STATE RUNS");
        return ExitCode::from(2);
    };
    match window(Path::new(state), runs) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-window: {error}");
            ExitCode::FAILURE
        }
    }
}

fn window(state: &Path, count: &str) -> Result<(), Box<dyn Error>> {
    let runs = Runs::at(state)?.with_app(APP)?;
    let count: usize = count.parse()?;
    say(&blocking::wait(tidy_up(&runs))?)?;
    stdin().lock().read_line(&mut String::new())?;
    // Every other one is to outlive a window that closes.
    let begin = |number: usize| {
        let agent = runs.command("sh").args(["-c", AGENT]);
        if number.is_multiple_of(2) { blocking::spawn(agent) } else { blocking::start(agent) }
    };
    let started: Vec<Run> = (0..count).map(begin).collect::<Result<_, _>>()?;
    say(&WindowStarted { started: started.len() })?;
    stdin().lock().read_to_end(&mut Vec::new())?;
    let mut stopped = HostStopped { endings: BTreeMap::new(), failures: BTreeMap::new() };
    for run in started {
        let (counts, what) = match blocking::wait(run.stop()) {
            Ok(report) => (&mut stopped.endings, ending(&report.reason().to_string(), &().into())),
            Err(error) => (&mut stopped.failures, error.to_string()),
        };
        *counts.entry(what).or_default() += 1;
    }
    say(&stopped)
}

async fn tidy_up(runs: &Runs) -> fullstop::Result<WindowTidied> {
    let mut tidied = WindowTidied::default();
    for swept in runs.sweep_of(APP).await? {
        match swept.found {
            SweepFinding::Ended { .. } | SweepFinding::PutAway => tidied.swept += 1,
            other => tidied.left.push(format!("{other:?}")),
        }
    }
    for found in runs.of(APP).await? {
        match found.hosted_by {
            // Also one that is lost: another sweep may be at it, whose end a stop waits for.
            HostedBy::Predecessor => match found.run.stop().await {
                Ok(_) => tidied.stopped += 1,
                Err(error) => tidied.left.push(error.to_string()),
            },
            HostedBy::Sibling => tidied.siblings += 1,
            other => tidied.left.push(format!("{other:?}: {}", found.status.state)),
        }
    }
    Ok(tidied)
}

fn say(what: &impl serde::Serialize) -> Result<(), Box<dyn Error>> {
    println!("{}", serde_json::to_string(what)?);
    Ok(())
}
