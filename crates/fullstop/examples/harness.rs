//! A small agent harness: it runs a command per turn, each in a fresh run of one
//! group, shows what it started, and ends a turn for good before the next begins.
//!
//! ```text
//! cargo run --release -p fullstop --example harness
//! cargo run --release -p fullstop --example harness -- claude -p 'say hello'
//! ```

use fullstop::{Agent, Command, Error, Report, Run, Runs};
use std::time::Duration;

/// What a turn may take before it is stopped.
const TURN: Duration = Duration::from_secs(2);
const TURNS: usize = 2;
const GROUP: &str = "harness";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(harness(&words))?;
    Ok(())
}

async fn harness(words: &[String]) -> fullstop::Result<()> {
    let runs = Runs::open()?;
    let group = runs.group(GROUP)?;
    group.open()?;
    for turn in 1..=TURNS {
        println!("turn {turn}");
        let run = command(words).name(format!("turn-{turn}")).spawn().await?;
        let report = follow(&run).await?;
        println!("  {}: {}, proof {:?}", report.state.word(), report.reason(), report.proof);
    }
    // Whatever is still there is stopped, and nothing can start any more.
    let closed = group.close().await?;
    println!("group closed, clean: {}", closed.is_clean());
    Ok(())
}

/// The command asked for, or one that leaves a server behind, as agents do.
fn command(words: &[String]) -> Command {
    let command = match words {
        [] => Command::new("sh").args(["-c", "setsid sleep 60 & echo '  working'; exec sleep 60"]),
        [program, rest @ ..] => Command::new(program).args(rest),
    };
    command.agent(Agent::Auto).grace(Duration::from_secs(1)).group(GROUP)
}

/// Waits for the end of a turn, or brings it about.
async fn follow(run: &Run) -> fullstop::Result<Report> {
    match run.wait_for(Some(TURN)).await {
        Err(Error::NotEnded { .. }) => {
            for process in run.processes()? {
                println!("  {} {}", process.pid, process.command);
            }
            run.stop().await
        }
        ended => ended,
    }
}
