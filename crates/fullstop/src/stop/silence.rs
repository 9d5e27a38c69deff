//! Telling a process that hangs from one that is only kept waiting.

use fullstop_cage::linux::OwnTime;
use std::pin::pin;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// How often the silent process is looked at. A look that comes late by as much again was late
/// by our own starvation, which says nothing about the other process.
const SLICE: Duration = Duration::from_millis(100);
/// However starved the machine is, no process is waited for longer than this.
pub(crate) const LONGEST: Duration = Duration::from_mins(1);

/// How long a process has been silent, in time of its own: time in which it waited for a
/// processor does not count, and if a timer of ours was late, the count starts anew.
pub(crate) struct Silence<W> {
    /// Which process it is that does not answer; asked only if that takes a while.
    whom: W,
    own_time: Option<OwnTime>,
    began: Instant,
    looked: Instant,
    silent: Duration,
}

impl<W: Fn() -> Option<i32>> Silence<W> {
    pub fn of(whom: W) -> Silence<W> {
        let now = Instant::now();
        Silence { whom, own_time: None, began: now, looked: now, silent: Duration::ZERO }
    }

    /// What was until now was no silence.
    pub fn forget(&mut self) {
        self.start_anew();
        self.began = Instant::now();
    }

    fn start_anew(&mut self) {
        self.look_away();
        self.silent = Duration::ZERO;
    }

    /// What was since the last look does not count.
    pub fn look_away(&mut self) {
        self.looked = Instant::now();
        self.own_time = None;
    }

    /// Waits for that as long as the silence is shorter than `limit`.
    pub async fn wait_for<T>(
        &mut self,
        limit: Duration,
        what: impl Future<Output = T>,
    ) -> Option<T> {
        let mut what = pin!(what);
        loop {
            if let Ok(done) = timeout_at(self.looked + SLICE, what.as_mut()).await {
                return Some(done);
            }
            self.look();
            if self.silent >= limit || self.began.elapsed() >= LONGEST.max(limit) {
                return None;
            }
        }
    }

    fn look(&mut self) {
        let passed = self.looked.elapsed();
        if passed >= SLICE * 2 {
            return self.start_anew();
        }
        self.looked += passed;
        match &mut self.own_time {
            Some(own_time) => self.silent += own_time.look(),
            None => {
                self.own_time = (self.whom)().map(OwnTime::of);
                self.silent += passed;
            }
        }
    }
}

#[cfg(test)]
mod tests;
