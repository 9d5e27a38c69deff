//! The driver is the init of its world: whatever is orphaned becomes its
//! child, and must be reaped at once so that no zombie is taken for life or
//! for dirt. One thread does all the waiting; exit statuses are asked of it.

use std::collections::HashMap;
use std::fmt;
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rustix::process::{WaitId, WaitIdOptions, WaitOptions, WaitStatus, wait, waitid};

use crate::{Context, Deadline, Outcome};

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    Code(i32),
    Signal(i32),
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "status {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

/// A child of the driver.
#[derive(Debug, Clone)]
pub struct Spawned {
    pub pid: i32,
    pub label: String,
}

#[derive(Default)]
struct Shared {
    book: Mutex<Book>,
    changed: Condvar,
}

#[derive(Default)]
struct Book {
    births: u64,
    ended: HashMap<i32, Ended>,
}

pub(crate) struct Reaper {
    shared: Arc<Shared>,
}

impl Reaper {
    pub(crate) fn start() -> Self {
        let shared = Arc::new(Shared::default());
        let ours = Arc::clone(&shared);
        std::thread::spawn(move || reap_for_ever(&ours));
        Self { shared }
    }

    /// Spawns under the book's lock: until `spawn` has returned nobody reaps,
    /// so the standard library may reap its own failed exec.
    pub(crate) fn spawn(
        &self,
        label: &str,
        command: &mut Command,
    ) -> Outcome<(Spawned, std::process::Child)> {
        let mut book = self.shared.lock();
        let child = command.spawn().context(format!("cannot start {label} ({command:?})"))?;
        let pid = i32::try_from(child.id()).context("process id")?;
        book.births += 1;
        book.ended.remove(&pid);
        self.shared.changed.notify_all();
        Ok((Spawned { pid, label: label.to_owned() }, child))
    }

    /// Waits for the end of a child.
    pub(crate) fn wait(&self, pid: i32, deadline: Deadline) -> Option<Ended> {
        let mut book = self.shared.lock();
        loop {
            if let Some(ended) = book.ended.get(&pid) {
                return Some(*ended);
            }
            if deadline.passed() {
                return None;
            }
            book = self
                .shared
                .changed
                .wait_timeout(book, deadline.left())
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn reap_for_ever(shared: &Shared) {
    loop {
        let births = shared.lock().births;
        // Look without reaping: reaping is done under the lock.
        match waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Ok(_) => reap_what_is_dead(shared),
            // No child, hence no descendant either: sleep until one is born.
            Err(rustix::io::Errno::CHILD) => {
                let mut book = shared.lock();
                while book.births == births {
                    book = shared.changed.wait(book).unwrap_or_else(PoisonError::into_inner);
                }
            }
            Err(_) => {}
        }
    }
}

fn reap_what_is_dead(shared: &Shared) {
    let mut book = shared.lock();
    while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
        book.ended.insert(pid.as_raw_nonzero().get(), ended(status));
    }
    shared.changed.notify_all();
}

fn ended(status: WaitStatus) -> Ended {
    match status.terminating_signal() {
        Some(signal) => Ended::Signal(signal),
        None => Ended::Code(status.exit_status().unwrap_or(-1)),
    }
}
