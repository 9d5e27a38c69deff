//! What records cost a run, and how fast runs are found again among many.

use std::path::Path;

use fullstop_bench::plan::{Contender, Plan, Role};
use fullstop_bench::results::{Failure, Recorded, Results, SpawnKind};
use fullstop_bench::{clock, disk};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::client::Client;
use crate::spawn::race;
use crate::{Outcome, crowd, enclose, ended, lost};

const KINDS: [SpawnKind; 2] = [SpawnKind::Exit, SpawnKind::ExitSystem];

struct Size {
    /// Ended runs in the directory that is not fresh.
    ended: usize,
    live: usize,
    ps_rounds: usize,
    processes: usize,
    sweep_rounds: usize,
}

const FULL: Size =
    Size { ended: 100_000, live: 1000, ps_rounds: 15, processes: 10_000, sweep_rounds: 15 };
const QUICK: Size = Size { ended: 2000, live: 40, ps_rounds: 5, processes: 1000, sweep_rounds: 5 };

pub fn measure(plan: &Plan, found: &mut Results) -> Outcome<()> {
    let size = if plan.quick { QUICK } else { FULL };
    found.records.filesystem = disk::filesystem(&plan.state).unwrap_or_default();
    cost(plan, &size, found)?;

    let job = crowd::Job {
        client: Client { fullstop: plan.fullstop.clone(), state: plan.state.join("crowd") },
        runs: size.live,
        rounds: size.ps_rounds,
        answer: plan.scratch.join("crowd-answer.json"),
    };
    step(&format!("{} live runs", size.live));
    found.records.crowd = send("crowd", &job, &job.answer, plan, found);

    let job = lost::Job {
        fullstop: plan.fullstop.clone(),
        tree: plan.bits.tree.clone(),
        fifo: plan.scratch.join("sleepers"),
        state: plan.state.join("lost"),
        processes: size.processes,
        rounds: size.sweep_rounds,
        answer: plan.scratch.join("lost-answer.json"),
    };
    step(&format!("a sweep over {} processes", size.processes));
    found.records.sweep = send("lost", &job, &job.answer, plan, found);
    Ok(())
}

/// `run true` without a record, with one, and with one among many.
fn cost(plan: &Plan, size: &Size, found: &mut Results) -> Outcome<()> {
    let fresh = plan.state.join("fresh");
    let crowded = plan.state.join("ended");
    let start = clock::now_ns();
    ended::fill(&plan.fullstop, &crowded, size.ended)?;
    let seconds = (clock::now_ns() - start) / 1_000_000_000;
    step(&format!("{} ended runs, written in {seconds} s", size.ended));

    let mut lanes: Vec<(Contender, usize)> = Vec::new();
    for contender in plan.contenders.iter().filter(|contender| contender.takes_part()) {
        match contender.role {
            Role::Tini | Role::EngineCgroup | Role::EngineTree => {
                lanes.push((contender.clone(), 0));
            }
            Role::FullstopCgroup | Role::FullstopTree => {
                lanes.push((at(contender, &fresh), 0));
                lanes.push((at(contender, &crowded), size.ended));
            }
            Role::Floor | Role::Peer => {}
        }
    }
    let contenders: Vec<&Contender> = lanes.iter().map(|(contender, _)| contender).collect();
    let timed = race(plan, &contenders, &KINDS, "records", found)?;
    let there = |dir: &Path| std::fs::read_dir(dir.join("runs")).map_or(0, Iterator::count);
    let kept = there(&fresh) + there(&crowded) - size.ended;
    let mut counted = 0;
    for (contender, kind, sample) in timed {
        let lane = lanes.iter().find(|(lane, _)| std::ptr::eq(lane, contender));
        let ended = lane.map_or(0, |&(_, ended)| ended);
        if matches!(contender.role, Role::FullstopCgroup | Role::FullstopTree) {
            counted += sample.rounds;
        }
        let contender = contender.name.clone();
        found.records.recorded.push(Recorded { contender, ended, kind, sample });
    }
    // A run goes on without a record if it must; that is not what was timed here.
    if kept < counted {
        return Err(format!("{counted} runs left {kept} records").into());
    }
    // It is large, and nobody needs it any more.
    std::fs::remove_dir_all(&crowded)?;
    Ok(())
}

/// The same, with its records there.
fn at(contender: &Contender, state: &Path) -> Contender {
    let env = vec![("FULLSTOP_DIR".to_owned(), state.display().to_string())];
    Contender { env, ..contender.clone() }
}

/// One job in a pid namespace of its own; what goes wrong with it is written
/// down and keeps no other from being measured.
fn send<T: DeserializeOwned>(
    name: &str,
    job: &impl Serialize,
    answer: &Path,
    plan: &Plan,
    found: &mut Results,
) -> Option<T> {
    enclose::send(name, job, answer, &plan.scratch)
        .map_err(|error| {
            let (contender, part) = ("fullstop".to_owned(), format!("records, {name}"));
            found.failures.push(Failure { contender, part, why: error.to_string() });
        })
        .ok()
}

fn step(what: &str) {
    eprintln!("bench: records: {what}");
}
