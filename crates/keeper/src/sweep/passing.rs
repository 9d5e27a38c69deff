//! Sweeps that a command does on its way to something else.
//!
//! The rule: what a command pays for other runs is bounded, in looks and in time, however
//! many runs live beside it and whatever does not die. What is not reached now is left to a
//! later command, or to `fullstop sweep`.

use super::{Mode, is_lost, sweep_one};
use crate::ledger::unix_us;
use fullstop_cage::linux::now;
use fullstop_core::id::Id;
use fullstop_core::ladder::KILL_PATIENCE;
use fullstop_store::{Result, Store};
use std::time::Duration;

/// How many unfinished runs `run`, `start` and `stop ID` look at. A look is three system
/// calls, and a start must not become slower with each of the thousands of runs that live
/// beside it. As long as there are no more unfinished runs than this, the next command finds
/// every lost one.
pub const MOST_LOOKS: usize = 32;
/// How long a lost run may take to die before a command in front goes on without a proof.
pub(super) const PATIENCE: Duration = Duration::from_millis(300);
/// How long all of them may take together, before a list of all unfinished runs is shown.
const BEFORE_A_LIST: Duration = Duration::from_secs(5);
/// How long a guard's child may take for all of them together, beside the guard's own run.
const BESIDE_A_RUN: Duration = Duration::from_secs(10);
/// Killed processes need a moment to die: with less time left, no further run is begun with.
const ENOUGH: Duration = Duration::from_millis(100);

/// Ends lost runs on the way to something else, among no more than [`MOST_LOOKS`] unfinished
/// ones. Those that do not die soon are left to a later sweep, and nothing is said.
pub fn sweep_in_passing(store: &Store) {
    sweep_some(store, &lost_in_passing(store).unwrap_or_default(), PATIENCE, PATIENCE);
}

/// Ends these lost runs on the way to a list of all unfinished runs.
pub fn sweep_before_list(store: &Store, lost: &[Id]) {
    sweep_some(store, lost, BEFORE_A_LIST, PATIENCE);
}

/// Ends these lost runs while another run goes on.
pub fn sweep_beside_run(store: &Store, lost: &[Id]) {
    sweep_some(store, lost, BESIDE_A_RUN, KILL_PATIENCE);
}

/// The lost runs among no more than [`MOST_LOOKS`] unfinished ones.
pub fn lost_in_passing(store: &Store) -> Result<Vec<Id>> {
    let start = usize::try_from(unix_us()).unwrap_or_default();
    let some = some_of(store.live()?, start, MOST_LOOKS);
    Ok(some.into_iter().filter(|id| is_lost(store, id)).collect())
}

fn sweep_some(store: &Store, lost: &[Id], all_within: Duration, each_within: Duration) {
    let until = now() + all_within;
    for id in lost {
        let left = until.since(now());
        if left < ENOUGH {
            return;
        }
        sweep_one(store, id, Mode::Within(left.min(each_within)));
    }
}

/// All ids if there are no more than `most`. Otherwise as many neighbours, from a place on
/// that is another one each time, so that command by command all of them are reached.
fn some_of(mut ids: Vec<Id>, start: usize, most: usize) -> Vec<Id> {
    if ids.len() > most {
        let place = start % ids.len();
        ids.rotate_left(place);
        ids.truncate(most);
    }
    ids
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn ids(count: u64) -> Vec<Id> {
        let id = |number| format!("0tewhm6{number:06}").parse().expect("an id");
        (0..count).map(id).collect()
    }

    #[test]
    fn a_few_are_all_looked_at() {
        for count in [0, 1, 32] {
            assert_eq!(some_of(ids(count), 7, 32), ids(count));
        }
    }

    #[test]
    fn of_many_as_many_as_said_and_each_in_its_turn() {
        let mut seen = HashSet::new();
        for start in 0..100 {
            let some = some_of(ids(100), start, 32);
            assert_eq!(some.iter().collect::<HashSet<_>>().len(), 32);
            seen.extend(some);
        }
        assert_eq!(seen.len(), 100);
    }
}
