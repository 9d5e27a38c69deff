//! `bench-follow STATE`: a program that embeds the library, and follows the log of every live
//! run. It says a line once it follows them all. Each line of theirs tells the time at which
//! it was written; it says how many microseconds later the line was here.
#![forbid(unsafe_code)]

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use fullstop::{LogEntry, Logs, Run, Runs, blocking};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [state] = words.as_slice() else {
        eprintln!("usage: bench-follow STATE");
        return ExitCode::from(2);
    };
    match Runs::at(Path::new(state)).map_err(Into::into).and_then(|runs| follow_all(&runs)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-follow: {error}");
            ExitCode::FAILURE
        }
    }
}

fn follow_all(runs: &Runs) -> Result<(), Box<dyn Error>> {
    blocking::wait(async {
        let live = runs.live().await?;
        let all_follow = Arc::new(Barrier::new(live.len() + 1));
        let mut followers = JoinSet::new();
        for run in live {
            followers.spawn(follow(run, Arc::clone(&all_follow)));
        }
        all_follow.wait().await;
        say("all");
        while let Some(followed) = followers.join_next().await {
            if let Ok(Err(error)) = followed {
                return Err(error);
            }
        }
        Ok(())
    })?;
    Ok(())
}

/// The first line of each is there before it is followed.
async fn follow(run: Run, all_follow: Arc<Barrier>) -> fullstop::Result<()> {
    let mut log = run.logs().follow();
    let _ = next_line(&mut log).await?;
    all_follow.wait().await;
    while let Some(line) = next_line(&mut log).await? {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        if let Ok(written) = line.trim().parse::<u128>() {
            say(&(now.saturating_sub(written) / 1000).to_string());
        }
    }
    Ok(())
}

async fn next_line(log: &mut Logs) -> fullstop::Result<Option<String>> {
    Ok(match log.next().await? {
        Some(LogEntry::Text { bytes, .. }) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        Some(_) => Some(String::new()),
        None => None,
    })
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
