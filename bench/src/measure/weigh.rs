//! One job in a pid namespace of its own: start many idle runs, weigh what
//! is not the command, stop them.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use crate::child::{Watched, command};
use crate::fifo::Fifo;
use crate::{Outcome, proc};

const PATIENCE: Duration = Duration::from_secs(20);
/// What start-up leaves behind has been given back by then.
const SETTLE: Duration = Duration::from_millis(500);

#[derive(Serialize, Deserialize)]
pub struct Job {
    pub prefix: Vec<String>,
    /// The words that end runs whose prefix does not stay with them. Without, the
    /// prefix is told to stop.
    pub stop: Option<Vec<String>>,
    pub env: Vec<(String, String)>,
    pub tree: PathBuf,
    pub fifo: PathBuf,
    pub runs: usize,
    pub answer: PathBuf,
}

#[derive(Serialize, Deserialize)]
pub struct Weight {
    pub processes: usize,
    pub pss_kib_per_run: f64,
}

pub fn weigh(job: &Path) -> Outcome<()> {
    let job: Job = serde_json::from_slice(&std::fs::read(job)?)?;
    let mut fifo = Fifo::make(&job.fifo)?;
    let idle = [job.tree.display().to_string(), fifo.path().to_owned(), "1".to_owned()];
    let words = [job.prefix.as_slice(), &idle].concat();
    let mut runs = Vec::new();
    for _ in 0..job.runs {
        let mut command = command(&words, &job.env)?;
        if job.stop.is_some() {
            // It says what it has started, which nobody wants to know here.
            command.stdout(Stdio::null());
        }
        runs.push(Watched::start(command)?);
    }
    for _ in 0..job.runs {
        fifo.read_line(PATIENCE)?;
    }
    std::thread::sleep(SETTLE);
    let mut total = 0;
    let mut processes = 0;
    for seen in proc::living() {
        if seen.exe.as_deref() != Some(&job.tree) {
            total += proc::pss_kib(seen.pid).ok_or("smaps_rollup cannot be read")?;
            processes += 1;
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "some megabytes")]
    let weight = Weight { processes, pss_kib_per_run: total as f64 / job.runs as f64 };
    std::fs::write(&job.answer, serde_json::to_vec(&weight)?)?;
    match &job.stop {
        Some(words) => stop_by(words, &job.env),
        None => stop_in_order(runs),
    }
}

/// The namespace's end would kill them as well, but only they can remove what
/// they made outside of it.
fn stop_in_order(runs: Vec<Watched>) -> Outcome<()> {
    for run in &runs {
        run.signal(Signal::TERM)?;
    }
    let deadline = Instant::now() + PATIENCE;
    for run in runs {
        if run.exited_within(deadline.saturating_duration_since(Instant::now()))? {
            run.reap()?;
        }
    }
    Ok(())
}

fn stop_by(words: &[String], env: &[(String, String)]) -> Outcome<()> {
    let status = command(words, env)?.stdout(Stdio::null()).status()?;
    if status.success() { Ok(()) } else { Err(format!("stopping ended with {status}").into()) }
}
