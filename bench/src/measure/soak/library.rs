//! Agents of a program that embeds the library, beside many busy loops.

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdout, Command, Stdio};

use fullstop_bench::clock::now_ns;
use fullstop_bench::soak::{Answer, Figure, HostStarted, HostStopped, Job, STOP_SECONDS};
use serde::de::DeserializeOwned;

use super::agents::Agents;
use super::busy::Busy;
use super::{REPORTS, SAVED, notes, step};
use crate::{Outcome, crowd, proc};

pub fn play(job: &Job) -> Outcome<Answer> {
    let mut agents = Agents::new(&job.scratch)?;
    let runs = job.runs;
    let busy = Busy::start(job.busy)?;

    step(&format!("starting {runs} agents beside {} busy loops", job.busy));
    let mut host = Command::new(&job.host)
        .arg(&job.state)
        .arg(runs.to_string())
        .args(agents.words("{}"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut stdin = host.stdin.take().ok_or("the host has no stdin")?;
    let mut stdout = BufReader::new(host.stdout.take().ok_or("the host has no stdout")?);
    let start: HostStarted = next(&mut stdout)?;
    let ready = agents.settled(start.started)?;

    step("stopping them");
    let before = now_ns();
    stdin.write_all(b"stop\n")?;
    let stop: HostStopped = next(&mut stdout)?;
    #[expect(clippy::cast_precision_loss, reason = "durations far below 2^52 ns")]
    let seconds = (now_ns() - before) as f64 / 1e9;
    host.wait()?;
    drop(busy);
    crowd::goodbye();

    let ended_well = stop.endings.get(SAVED).copied().unwrap_or(0);
    Ok(Answer {
        figures: vec![
            Figure::count("started", start.started, runs),
            Figure::count("ready to save", ready, runs),
            Figure::count("saved their work", agents.saved()?, runs),
            Figure::count(REPORTS, ended_well, runs),
            Figure::count("processes left", proc::living().len(), 0),
            Figure::at_most("stopping them all", Some(seconds), "s", STOP_SECONDS),
        ],
        notes: [
            notes("not started", &start.failures),
            notes("reports", &stop.endings),
            notes("not stopped", &stop.failures),
        ]
        .concat(),
    })
}

/// What the host says next.
fn next<T: DeserializeOwned>(stdout: &mut BufReader<ChildStdout>) -> Outcome<T> {
    let mut line = String::new();
    if stdout.read_line(&mut line)? == 0 {
        return Err("the host said nothing more".into());
    }
    Ok(serde_json::from_str(&line)?)
}
