//! The caller's polls do nothing but hand over and wait: counted in read system calls of the
//! polling thread, which no stall of the machine can make more.

use crate::kit::{Sleeper, finish};
use fullstop::{Order, Ready, Run, Runs, Signal, Stdin, ask_all, end_all};
use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

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
    let left: Vec<Run> = finish(runs.live())?;
    assert_eq!(left.len(), RUNS / 4);
    counted(&mut reads, end_all(left, Order::Stop, |_, _| ()));
    assert_eq!(reads, 0, "reads in polls of ours");
    others(runs, &mut reads)?;
    assert_eq!(reads, 0, "reads in other polls of ours");
    Ok(())
}

fn others(runs: &Runs, reads: &mut u64) -> Result<(), Box<dyn Error>> {
    let hour = Duration::from_hours(1);
    let cat = runs.command("cat").stdin(Stdin::Pipe).group("polls").capture();
    let run = counted(reads, cat.spawn())?;
    counted(reads, run.send(b"ready\n"))?;
    counted(reads, run.wait_ready(&Ready::Line("ready".to_owned()), hour))?;
    counted(reads, run.wait_ready(&Ready::File("/".into()), hour))?;
    counted(reads, run.signal(Signal::WINCH))?;
    counted(reads, run.stay())?;
    counted(reads, run.close_stdin())?;
    counted(reads, run.wait_for(Some(hour)))?;
    let (command, _) = Sleeper::command(runs, 60);
    let run = counted(reads, command.group("polls").start())?;
    counted(reads, ask_all(vec![run.clone()], Order::Stop, |_, _| ()));
    counted(reads, run.stop_within(Duration::ZERO))?;
    let group = runs.group("polls")?;
    counted(reads, group.stop())?;
    assert!(counted(reads, group.close())?.is_clean());
    counted(reads, runs.command("true").output())?;
    Ok(())
}
