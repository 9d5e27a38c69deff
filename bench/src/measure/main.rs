//! The measuring program of `cargo xtask bench` and `cargo xtask soak`. It is started by
//! them, in these shells, one inside the other:
//!
//! `enclose` makes a cgroup that is thrown away afterwards and enters a new pid
//! namespace; `init` is process 1 of that namespace and reaps; `measure` or `soak` does
//! the work. `weigh`, `hunt`, `crowd`, `lost`, `capture` and `keys` are single jobs of
//! `measure`, each inside one more pid namespace, since they leave processes behind on
//! purpose.
#![forbid(unsafe_code)]

mod capture;
mod cgroup;
mod child;
mod client;
mod crowd;
mod enclose;
mod ended;
mod fifo;
mod hunt;
mod keys;
mod level;
mod lost;
mod memory;
mod output;
mod proc;
mod proof;
mod pty;
mod records;
mod soak;
mod spawn;
mod stop;
mod survivors;
mod weigh;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use fullstop_bench::plan::{Part, Plan};
use fullstop_bench::results::{Machine, Results};

/// Errors here are for the person who runs the bench: one line each.
type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["enclose", rest @ ..] => enclose::enclose(rest),
        ["init", rest @ ..] => enclose::init(rest, false),
        ["init-with-lifeline", rest @ ..] => enclose::init(rest, true),
        ["measure", plan, results] => {
            measure(Path::new(plan), Path::new(results)).map(|()| ExitCode::SUCCESS)
        }
        ["soak", job] => soak::play(Path::new(job)).map(|()| ExitCode::SUCCESS),
        ["weigh", job] => weigh::weigh(Path::new(job)).map(|()| ExitCode::SUCCESS),
        ["hunt", job] => hunt::hunt(Path::new(job)).map(|()| ExitCode::SUCCESS),
        ["crowd", job] => crowd::crowd(Path::new(job)).map(|()| ExitCode::SUCCESS),
        ["lost", job] => lost::lost(Path::new(job)).map(|()| ExitCode::SUCCESS),
        ["capture", job] => capture::capture(Path::new(job)).map(|()| ExitCode::SUCCESS),
        ["keys", job] => keys::keys(Path::new(job)).map(|()| ExitCode::SUCCESS),
        [lost::RAW_READ] => lost::raw_read().map(|()| ExitCode::SUCCESS),
        _ => Err("this program is started by `cargo xtask bench` and `cargo xtask soak`".into()),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("bench-measure: {error}");
        ExitCode::FAILURE
    })
}

fn measure(plan: &Path, results: &Path) -> Outcome<()> {
    let plan: Plan = serde_json::from_slice(&std::fs::read(plan)?)?;
    let cgroup = cgroup::own();
    let mut found = Results {
        machine: Machine {
            kernel: std::fs::read_to_string("/proc/sys/kernel/osrelease")?.trim().to_owned(),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            cgroup: cgroup.is_some(),
            busy_percent: proc::busy_percent(Duration::from_secs(1))?,
        },
        ..Results::default()
    };
    for part in &plan.parts {
        eprintln!("bench: {}", part.name());
        match part {
            Part::Spawn => spawn::measure(&plan, &mut found)?,
            Part::Stop => stop::measure(&plan, cgroup.as_deref(), &mut found)?,
            Part::Memory => memory::measure(&plan, &mut found),
            Part::Survivors => survivors::measure(&plan, &mut found)?,
            Part::Records => records::measure(&plan, &mut found)?,
            Part::Output => output::measure(&plan, cgroup.as_deref(), &mut found),
        }
    }
    std::fs::write(results, serde_json::to_vec_pretty(&found)?)?;
    Ok(())
}
