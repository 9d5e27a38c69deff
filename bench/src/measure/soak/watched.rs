//! Many idle runs, and programs that watch them all.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use fullstop_bench::soak::{Answer, Figure, Job};

use super::idle::Idle;
use super::{MINUTE, cost, step};
use crate::child::Watched;
use crate::client::Client;
use crate::{Outcome, crowd, proc};

/// The usual limit of a person's shell; it holds for the watchers alone.
const DESCRIPTORS: &str = "1024";
/// In a minute, of each watcher: a thousandth of a core.
const PROCESSOR_MS: f64 = 60.0;
/// Keepers are woken by what happens in their runs, and nothing happens.
const WAKE_UPS: usize = 0;
const PATIENCE: Duration = Duration::from_mins(1);
const LOOK_EVERY: Duration = Duration::from_millis(1);
/// What they must be told of for a change to be seen.
const CHANGE_MS: f64 = 1000.0;

const WATCHERS: [(&str, &[&str]); 2] =
    [("ps --watch", &["ps", "--watch", "--json"]), ("events -f", &["events", "-f", "--json"])];

pub fn play(job: &Job) -> Outcome<Answer> {
    let client = Client { fullstop: job.fullstop.clone(), state: job.state.clone() };
    let runs = job.runs;
    step(&format!("starting {runs} idle runs"));
    let (_idle, started) = Idle::start(&client, &job.scratch, runs)?;
    let mut answer = Answer::default();
    answer.figures.push(Figure::count("started", started, runs));

    let mut watchers = Vec::new();
    for (name, words) in WATCHERS {
        let out = job.scratch.join(format!("{}.out", words[0]));
        watchers.push((name, start(&client, words, &out)?, out));
    }
    for (name, _, out) in &watchers {
        await_grown(out, 0).ok_or_else(|| format!("{name} says nothing"))?;
    }
    step("a minute in which nothing happens");
    // What the first look has cost is over.
    std::thread::sleep(Duration::from_secs(5));
    let keepers = || cost::wake_ups(&job.fullstop);
    let (woken, count) = keepers();
    let spent = |watchers: &[(&str, Watched, _)]| -> std::io::Result<Vec<Duration>> {
        watchers.iter().map(|(_, watched, _)| cost::processor(watched.pid())).collect()
    };
    let before = spent(&watchers)?;
    let own = |watchers: &[(&str, Watched, _)]| -> usize {
        watchers.iter().map(|(_, watched, _)| cost::wake_ups_of(watched.pid())).sum()
    };
    let own_before = own(&watchers);
    std::thread::sleep(MINUTE);
    let after = spent(&watchers)?;
    let own = own(&watchers) - own_before;
    let woken = (keepers().0 - woken).saturating_sub(own);
    answer.notes.push(format!("{count} processes of ours; the watchers were woken {own} times"));
    answer.figures.push(Figure::most("wake-ups of guards and keepers", woken, WAKE_UPS));
    for (((name, ..), before), after) in watchers.iter().zip(before).zip(after) {
        let spent = after.saturating_sub(before).as_secs_f64() * 1e3;
        let what = format!("{name}: processor time in a minute");
        answer.figures.push(Figure::at_most(&what, Some(spent), "ms", PROCESSOR_MS));
    }

    step("one of them ends");
    let lengths: Vec<u64> = watchers.iter().map(|(_, _, out)| length(out)).collect();
    let one = client.listed()?.first().ok_or("there is none")?.clone();
    let one = one.file_name().and_then(|name| name.to_str()).ok_or("it has no name")?.to_owned();
    client.output(&["kill", "--quiet", &one])?;
    let begin = Instant::now();
    for ((name, _, out), length) in watchers.iter().zip(lengths) {
        let seen = await_grown(out, length).map(|()| begin.elapsed().as_secs_f64() * 1e3);
        let what = format!("{name}: tells it after");
        answer.figures.push(Figure::at_most(&what, seen, "ms", CHANGE_MS));
    }
    for (_, watched, _) in &watchers {
        watched.signal(rustix::process::Signal::TERM)?;
    }
    for (_, watched, _) in watchers {
        watched.reap()?;
    }
    client.output(&["kill", "--all", "--quiet"])?;
    crowd::goodbye();
    answer.figures.push(Figure::count("processes left", proc::living().len(), 0));
    Ok(answer)
}

fn start(client: &Client, words: &[&str], out: &Path) -> Outcome<Watched> {
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("ulimit -n {DESCRIPTORS} && exec \"$@\""), "watch"])
        .arg(&client.fullstop)
        .args(words)
        .env("FULLSTOP_DIR", &client.state)
        .stdin(Stdio::null())
        .stdout(File::create(out)?);
    Ok(Watched::start(command)?)
}

fn length(out: &Path) -> u64 {
    std::fs::metadata(out).map_or(0, |it| it.len())
}

fn await_grown(out: &Path, from: u64) -> Option<()> {
    let until = Instant::now() + PATIENCE;
    while length(out) <= from {
        if Instant::now() > until {
            return None;
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Some(())
}
