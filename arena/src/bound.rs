//! What was asserted about a time, and whether it held. A scenario says it in
//! one way, `ensure!(…, "sentence")` with an [`InTime`], so that a failure knows
//! by itself that it is about time.

use std::cmp::Ordering;
use std::fmt;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// Now, on the clock that all processes of this machine share.
pub(crate) fn monotonic() -> Duration {
    Duration::try_from(clock_gettime(ClockId::Monotonic)).unwrap_or_default()
}

/// A bound that did not hold, and the stretch of time it was measured over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missed {
    pub bound: Duration,
    /// On the monotonic clock, as is `to`.
    pub from: Duration,
    pub to: Duration,
}

impl Missed {
    /// The bound did not hold between this instant and now. `None` for no time at
    /// all: whoever does not wait asserts no time.
    pub(crate) fn since(start: Instant, bound: Duration) -> Option<Self> {
        let Took { from, to } = Took::since(start);
        Some(Self { bound, from, to }).filter(|_| !bound.is_zero())
    }
}

/// What [`ensure!`](crate::ensure) takes.
pub trait Condition {
    /// `Err` if it does not hold, with the bound if that was about a time.
    fn holds(self) -> Result<(), Option<Missed>>;
}

impl Condition for bool {
    fn holds(self) -> Result<(), Option<Missed>> {
        if self { Ok(()) } else { Err(None) }
    }
}

/// Did it happen in time?
#[derive(Debug, Clone, Copy)]
pub struct InTime(Result<(), Option<Missed>>);

impl InTime {
    pub(crate) const YES: Self = Self(Ok(()));

    pub(crate) fn no(missed: impl Into<Option<Missed>>) -> Self {
        Self(Err(missed.into()))
    }

    pub fn is_so(self) -> bool {
        self.0.is_ok()
    }
}

impl std::ops::Not for InTime {
    type Output = bool;

    fn not(self) -> bool {
        !self.is_so()
    }
}

impl Condition for InTime {
    fn holds(self) -> Result<(), Option<Missed>> {
        self.0
    }
}

/// How long something took, and when that was.
#[derive(Clone, Copy)]
pub struct Took {
    from: Duration,
    to: Duration,
}

impl Took {
    /// From this instant until now.
    pub fn since(start: Instant) -> Self {
        let to = monotonic();
        Self { from: to.saturating_sub(start.elapsed()), to }
    }

    pub fn within(self, bound: Duration) -> InTime {
        self.kept(bound, self < bound)
    }

    /// Whether a bound was kept somewhere in this stretch of time, as somebody
    /// else has measured it.
    pub fn kept(self, bound: Duration, kept: bool) -> InTime {
        if kept { InTime::YES } else { InTime::no(Missed { bound, from: self.from, to: self.to }) }
    }

    /// For sums with other times.
    pub(crate) fn lasted(self) -> Duration {
        self.to.saturating_sub(self.from)
    }
}

impl fmt::Debug for Took {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lasted().fmt(f)
    }
}

impl PartialEq<Duration> for Took {
    fn eq(&self, other: &Duration) -> bool {
        self.lasted() == *other
    }
}

impl PartialOrd<Duration> for Took {
    fn partial_cmp(&self, other: &Duration) -> Option<Ordering> {
        self.lasted().partial_cmp(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Deadline, Outcome, await_until, ensure, millis};

    fn took(bound: Duration) -> Outcome {
        let took = Took { from: millis(1_000), to: millis(1_500) };
        ensure!(took.within(bound), "it took {took:?}");
        Ok(())
    }

    #[test]
    fn a_bound_that_was_missed_is_known_to_the_failure() {
        assert!(took(millis(501)).is_ok());
        let failure = took(millis(500)).unwrap_err();
        assert_eq!(failure.text, "it took 500ms");
        let (from, to) = (millis(1_000), millis(1_500));
        assert_eq!(failure.missed, Some(Missed { bound: millis(500), from, to }));
    }

    #[test]
    fn a_wait_in_vain_is_about_its_patience() {
        fn waits(patience: Duration) -> Outcome {
            ensure!(await_until(patience, || false), "never");
            Ok(())
        }
        let missed = waits(millis(3)).unwrap_err().missed.unwrap();
        assert_eq!(missed.bound, millis(3));
        assert!(missed.to >= missed.from + missed.bound, "{missed:?}");
        assert_eq!(waits(Duration::ZERO).unwrap_err().missed, None);
    }

    #[test]
    fn a_deadline_knows_what_it_was_given() {
        let start = Instant::now().checked_sub(millis(40)).unwrap();
        let deadline = Deadline::from(start, millis(30));
        assert!(deadline.passed());
        let missed = deadline.missed("late").missed.unwrap();
        assert_eq!(missed.bound, millis(30));
        assert!(missed.to >= missed.from + millis(40), "{missed:?}");
        assert_eq!(Deadline::after(Duration::ZERO).missed("alive").missed, None);
    }

    #[test]
    fn anything_else_is_not_about_time() {
        fn plain() -> Outcome {
            ensure!(1 > 2, "no");
            Ok(())
        }
        assert_eq!(plain().unwrap_err().missed, None);
    }
}
