//! What it costs to capture what a command prints, and to stand between a terminal
//! and its command.

use std::path::Path;

use fullstop_bench::disk;
use fullstop_bench::plan::{Capturer, Plan};
use fullstop_bench::results::{Capture, Failure, Memory, Results, Sample};

use crate::weigh::{self, Weight};
use crate::{Outcome, capture, cgroup, enclose, keys};

struct Size {
    flood: u64,
    floods: usize,
    keys: usize,
    idle: usize,
}

const FULL: Size = Size { flood: 1 << 30, floods: 7, keys: 500, idle: 100 };
const QUICK: Size = Size { flood: 128 << 20, floods: 3, keys: 100, idle: 20 };

pub fn measure(plan: &Plan, cgroup: Option<&Path>, found: &mut Results) {
    let size = if plan.quick { QUICK } else { FULL };
    found.output.filesystem = disk::filesystem(&plan.state).unwrap_or_default();
    found.output.bytes = size.flood;
    floods(plan, &size, cgroup, found);

    step(&format!("{} keys", size.keys));
    let job = keys::Job {
        fullstop: plan.fullstop.clone(),
        tmux: plan.tmux.clone(),
        dir: plan.state.join("keys"),
        rounds: size.keys,
        answer: plan.scratch.join("keys-answer.json"),
    };
    match enclose::send::<keys::Answer>("keys", &job, &job.answer, &plan.scratch) {
        Ok(answer) => {
            found.output.keys = answer.keys;
            found.failures.extend(answer.failures);
        }
        Err(error) => found.failures.push(failure("fullstop attach", "keys", &*error)),
    }

    for (name, start) in [("fullstop start", &[][..]), ("fullstop start --pty", &["--pty"])] {
        step(&format!("{} idle runs of {name}", size.idle));
        match weigh(plan, start, size.idle) {
            Ok(weight) => found.output.memory.push(Memory {
                contender: name.to_owned(),
                runs: size.idle,
                processes: weight.processes,
                pss_kib_per_run: weight.pss_kib_per_run,
            }),
            Err(error) => found.failures.push(failure(name, "memory", &*error)),
        }
    }
}

struct Lane<'a> {
    capturer: &'a Capturer,
    flow: Vec<u64>,
    whole: Vec<u64>,
    cpu: Vec<u64>,
    broken: Option<Failure>,
}

fn floods(plan: &Plan, size: &Size, cgroup: Option<&Path>, found: &mut Results) {
    let mut lanes: Vec<Lane> = plan
        .capturers
        .iter()
        .filter(|capturer| capturer.missing.is_none())
        .map(|capturer| Lane {
            capturer,
            flow: Vec::new(),
            whole: Vec::new(),
            cpu: Vec::new(),
            broken: None,
        })
        .collect();
    // The first round warms up and is not counted.
    for round in 0..=size.floods {
        step(&format!("floods of {} MiB, round {round} of {}", size.flood >> 20, size.floods));
        let count = lanes.len();
        for turn in 0..count {
            let lane = &mut lanes[(round + turn) % count];
            if lane.broken.is_some() {
                continue;
            }
            match flood(plan, lane.capturer, size.flood, cgroup) {
                Ok(answer) if round > 0 => {
                    lane.flow.push(answer.flow);
                    lane.whole.push(answer.whole);
                    lane.cpu.extend(answer.cpu);
                }
                Ok(_) => {}
                Err(error) => lane.broken = Some(failure(&lane.capturer.name, "flood", &*error)),
            }
        }
    }
    for lane in lanes {
        found.failures.extend(lane.broken);
        if let (Some(flow), Some(whole)) = (Sample::of(lane.flow), Sample::of(lane.whole)) {
            let capturer = lane.capturer.name.clone();
            found.output.captures.push(Capture {
                capturer,
                flow,
                whole,
                cpu: Sample::of(lane.cpu),
            });
        }
    }
}

fn flood(
    plan: &Plan,
    capturer: &Capturer,
    bytes: u64,
    cgroup: Option<&Path>,
) -> Outcome<capture::Answer> {
    let dir = plan.state.join("flood");
    std::fs::create_dir(&dir)?;
    let cgroup = cgroup.map(|own| own.join("capture"));
    if let Some(cgroup) = &cgroup {
        std::fs::create_dir(cgroup)?;
    }
    let job = capture::Job {
        before: capturer.before.clone(),
        script: capturer.script.clone(),
        flood: plan.bits.flood.clone(),
        fifo: plan.scratch.join("flood"),
        bytes,
        dir,
        cgroup,
        answer: plan.scratch.join("capture-answer.json"),
    };
    let answer = enclose::send("capture", &job, &job.answer, &plan.scratch);
    if let Some(cgroup) = &job.cgroup {
        cgroup::remove(cgroup);
    }
    std::fs::remove_dir_all(&job.dir)?;
    // What is gone need not be written; what else there is shall not be written while
    // the next one is timed.
    rustix::fs::syncfs(std::fs::File::open(&plan.state)?)?;
    answer
}

fn weigh(plan: &Plan, start: &[&str], runs: usize) -> Outcome<Weight> {
    let fullstop = plan.fullstop.display().to_string();
    let words = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
    let job = weigh::Job {
        prefix: [words(&[&fullstop, "start"]), words(start), words(&["--"])].concat(),
        stop: Some(words(&[&fullstop, "kill", "--all"])),
        env: vec![("FULLSTOP_DIR".to_owned(), plan.state.join("weighed").display().to_string())],
        tree: plan.bits.tree.clone(),
        fifo: plan.scratch.join("idle"),
        runs,
        answer: plan.scratch.join("weight.json"),
    };
    enclose::send("weigh", &job, &job.answer, &plan.scratch)
}

fn failure(contender: &str, part: &str, why: &dyn std::error::Error) -> Failure {
    let (contender, part) = (contender.to_owned(), format!("output, {part}"));
    Failure { contender, part, why: why.to_string() }
}

fn step(what: &str) {
    eprintln!("bench: output: {what}");
}
