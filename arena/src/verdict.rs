//! Whether a failure counts. A time that was missed while even the heartbeat was
//! late says nothing: that verdict is void, and the scenario is played again.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::{Failure, Missed, Outcome};

/// A scenario is played at most this often. Void to the end, it has failed:
/// nothing was shown.
const PLAYS: usize = 5;

/// A heartbeat is late if it was so by more than this part of the bound.
const PART: u32 = 10;

/// What a suite may have of void verdicts, in a hundred scenarios.
const TOLERATED: usize = 2;

/// A verdict that does not count, and why.
#[derive(Debug)]
struct Void {
    bound: Duration,
    late: Duration,
    /// What seemed to have failed.
    sentence: String,
}

impl Void {
    fn of(failure: &Failure, lateness: impl Fn(Missed) -> Duration) -> Option<Self> {
        let missed = failure.missed?;
        let late = lateness(missed);
        let sentence = failure.text.lines().next().unwrap_or_default().to_owned();
        let void = Self { bound: missed.bound, late, sentence };
        (late > missed.bound / PART).then_some(void)
    }
}

impl fmt::Display for Void {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bound, late, sentence } = self;
        write!(f, "the heartbeat was late by {late:.1?} of {bound:?}: {sentence}")
    }
}

/// Every scenario that was played, as far as its verdicts were void.
#[derive(Default)]
pub(crate) struct Verdicts(Mutex<Book>);

#[derive(Default)]
struct Book {
    played: usize,
    given_up: usize,
    void: Vec<(String, Vec<Void>)>,
}

impl Verdicts {
    /// Plays a scenario until a verdict counts, or too often.
    pub(crate) fn play(
        &self,
        name: &str,
        mut once: impl FnMut() -> Outcome,
        lateness: impl Fn(Missed) -> Duration,
    ) -> Outcome {
        let mut voids = Vec::new();
        let mut given_up = false;
        let outcome = loop {
            let Err(mut failure) = once() else {
                break Ok(());
            };
            let Some(void) = Void::of(&failure, &lateness) else {
                break Err(failure);
            };
            voids.push(void);
            if voids.len() == PLAYS {
                given_up = true;
                failure.text = format!("void {PLAYS} times; the last time:\n{}", failure.text);
                break Err(failure);
            }
        };
        let mut book = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        book.played += 1;
        book.given_up += usize::from(given_up);
        if !voids.is_empty() {
            book.void.push((name.to_owned(), voids));
        }
        outcome
    }

    /// The closing lines, and whether the suite may pass.
    pub(crate) fn sum_up(&self) -> (String, bool) {
        let book = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Book { played, given_up, void } = &*book;
        let mut lines =
            vec![format!("void: {} of {played} played again, {given_up} given up", void.len())];
        for (name, voids) in void {
            lines.extend(voids.iter().map(|void| format!("    {name}: {void}")));
        }
        let tolerable = tolerable(void.len(), *played);
        if !tolerable {
            lines.push(format!("FAILED: more than {TOLERATED} in a hundred were void"));
        }
        (lines.join("\n"), tolerable)
    }
}

/// One is none: where few are played, a single one is more than two in a hundred.
fn tolerable(void: usize, played: usize) -> bool {
    void <= 1 || void * 100 <= played * TOLERATED
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{millis, seconds};

    fn late() -> Failure {
        let missed = Missed { bound: seconds(1), from: seconds(5), to: seconds(7) };
        Failure { text: "too late\nmore of it".into(), missed: Some(missed) }
    }

    /// Plays what `outcomes` says, with a heartbeat that was late by this much;
    /// returns the outcome, how often it was played, and the closing lines.
    fn played(outcomes: &[Outcome], lateness: Duration) -> (Outcome, usize, String) {
        let verdicts = Verdicts::default();
        let mut plays = 0;
        let once = || {
            plays += 1;
            outcomes[(plays - 1).min(outcomes.len() - 1)].clone()
        };
        let outcome = verdicts.play("a::b", once, |_| lateness);
        (outcome, plays, verdicts.sum_up().0)
    }

    const NONE: &str = "void: 0 of 1 played again, 0 given up";

    #[test]
    fn a_pass_is_a_pass() {
        assert_eq!(played(&[Ok(())], seconds(9)), (Ok(()), 1, NONE.into()));
    }

    #[test]
    fn what_is_not_about_time_fails_at_once() {
        let failure = || Err(Failure::from("a survivor"));
        assert_eq!(played(&[failure(), Ok(())], seconds(9)), (failure(), 1, NONE.into()));
    }

    #[test]
    fn what_is_late_by_itself_fails_at_once() {
        // A tenth of the bound is no excuse, more than that is one.
        let outcomes = [Err(late()), Ok(())];
        assert_eq!(played(&outcomes, millis(100)), (Err(late()), 1, NONE.into()));
        assert_eq!(played(&outcomes, millis(101)).1, 2);
    }

    #[test]
    fn what_is_void_is_played_again() {
        let (outcome, plays, said) = played(&[Err(late()), Err(late()), Ok(())], millis(300));
        assert_eq!((outcome, plays), (Ok(()), 3));
        let line = "    a::b: the heartbeat was late by 300.0ms of 1s: too late";
        assert_eq!(said, format!("void: 1 of 1 played again, 0 given up\n{line}\n{line}"));
    }

    #[test]
    fn a_failure_after_a_void_verdict_counts() {
        let failure = || Err(Failure::from("a survivor"));
        let (outcome, plays, _) = played(&[Err(late()), failure(), Ok(())], millis(300));
        assert_eq!((outcome, plays), (failure(), 2));
    }

    #[test]
    fn void_to_the_end_is_a_failure() {
        let (outcome, plays, said) = played(&[Err(late())], millis(300));
        assert_eq!(plays, 5);
        assert!(outcome.unwrap_err().text.starts_with("void 5 times; the last time:\ntoo late"));
        assert!(said.starts_with("void: 1 of 1 played again, 1 given up\n"), "{said}");
    }

    #[test]
    fn two_in_a_hundred_may_be_void() {
        for (void, played) in [(0, 1), (1, 1), (1, 99), (2, 100), (20, 1_017), (20, 1_000)] {
            assert!(tolerable(void, played), "{void} of {played}");
        }
        for (void, played) in [(2, 2), (2, 99), (3, 100), (21, 1_017)] {
            assert!(!tolerable(void, played), "{void} of {played}");
        }
    }
}
