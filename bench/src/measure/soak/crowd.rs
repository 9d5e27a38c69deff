//! Many agents, started by the command line, listed, and ended by one `stop --all`.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use fullstop_bench::clock::now_ns;
use fullstop_bench::results::Sample;
use fullstop_bench::soak::{Answer, Figure, Job, LADDER, STOP_SECONDS, ending};
use serde_json::Value;

use super::agents::Agents;
use super::busy::Busy;
use super::{Counts, REPORTS, SAVED, notes, step};
use crate::child::Watched;
use crate::client::{Client, side_by_side};
use crate::{Outcome, crowd, proc};

const ID_LENGTH: usize = 13;
/// The usual limit of a person's shell; it holds for the stopper alone.
const DESCRIPTORS: &str = "1024";
/// After this a stop is given up.
const STOP_PATIENCE: Duration = Duration::from_mins(10);
const PS_ROUNDS: usize = 5;
const START_ROUNDS: usize = 15;
/// A list of up to 5,000 is there before anybody wonders.
const PS_SECONDS: f64 = 0.4;
/// A start costs the same beside many as beside none; the rest is chance.
const START_RATIO: f64 = 1.2;

pub fn play(job: &Job) -> Outcome<Answer> {
    let client = Client { fullstop: job.fullstop.clone(), state: job.state.join("crowd") };
    let mut agents = Agents::new(&job.scratch)?;
    let mut answer = Answer::default();
    let runs = job.runs;

    let empty = Client { state: job.state.join("empty"), ..client.clone() };
    let before = told(start_ms([&client]), &mut answer);
    let busy = Busy::start(job.busy)?;
    step(&format!("starting {runs} agents beside {} busy loops", job.busy));
    let (started, failures) = start(&client, &agents, runs)?;
    answer.notes.extend(notes("not started", &failures));
    answer.figures.push(Figure::count("started", started, runs));
    answer.figures.push(Figure::count("ready to save", agents.settled(started)?, runs));

    step("ps, and starts beside them");
    let ps = client.ps(started, PS_ROUNDS).map(|sample| sample.median_ms() / 1e3);
    let ps = told(ps, &mut answer);
    let beside = told(start_ms([&client, &empty]), &mut answer);

    step("stop --all");
    let stop = stop_all(&client, &job.scratch)?;
    drop(busy);
    crowd::goodbye();
    answer.notes.extend(notes("reports", &stop.endings));
    answer.notes.extend(notes("stop --all", &stop.complaints));
    let ended_well = stop.endings.get(SAVED).copied().unwrap_or(0);
    answer.figures.push(Figure::count("saved their work", agents.saved()?, runs));
    answer.figures.push(Figure::count(REPORTS, ended_well, runs));
    answer.figures.push(Figure::count("status of stop --all", stop.status, 0));
    answer.figures.push(Figure::count("processes left", proc::living().len(), 0));
    let judged = |what: &str, measured, unit: &str, most| {
        // Beside busy loops a time says more about the loops than about us.
        match job.busy {
            0 => Figure::at_most(what, measured, unit, most),
            _ => Figure::noted(what, measured, unit),
        }
    };
    answer.figures.push(Figure::at_most(STOP, Some(stop.seconds), "s", STOP_SECONDS));
    answer.figures.push(judged("ps", ps, "s", PS_SECONDS));
    let all = beside.map(|[all, _]| all);
    answer.figures.push(Figure::noted("start, none live", before.map(|[alone]| alone), "ms"));
    answer.figures.push(Figure::noted("start, all live", all, "ms"));
    let ratio = beside.map(|[all, empty]| all / empty);
    let what = "start, all live ÷ in an empty directory meanwhile";
    answer.figures.push(judged(what, ratio, "×", START_RATIO));
    Ok(answer)
}

/// The figure by which crowds of two sizes are compared.
pub const STOP: &str = "stop --all";

/// What could not be measured is told, and keeps nothing else from being measured.
fn told<T>(measured: Outcome<T>, answer: &mut Answer) -> Option<T> {
    measured.map_err(|error| answer.notes.push(error.to_string())).ok()
}

/// How many were started, and what the others said.
fn start(client: &Client, agents: &Agents, runs: usize) -> Outcome<(usize, Counts)> {
    let ended = side_by_side(runs, |number| {
        let agent = agents.words(&number.to_string());
        let words = ["start", "--ladder", LADDER, "--"].into_iter();
        let words: Vec<&str> = words.chain(agent.iter().map(String::as_str)).collect();
        client.command(&words).output()
    })?;
    let mut failures = Counts::new();
    let mut started = 0;
    for output in ended {
        let output = output?;
        if output.status.success() {
            started += 1;
        } else {
            let said = String::from_utf8_lossy(&output.stderr);
            let line = said.trim().lines().last().unwrap_or_default();
            *failures.entry(format!("{line} ({})", output.status)).or_default() += 1;
        }
    }
    Ok((started, failures))
}

