//! The clocks of a run: how long it may take, be silent, and be idle.

use crate::machine::Plan;
use crate::words::{Moment, Reason};
use serde::{Deserialize, Serialize};

/// When each clock of a run runs out. Without any, it may go on for ever.
///
/// ```
/// use fullstop_core::clocks::Clocks;
/// use fullstop_core::machine::Plan;
/// use fullstop_core::words::{Moment, OnExit, Reason};
/// use std::time::Duration;
///
/// let second = |n| Moment::at(Duration::from_secs(n));
/// let mut plan = Plan { ladder: "kill".parse()?, on_exit: OnExit::Stop, timeout: None, no_output: None, idle: None };
/// plan.no_output = Some(Duration::from_secs(10));
///
/// let clocks = Clocks::new(&plan, second(0)).output(&plan, second(7));
/// assert_eq!(clocks.next(), Some((second(17), Reason::NoOutputTimeout)));
///
/// // Time in a pause does not count.
/// let paused = clocks.pause(second(8));
/// assert_eq!(paused.next(), None);
/// assert_eq!(paused.resume(second(100)).next(), Some((second(109), Reason::NoOutputTimeout)));
/// # Ok::<(), fullstop_core::ladder::LadderError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Clocks {
    pub overall: Option<Moment>,
    pub silence: Option<Moment>,
    pub idle: Option<Moment>,
    /// Since when they stand still. The deadlines are moved when they go on.
    pub paused: Option<Moment>,
}

impl Clocks {
    /// Starts all clocks that the plan has.
    pub fn new(plan: &Plan, now: Moment) -> Clocks {
        let overall = plan.timeout.map(|patience| now + patience);
        Clocks { overall, ..Clocks::default() }.output(plan, now)
    }

    /// The first clock to run out, when, and what the run then ends for. If several run out at
    /// once, the plainest reason stands: overall, silent, idle. None does in a pause.
    pub fn next(&self) -> Option<(Moment, Reason)> {
        if self.paused.is_some() {
            return None;
        }
        let all = [
            (self.overall, Reason::OverallTimeout),
            (self.silence, Reason::NoOutputTimeout),
            (self.idle, Reason::IdleTimeout),
        ];
        // Of equal ones, the first is the least.
        all.into_iter().filter_map(|(at, reason)| Some((at?, reason))).min_by_key(|(at, _)| *at)
    }

    /// Something was written: neither silent nor idle.
    #[must_use]
    pub fn output(self, plan: &Plan, now: Moment) -> Clocks {
        let silence = plan.no_output.map(|patience| self.begin(now) + patience);
        Clocks { silence, ..self.busy(plan, now) }
    }

    /// Processor time was used: silent perhaps, but not idle.
    #[must_use]
    pub fn busy(self, plan: &Plan, now: Moment) -> Clocks {
        Clocks { idle: plan.idle.map(|patience| self.begin(now) + patience), ..self }
    }

    /// Lets the clocks stand still. A second pause joins the first.
    #[must_use]
    pub fn pause(self, now: Moment) -> Clocks {
        Clocks { paused: self.paused.or(Some(now)), ..self }
    }

    /// Lets them go on where they stood.
    #[must_use]
    pub fn resume(self, now: Moment) -> Clocks {
        let Some(since) = self.paused else {
            return self;
        };
        let later = |at: Option<Moment>| at.map(|at| at + now.since(since));
        Clocks {
            overall: later(self.overall),
            silence: later(self.silence),
            idle: later(self.idle),
            paused: None,
        }
    }

    /// What begins anew in a pause begins where the clocks stand, so that its whole patience is
    /// left when they go on.
    fn begin(self, now: Moment) -> Moment {
        self.paused.unwrap_or(now)
    }
}
