//! `bench-ticker STATE RUNS`: a program that embeds the library on a runtime of one thread, where
//! a ticker wants its turn every millisecond. It ticks alone, and then beside so many runs that
//! start and stop; meanwhile another thread, which knows nothing of runs, ticks as well, and
//! tells what the machine does to any ticker. It says how late all three were.
#![forbid(unsafe_code)]

use std::error::Error;
use std::path::Path;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use fullstop::Runs;
use fullstop_bench::soak::{Lateness, Ticked};
use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::Builder;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::sleep_until;

/// How often the ticker wants its turn.
const TICK: Duration = Duration::from_millis(1);
/// How long it ticks alone.
const ALONE: Duration = Duration::from_secs(5);
/// So many runs start or stop at a time.
const AT_ONCE: usize = 32;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [state, count] = words.as_slice() else {
        eprintln!("usage: bench-ticker STATE RUNS");
        return ExitCode::from(2);
    };
    match measure(Path::new(state), count) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-ticker: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(state: &Path, count: &str) -> Result<(), Box<dyn Error>> {
    let (runs, count) = (Runs::at(state)?, count.parse()?);
    let until = Instant::now() + ALONE;
    let alone = block_on(tick(|| Instant::now() < until))?;
    let over = Arc::new(AtomicBool::new(false));
    let theirs = Arc::clone(&over);
    let control = std::thread::spawn(move || {
        let ticked = block_on(tick(|| !theirs.load(Ordering::Relaxed)));
        ticked.unwrap_or_default()
    });
    let done = block_on(beside(&runs, count, &over))?;
    let control = control.join().map_err(|_| "the control has panicked")?;
    let ticked = Ticked { alone: lateness(alone), control: lateness(control), ..done };
    println!("{}", serde_json::to_string(&ticked)?);
    Ok(())
}

fn block_on<T>(what: impl Future<Output = T>) -> Result<T, std::io::Error> {
    Ok(Builder::new_current_thread().enable_all().build()?.block_on(what))
}

/// How late each tick was, in microseconds.
async fn tick(goes_on: impl Fn() -> bool) -> Vec<u64> {
    let mut late = Vec::new();
    while goes_on() {
        let due = Instant::now() + TICK;
        sleep_until(due.into()).await;
        late.push(u64::try_from(due.elapsed().as_micros()).unwrap_or(u64::MAX));
    }
    late
}

/// A ticker, and runs that start and stop, on one thread.
async fn beside(runs: &Runs, count: usize, over: &Arc<AtomicBool>) -> Ticked {
    let (room, theirs) = (Arc::new(Semaphore::new(AT_ONCE)), Arc::clone(over));
    let ticker = tokio::spawn(tick(move || !theirs.load(Ordering::Relaxed)));
    let mut all = JoinSet::new();
    for _ in 0..count {
        let (command, room) = (runs.command("sleep").arg("600"), Arc::clone(&room));
        all.spawn(Measured::new(async move {
            let _turn = room.acquire().await;
            command.spawn().await?.stop().await
        }));
    }
    let mut ticked = Ticked::default();
    while let Some(ended) = all.join_next().await {
        let Ok((ended, longest)) = ended else { continue };
        ticked.longest_poll_us = ticked.longest_poll_us.max(longest);
        match ended {
            Ok(report) => ticked.proven += usize::from(report.is_proven()),
            Err(error) => *ticked.failures.entry(error.to_string()).or_default() += 1,
        }
    }
    over.store(true, Ordering::Relaxed);
    ticked.beside = lateness(ticker.await.unwrap_or_default());
    ticked
}

/// A future, and the most processor time that one poll of it has taken.
struct Measured<F> {
    future: Pin<Box<F>>,
    longest_us: u64,
}

impl<F> Measured<F> {
    fn new(future: F) -> Measured<F> {
        Measured { future: Box::pin(future), longest_us: 0 }
    }
}

impl<F: Future> Future for Measured<F> {
    type Output = (F::Output, u64);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let before = processor_us();
        let polled = self.future.as_mut().poll(context);
        self.longest_us = self.longest_us.max(processor_us().saturating_sub(before));
        polled.map(|done| (done, self.longest_us))
    }
}

/// What this thread has used so far.
fn processor_us() -> u64 {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    let micros = used.tv_sec * 1_000_000 + used.tv_nsec / 1000;
    u64::try_from(micros).unwrap_or_default()
}

fn lateness(mut late: Vec<u64>) -> Lateness {
    late.sort_unstable();
    let at = |per_mille: usize| {
        late.get((late.len() * per_mille / 1000).min(late.len().saturating_sub(1)))
    };
    let at = |per_mille| at(per_mille).copied().unwrap_or_default();
    Lateness { ticks: late.len(), median_us: at(500), most_us: at(990), worst_us: at(1000) }
}
