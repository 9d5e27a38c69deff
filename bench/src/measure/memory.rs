//! What a contender's own processes weigh while the command is idle.

use fullstop_bench::plan::{Contender, Plan};
use fullstop_bench::results::{Failure, Memory, Results};

use crate::weigh::{Job, Weight};
use crate::{Outcome, enclose};

const RUNS: usize = 100;
const RUNS_QUICK: usize = 20;

pub fn measure(plan: &Plan, found: &mut Results) {
    let runs = if plan.quick { RUNS_QUICK } else { RUNS };
    for contender in &plan.contenders {
        if !contender.takes_part() || !contender.is_prefix() || contender.is_engine() {
            continue;
        }
        match one(plan, contender, runs) {
            Ok(weight) => found.memory.push(Memory {
                contender: contender.name.clone(),
                runs,
                processes: weight.processes,
                pss_kib_per_run: weight.pss_kib_per_run,
            }),
            Err(error) => found.failures.push(Failure {
                contender: contender.name.clone(),
                part: "memory".into(),
                why: error.to_string(),
            }),
        }
    }
}

fn one(plan: &Plan, contender: &Contender, runs: usize) -> Outcome<Weight> {
    let job = Job {
        prefix: contender.prefix_at_once.clone(),
        stop: None,
        env: contender.env.clone(),
        tree: plan.bits.tree.clone(),
        fifo: plan.scratch.join("idle"),
        runs,
        answer: plan.scratch.join("weight.json"),
    };
    enclose::send("weigh", &job, &job.answer, &plan.scratch)
}
