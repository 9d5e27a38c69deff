//! Polling by hand, and asking the kernel.

use fullstop::{Command, Order, Run, Runs, blocking};
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// Longer than anything that is meant to happen at once takes on a busy machine.
pub const SOON: Duration = Duration::from_mins(1);

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Polls it so often, each time that it asks for it, and drops it then. What it came to, if it
/// came to an end before.
pub fn poll_times<T>(future: impl Future<Output = T>, times: usize) -> Option<T> {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    for left in (0..times).rev() {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(done) => return Some(done),
            Poll::Pending if left > 0 => thread::park(),
            Poll::Pending => {}
        }
    }
    None
}

pub fn finish<T>(future: impl Future<Output = T>) -> T {
    poll_times(future, usize::MAX).expect("it never ends")
}

pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + SOON;
    while !holds() {
        assert!(Instant::now() < until, "still not: {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// A sleeper that is known in `/proc` by its argument.
pub struct Sleeper {
    pub run: Run,
    seconds: String,
}

impl Sleeper {
    pub fn command(runs: &Runs, number: usize) -> (Command, String) {
        let seconds = format!("{}.{}", 1000 + number, std::process::id());
        (runs.command("sleep").arg(&seconds), seconds)
    }

    pub fn start(runs: &Runs, number: usize) -> fullstop::Result<Sleeper> {
        let (command, seconds) = Sleeper::command(runs, number);
        Ok(Sleeper { run: finish(command.start())?, seconds })
    }

    pub fn start_in(runs: &Runs, number: usize, group: &str) -> fullstop::Result<Sleeper> {
        let (command, seconds) = Sleeper::command(runs, number);
        Ok(Sleeper { run: finish(command.group(group).start())?, seconds })
    }

    pub fn lives(&self) -> bool {
        is_running(&self.seconds)
    }
}

pub fn is_running(seconds: &str) -> bool {
    let line = format!("sleep\0{seconds}\0");
    command_lines().any(|found| found == line)
}

pub fn any_sleeper_runs() -> bool {
    let end = format!(".{}\0", std::process::id());
    command_lines().any(|found| found.starts_with("sleep\0") && found.ends_with(&end))
}

fn command_lines() -> impl Iterator<Item = String> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.map(|entry| read(&entry.path().join("cmdline")))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// Whatever a check has left.
pub fn end_all(runs: &Runs) {
    let live = finish(runs.live()).unwrap_or_default();
    let all = fullstop::end_all(live, Order::Kill, |_, _| ());
    let _ = blocking::wait(async {
        all.await;
        Ok(())
    });
}
