//! Whether others are born faster than a step can ask them.

use std::collections::HashSet;
use std::time::{Duration, Instant};

/// So many may come too late: a shell that is asked to leave may leave some of its
/// commands to us.
const MANY: usize = 64;
/// Whoever comes later than this after a step has nothing to do with it.
const WHILE: Duration = Duration::from_secs(1);

/// Those who came to us dead since the latest step that asked, and whom it had not met:
/// born since then, or too many to be met in its time.
#[derive(Debug, Default)]
pub struct Latecomers(Option<Since>);

#[derive(Debug)]
struct Since {
    step: Instant,
    /// The processes that it met, dead or alive, and that are not reaped yet.
    met: HashSet<i32>,
    alive: usize,
    late: usize,
}

impl Latecomers {
    pub fn of_a_step_that_met(met: HashSet<i32>, alive: usize) -> Latecomers {
        Latecomers(Some(Since { step: Instant::now(), met, alive, late: 0 }))
    }

    pub fn reaped(&mut self, pid: i32) {
        if let Some(since) = self.0.as_mut().filter(|since| since.step.elapsed() < WHILE) {
            since.late += usize::from(!since.met.remove(&pid));
        }
    }

    /// Others are being born: who counts now counts for nothing.
    pub fn are_many(&self) -> bool {
        self.0.as_ref().is_some_and(|since| since.late > MANY)
    }

    /// They are half as many as those who were met alive, and still come: asking is in vain.
    pub fn are_a_storm(&self) -> bool {
        self.are_many() && self.0.as_ref().is_some_and(|since| since.late > since.alive / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reaped(latecomers: &mut Latecomers, pids: std::ops::Range<i32>) {
        pids.for_each(|pid| latecomers.reaped(pid));
    }

    #[test]
    fn only_those_a_step_has_not_met_are_late() {
        let mut latecomers = Latecomers::of_a_step_that_met((2..1002).collect(), 10);
        reaped(&mut latecomers, 2..1002);
        reaped(&mut latecomers, 2000..2064);
        assert!(!latecomers.are_many());
        // A pid that was met belongs to another, once it was reaped.
        latecomers.reaped(2);
        assert!(latecomers.are_many());
    }

    #[test]
    fn a_crowd_may_have_more_latecomers() {
        let mut latecomers = Latecomers::of_a_step_that_met((2..1002).collect(), 1000);
        reaped(&mut latecomers, 2000..2500);
        assert!(latecomers.are_many() && !latecomers.are_a_storm());
        latecomers.reaped(2500);
        assert!(latecomers.are_a_storm());
    }

    #[test]
    fn before_the_first_step_nobody_is_late() {
        let mut latecomers = Latecomers::default();
        reaped(&mut latecomers, 2..1000);
        assert!(!latecomers.are_many());
    }
}