/// How long one more `start` takes in each of these directories, in turn, so that what
/// else the machine does falls on all of them alike.
fn start_ms<const N: usize>(clients: [&Client; N]) -> Outcome<[f64; N]> {
    let mut times = [const { Vec::new() }; N];
    for round in 0..=START_ROUNDS {
        for (client, times) in clients.iter().zip(&mut times) {
            let taken = start_once(client)?;
            // The first one warms up.
            if round > 0 {
                times.push(taken);
            }
        }
    }
    Ok(times.map(|times| Sample::of(times).map_or(0.0, |sample| sample.median_ms())))
}

fn start_once(client: &Client) -> Outcome<u64> {
    let start = now_ns();
    let output = client.output(&["start", "--ladder", "kill", "--", "sleep", "600"])?;
    let taken = now_ns() - start;
    if !output.status.success() {
        return Err(format!("`fullstop start` ended with {}", output.status).into());
    }
    let id = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let killed = client.output(&["kill", "--quiet", &id])?.status;
    if !killed.success() {
        return Err(format!("`fullstop kill {id}` ended with {killed}").into());
    }
    Ok(taken)
}

struct Stop {
    seconds: f64,
    status: usize,
    /// What the reports say.
    endings: Counts,
    /// Lines on stderr.
    complaints: Counts,
}

fn stop_all(client: &Client, scratch: &Path) -> Outcome<Stop> {
    let (reports, said) = (scratch.join("reports.json"), scratch.join("complaints"));
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("ulimit -n {DESCRIPTORS} && exec \"$@\""), "stop"])
        .arg(&client.fullstop)
        .args(["stop", "--all", "--json"])
        .env("FULLSTOP_DIR", &client.state)
        .stdin(Stdio::null())
        .stdout(File::create(&reports)?)
        .stderr(File::create(&said)?);
    let start = now_ns();
    let stop = Watched::start(command)?;
    if !stop.exited_within(STOP_PATIENCE)? {
        return Err(format!("stop --all took more than {} s", STOP_PATIENCE.as_secs()).into());
    }
    #[expect(clippy::cast_precision_loss, reason = "durations far below 2^52 ns")]
    let seconds = (now_ns() - start) as f64 / 1e9;
    // Ended by a signal is no status at all.
    let status = stop.reap()?.code().and_then(|code| usize::try_from(code).ok()).unwrap_or(256);
    let mut complaints = Counts::new();
    for line in String::from_utf8_lossy(&std::fs::read(&said)?).lines() {
        *complaints.entry(without_ids(line)).or_default() += 1;
    }
    Ok(Stop { seconds, status, endings: endings(&std::fs::read(&reports)?), complaints })
}

fn endings(reports: &[u8]) -> Counts {
    let mut counts = Counts::new();
    for report in serde_json::Deserializer::from_slice(reports).into_iter::<Value>().flatten() {
        let reason = report["reason"].as_str().unwrap_or("no reason");
        *counts.entry(ending(reason, &report["exit"])).or_default() += 1;
    }
    counts
}

/// The same complaint about many runs is one complaint.
fn without_ids(line: &str) -> String {
    let is_id = |word: &str| {
        word.len() == ID_LENGTH
            && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
    };
    let words = line.split_inclusive(|letter: char| !letter.is_ascii_alphanumeric());
    let mask = |word: &str| {
        let bare = word.trim_end_matches(|letter: char| !letter.is_ascii_alphanumeric());
        if is_id(bare) { word.replace(bare, "ID") } else { word.to_owned() }
    };
    words.map(mask).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_counted_by_reason_and_exit() {
        let counts = endings(
            br#"{"reason":"stopped","exit":{"code":0}} {"reason":"stopped","exit":{"code":0}}
                {"reason":"stopped","exit":{"signal":"kill"}} {}"#,
        );
        assert_eq!(counts[SAVED], 2);
        assert_eq!(counts.values().sum::<usize>(), 4);
    }

    #[test]
    fn complaints_about_many_are_one() {
        let line = "fullstop: 06f1k2m3n4p5q: cannot open /s/live/06f1k2m3n4p5q: too many";
        assert_eq!(without_ids(line), "fullstop: ID: cannot open /s/live/ID: too many");
    }
}
