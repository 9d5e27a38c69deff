//! `bench-host STATE RUNS CMD…`: a program that embeds the library. It starts so many
//! runs of CMD, in whose words `{}` is the number of the run, and says how many are
//! there. When its stdin says a line, or ends, it stops them all and says how each ended.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use fullstop::{Command, EndUpdate, Ladder, Order, Run, Runs, blocking, end_all};
use fullstop_bench::soak::{HostStarted, HostStopped, LADDER, ending};

/// Started side by side, as a host does that has many to start.
const STARTERS: usize = 4;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [state, runs, command @ ..] = words.as_slice() else {
        eprintln!("usage: bench-host STATE RUNS CMD…");
        return ExitCode::from(2);
    };
    match host(Path::new(state), runs, command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-host: {error}");
            ExitCode::FAILURE
        }
    }
}

fn host(state: &Path, count: &str, command: &[String]) -> Result<(), Box<dyn Error>> {
    let runs = Runs::at(state)?;
    let ladder: Ladder = LADDER.parse()?;
    let (started, failures) = start(&runs, &ladder, count.parse()?, command);
    say(&HostStarted { started: started.len(), failures })?;
    std::io::stdin().read_line(&mut String::new())?;

    let mut stopped = HostStopped { endings: BTreeMap::new(), failures: BTreeMap::new() };
    let all = end_all(started, Order::Stop, |_, update| {
        let EndUpdate::Done(ended) = update else { return };
        let (counts, what) = match ended {
            Ok(report) => {
                let exit = serde_json::to_value(report.exit).unwrap_or_default();
                (&mut stopped.endings, ending(&report.reason().to_string(), &exit))
            }
            Err(error) => (&mut stopped.failures, error.to_string()),
        };
        *counts.entry(what).or_default() += 1;
    });
    blocking::wait(async {
        all.await;
        Ok(())
    })?;
    say(&stopped)
}

fn start(
    runs: &Runs,
    ladder: &Ladder,
    count: usize,
    command: &[String],
) -> (Vec<Run>, BTreeMap<String, usize>) {
    let next = AtomicUsize::new(0);
    let started = Mutex::new((Vec::new(), BTreeMap::new()));
    let starter = || loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= count {
            return;
        }
        let mut words = command.iter().map(|word| word.replace("{}", &number.to_string()));
        let program = words.next().unwrap_or_default();
        let command = Command::new(program).args(words).ladder(ladder.clone()).runs(runs);
        let run = blocking::spawn(command);
        let mut all = started.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match run {
            Ok(run) => all.0.push(run),
            Err(error) => *all.1.entry(error.to_string()).or_default() += 1,
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..STARTERS {
            scope.spawn(starter);
        }
    });
    started.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn say(what: &impl serde::Serialize) -> Result<(), Box<dyn Error>> {
    println!("{}", serde_json::to_string(what)?);
    Ok(())
}
