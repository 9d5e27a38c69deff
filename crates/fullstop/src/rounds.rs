//! Looking at runs that no notice names.
//!
//! A notice is lost if its writer is killed between record and notice, or if the disk is
//! full; and a run whose keeper and guard are both killed has none. So a follower looks at
//! the unfinished runs now and then, in turn, and at so few at a time that many cost no more
//! than a few.

use fullstop_core::id::Id;
use std::collections::BTreeSet;
use std::ops::Bound::{Excluded, Unbounded};
use std::time::{Duration, Instant};

/// How often some of them are looked at.
pub(crate) const EVERY: Duration = Duration::from_secs(30);
/// How many are looked at then.
const AT_ONCE: usize = 200;

#[derive(Debug)]
pub(crate) struct Rounds {
    looked: Instant,
    /// The run that was looked at last.
    last: Option<Id>,
}

impl Rounds {
    /// All runs have just been looked at.
    pub fn new() -> Rounds {
        Rounds { looked: Instant::now(), last: None }
    }

    pub fn is_due(&self) -> bool {
        self.looked.elapsed() >= EVERY
    }

    /// Those of them whose turn it is.
    pub fn next(&mut self, unfinished: &BTreeSet<Id>) -> Vec<Id> {
        self.looked = Instant::now();
        let begin = self.last.take().map_or(Unbounded, Excluded);
        let behind = unfinished.range((begin.clone(), Unbounded));
        let before = unfinished.iter().take_while(|&id| match &begin {
            Excluded(last) => id <= last,
            _ => false,
        });
        let turn: Vec<Id> = behind.chain(before).take(AT_ONCE).cloned().collect();
        self.last = turn.last().cloned();
        turn
    }

    #[cfg(test)]
    pub fn make_due(&mut self) {
        self.looked = self.looked.checked_sub(EVERY).expect("a past");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(count: usize) -> BTreeSet<Id> {
        (0..count).map(|run| Id::new(1_800_000_000_000, run as u64)).collect()
    }

    #[test]
    fn a_few_are_all_looked_at_each_time() {
        let few = ids(3);
        let mut rounds = Rounds::new();
        for _ in 0..3 {
            assert_eq!(rounds.next(&few).into_iter().collect::<BTreeSet<_>>(), few);
        }
        assert!(rounds.next(&BTreeSet::new()).is_empty());
    }

    #[test]
    fn each_of_many_has_its_turn() {
        let many = ids(AT_ONCE * 2 + 1);
        let mut rounds = Rounds::new();
        let mut seen = BTreeSet::new();
        for _ in 0..3 {
            let turn = rounds.next(&many);
            assert_eq!(turn.len(), AT_ONCE);
            seen.extend(turn);
        }
        assert_eq!(seen, many);
        // The one that was looked at last may have ended since.
        let left: BTreeSet<Id> = many.into_iter().filter(|id| seen.last() != Some(id)).collect();
        assert_eq!(rounds.next(&left).len(), AT_ONCE);
    }

    #[test]
    fn they_are_looked_at_now_and_then() {
        let mut rounds = Rounds::new();
        assert!(!rounds.is_due());
        rounds.make_due();
        assert!(rounds.is_due());
        rounds.next(&ids(1));
        assert!(!rounds.is_due());
    }
}
