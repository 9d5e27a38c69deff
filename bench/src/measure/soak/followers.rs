//! Followers of silent runs, all in one program that embeds the library.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use fullstop_bench::soak::{Answer, Figure, Job};

use super::idle::Idle;
use super::{MINUTE, cost, step};
use crate::client::Client;
use crate::{Outcome, crowd, proc};

const PS_ROUNDS: usize = 15;
const PS_MS: f64 = 20.0;
/// Of one core.
const PROCESSOR_PERCENT: f64 = 1.0;
/// Beside one descriptor for each follower.
const DESCRIPTORS: usize = 32;
const LINES: usize = 1000;
const LATENCY_MS: f64 = 5.0;
/// The lines come one by one, as an agent's do.
const BETWEEN: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_mins(1);

pub fn play(job: &Job) -> Outcome<Answer> {
    let client = Client { fullstop: job.fullstop.clone(), state: job.state.clone() };
    let runs = job.runs;
    step(&format!("starting {runs} silent runs"));
    let (mut idle, started) = Idle::start(&client, &job.scratch, runs)?;
    let ps = client.ps(started, PS_ROUNDS)?.median_ms();

    step("following them");
    let mut follower =
        Command::new(&job.follower).arg(&job.state).stdout(Stdio::piped()).spawn()?;
    let pid = follower.id();
    let stdout = follower.stdout.take().ok_or("the follower has no stdout")?;
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            let _ = tell.send(line);
        }
    });
    told.recv_timeout(PATIENCE)?;
    let descriptors = cost::descriptors(pid)?;
    let before = cost::processor(pid)?;
    std::thread::sleep(MINUTE);
    let spent = cost::processor(pid)?.saturating_sub(before);

    step("a line now and then");
    let mut latencies = Vec::with_capacity(LINES);
    for _ in 0..LINES {
        idle.ask_one()?;
        latencies.push(told.recv_timeout(PATIENCE)?.parse::<f64>()? / 1e3);
        std::thread::sleep(BETWEEN);
    }
    latencies.sort_by(f64::total_cmp);
    let at = |percent: usize| latencies.get(LINES * percent / 100).copied();

    client.output(&["kill", "--all", "--quiet"])?;
    follower.wait()?;
    crowd::goodbye();
    let percent = spent.as_secs_f64() / MINUTE.as_secs_f64() * 100.0;
    Ok(Answer {
        figures: vec![
            Figure::count("started", started, runs),
            Figure::at_most("ps", Some(ps), "ms", PS_MS),
            Figure::at_most("a core, for a minute", Some(percent), "%", PROCESSOR_PERCENT),
            Figure::most("descriptors of the follower", descriptors, runs + DESCRIPTORS),
            Figure::noted("a line is there after, median", at(50), "ms"),
            Figure::at_most("a line is there after, 99 %", at(99), "ms", LATENCY_MS),
            Figure::count("processes left", proc::living().len(), 0),
        ],
        notes: Vec::new(),
    })
}
