//! A start that is dropped before it was answered leaves nothing that nobody knows of.

use fullstop::{Runs, blocking};
use std::error::Error;
use std::future::poll_fn;
use std::path::Path;
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

const ROUNDS: u32 = 100;
/// A start is polled about so often until it is answered.
const MOST_POLLS: u32 = 7;
/// Longer than anything that is meant to happen at once takes on a busy machine.
const SOON: Duration = Duration::from_mins(1);

#[test]
fn a_start_that_is_dropped_leaves_nothing_unknown() -> Result<(), Box<dyn Error>> {
    let dir = std::env::temp_dir().join(format!("fullstop-dropped-{}", std::process::id()));
    let runs = Runs::at(&dir)?;
    // By its argument the leader is known in `/proc`.
    let seconds = format!("61.{}", std::process::id());
    let mut answered = 0;
    for round in 0..ROUNDS {
        answered += u32::from(drop_after(&runs, &seconds, round)?);
    }
    assert!(answered < ROUNDS, "every start was answered: nothing was dropped");
    let is_over = || {
        let live = runs.live_ids().unwrap_or_default();
        live.is_empty() && !is_running(&seconds)
    };
    let until = Instant::now() + SOON;
    while !is_over() {
        assert!(Instant::now() < until, "left: {:?}", runs.live_ids());
        std::thread::yield_now();
    }
    std::fs::remove_dir_all(&dir)?;
    Ok(())
}

/// Begins a start, and drops it after some polls and a moment. Whether it was answered before;
/// then its run is stopped by the id.
fn drop_after(runs: &Runs, seconds: &str, round: u32) -> fullstop::Result<bool> {
    let polls = 1 + round % MOST_POLLS;
    let moment = Duration::from_micros(u64::from(round / MOST_POLLS) * 400);
    let run = blocking::wait(async {
        let mut start = pin!(runs.command("sleep").arg(seconds).start());
        let mut left = polls;
        poll_fn(|context| {
            left -= 1;
            match start.as_mut().poll(context) {
                Poll::Ready(run) => Poll::Ready(run.map(Some)),
                Poll::Pending if left == 0 => Poll::Ready(Ok(None)),
                Poll::Pending => Poll::Pending,
            }
        })
        .await
        .inspect(|_| std::thread::sleep(moment))
    })?;
    if let Some(run) = &run {
        blocking::wait(run.kill())?;
    }
    Ok(run.is_some())
}

fn is_running(seconds: &str) -> bool {
    let line = format!("sleep\0{seconds}\0");
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut lines = processes.map(|entry| read(&entry.path().join("cmdline")));
    lines.any(|found| found == line)
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}
