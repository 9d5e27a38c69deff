//! The caller's polls do nothing but hand over and wait: counted in read system calls of the
//! polling thread, which no stall of the machine can make more.

use crate::kit::{Sleeper, finish};
use fullstop::{Order, Run, Runs, end_all};
use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};

const RUNS: usize = 20;

/// How often this thread has read from a file or a pipe; nothing where the kernel does not count.
fn reads() -> Option<u64> {
    let counts = std::fs::read_to_string("/proc/thread-self/io").ok()?;
    counts.lines().find_map(|line| line.strip_prefix("syscr: ")?.parse().ok())
}

/// A future, and the reads in its polls.
struct Counted<'a, F> {
    future: Pin<Box<F>>,
    reads: &'a mut u64,
}

impl<F: Future> Future for Counted<'_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        // What the counting itself reads is the same each time.
        let own = reads().zip(reads()).map_or(0, |(first, second)| second - first);
        let before = reads();
        let polled = self.future.as_mut().poll(context);
        if let Some((before, after)) = before.zip(reads()) {
            *self.reads += (after - before).saturating_sub(own);
        }
        polled
    }
}

fn counted<F: Future>(reads: &mut u64, future: F) -> F::Output {
    finish(Counted { future: Box::pin(future), reads })
}

pub fn read_nothing(runs: &Runs) -> Result<(), Box<dyn Error>> {
    if reads().is_none() {
        println!("this kernel does not count a thread's reads: nothing can be said");
        return Ok(());
    }
    let mut control = 0;
    counted(&mut control, async { std::fs::read("/proc/self/stat") })?;
    assert!(control > 0, "a read was not counted");

    let mut reads = 0;
    for number in 0..RUNS {
        let (command, _) = Sleeper::command(runs, 40 + number);
        let run = counted(&mut reads, command.start())?;
        match number % 4 {
            0 => drop(counted(&mut reads, run.stop())?),
            1 => drop(counted(&mut reads, run.kill())?),
            2 => {
                counted(&mut reads, run.ask_to_stop())?;
                counted(&mut reads, run.wait())?;
            }
            _ => drop(counted(&mut reads, run.restart())?),
        }
    }
    let left: Vec<Run> = runs.live()?;
    assert_eq!(left.len(), RUNS / 4);
    counted(&mut reads, end_all(left, Order::Stop, |_, _| ()));
    assert_eq!(reads, 0, "reads in polls of ours");
    Ok(())
}
