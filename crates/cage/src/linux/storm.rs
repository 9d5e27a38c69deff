//! Whether others are born faster than a step can ask them.

use std::collections::HashSet;

/// So many may come too late before it is called a storm: an agent that is asked to
/// leave starts a few commands of its own.
const FEW: usize = 64;

/// Those who came to us dead since the last step, and whom it never met: born too late
/// to be asked.
#[derive(Debug, Default)]
pub struct Latecomers {
    /// Whom the step met, dead or alive; nobody, if there was none.
    met: Option<HashSet<i32>>,
    late: usize,
}

impl Latecomers {
    pub fn of_a_step_that_met(met: HashSet<i32>) -> Latecomers {
        Latecomers { met: Some(met), late: 0 }
    }

    pub fn reaped(&mut self, pid: i32) {
        self.late += usize::from(self.met.as_ref().is_some_and(|met| !met.contains(&pid)));
    }

    /// Said once for each step.
    pub fn are_many(&mut self) -> bool {
        self.late > FEW && self.met.take().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_those_a_step_has_not_met_are_late() {
        let mut latecomers = Latecomers::of_a_step_that_met((2..1000).collect());
        (2..1000).for_each(|pid| latecomers.reaped(pid));
        (1000..1064).for_each(|pid| latecomers.reaped(pid));
        assert!(!latecomers.are_many());
        latecomers.reaped(1064);
        assert!(latecomers.are_many());
        assert!(!latecomers.are_many(), "said twice");
    }

    #[test]
    fn before_the_first_step_nobody_is_late() {
        let mut latecomers = Latecomers::default();
        (2..1000).for_each(|pid| latecomers.reaped(pid));
        assert!(!latecomers.are_many());
    }
}
