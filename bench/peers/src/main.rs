//! Two spawn libraries for Rust in the two shapes the bench knows.
//!
//! `bench-peers LIBRARY run CMD…` stands in front of a command and stops it, by
//! the library's own means, on SIGTERM. `bench-peers LIBRARY serve` spawns the
//! tab-separated command lines it reads and answers each with two readings of
//! the monotonic clock: before the spawn, and after the wait.
#![forbid(unsafe_code)]

mod kit;
mod wrap;

use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::time::Duration;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Between the polite signal and the kill.
const GRACE: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("bench-peers: {error}");
            return ExitCode::FAILURE;
        }
    };
    let outcome = match words.as_slice() {
        ["process-wrap", "run", command @ ..] => runtime.block_on(wrap::run(command)),
        ["processkit", "run", command @ ..] => runtime.block_on(kit::run(command)),
        ["process-wrap", "serve"] => serve(|words| runtime.block_on(wrap::once(words))),
        ["processkit", "serve"] => serve(|words| runtime.block_on(kit::once(words))),
        _ => Err("usage: bench-peers process-wrap|processkit run CMD… | serve".into()),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("bench-peers: {error}");
        ExitCode::FAILURE
    })
}

fn serve(once: impl Fn(&[&str]) -> Outcome<()>) -> Outcome<ExitCode> {
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split('\t').collect();
        let start = now_ns();
        once(&words)?;
        let end = now_ns();
        writeln!(std::io::stdout(), "{start} {end}")?;
    }
    Ok(ExitCode::SUCCESS)
}

fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}
