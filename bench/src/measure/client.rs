//! `fullstop` as a person calls it, with a state directory of the bench's own.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use fullstop_bench::clock::now_ns;
use fullstop_bench::results::Sample;
use serde::{Deserialize, Serialize};

use crate::Outcome;

/// Started side by side, so that starting many does not take all day.
const STARTERS: usize = 4;

#[derive(Clone, Serialize, Deserialize)]
pub struct Client {
    pub fullstop: PathBuf,
    pub state: PathBuf,
}

impl Client {
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.fullstop);
        command.args(words).env("FULLSTOP_DIR", &self.state).stdin(Stdio::null());
        command
    }

    /// What it says to programs; what it says to people is passed on.
    pub fn output(&self, words: &[&str]) -> std::io::Result<Output> {
        self.command(words).stderr(Stdio::inherit()).output()
    }

    /// The directories of the runs that are listed as live.
    pub fn listed(&self) -> Outcome<Vec<PathBuf>> {
        let entries = std::fs::read_dir(self.state.join("live"))?;
        Ok(entries
            .map(|entry| entry.map(|entry| self.state.join("runs").join(entry.file_name())))
            .collect::<Result<_, _>>()?)
    }

    /// How long `ps` takes to list so many live runs.
    pub fn ps(&self, runs: usize, rounds: usize) -> Outcome<Sample> {
        let mut times = Vec::new();
        // The first one warms up and is not counted.
        for round in 0..=rounds {
            let start = now_ns();
            let output = self.output(&["ps"])?;
            let end = now_ns();
            let lines =
                output.stdout.split(|&byte| byte == b'\n').filter(|l| !l.is_empty()).count();
            // One line is the head.
            if !output.status.success() || lines != runs + 1 {
                return Err(format!("`ps` of {runs} runs showed {lines} lines").into());
            }
            if round > 0 {
                times.push(end - start);
            }
        }
        Sample::of(times).ok_or_else(|| "`ps` was not measured".into())
    }
}

/// Does so many things, a few at a time, and tells what came of each.
pub fn side_by_side<T: Send>(count: usize, act: impl Fn(usize) -> T + Sync) -> Outcome<Vec<T>> {
    let next = AtomicUsize::new(0);
    let work = || {
        std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)))
            .take_while(|&number| number < count)
            .map(&act)
            .collect::<Vec<T>>()
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..STARTERS).map(|_| scope.spawn(work)).collect();
        let mut all = Vec::with_capacity(count);
        for worker in workers {
            all.extend(worker.join().map_err(|_| "a worker panicked")?);
        }
        Ok(all)
    })
}
