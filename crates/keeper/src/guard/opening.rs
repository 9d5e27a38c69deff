//! A run's place on disk, under an id that is its own.

use crate::assignment::{Assignment, Verbosity};
use crate::fresh_id::fresh_id;
use crate::ledger::Ledger;
use fullstop_cage::linux::Blueprint;
use fullstop_protocol::{Placement, Timestamp};
use fullstop_store::{Store, StoreError};

/// How often another id is drawn. Once is a rare chance; more often is a fault of the disk.
const DRAWS: usize = 10;

/// Opens the run's ledger, and plans its cage, which is called by its id as well. A run in
/// the foreground goes on without a record; one that nobody could find again does not begin.
#[inline(never)]
pub fn open_ledger(
    assigned: &mut Assignment,
    started_at: Timestamp,
) -> Result<(Blueprint, Option<Ledger>), String> {
    // From the caller's directory: we shall leave that.
    if assigned.launch.state_dir.is_none() {
        assigned.set_state_dir(Store::default_path().ok());
    }
    let store = match assigned.state_dir().map_or_else(Store::open, Store::at) {
        Ok(store) => store,
        Err(error) => {
            let blueprint = Blueprint::new(assigned.spec.cage, &assigned.cgroup_name());
            return do_without(assigned, &error).map(|()| (blueprint, None));
        }
    };
    // The tag is made of the path without links, as every other command makes it.
    assigned.set_state_dir(Some(store.path().to_owned()));
    let mut draws = 0;
    loop {
        let blueprint = Blueprint::new(assigned.spec.cage, &assigned.cgroup_name());
        match Ledger::open(&store, assigned, &blueprint, started_at) {
            Ok(ledger) => return Ok((blueprint, Some(ledger))),
            // Another process has made the same id in the same tick.
            Err(error) if error.is_taken() && assigned.launch.generation == 1 && draws < DRAWS => {
                assigned.launch.id = fresh_id();
                draws += 1;
            }
            Err(error) => return do_without(assigned, &error).map(|()| (blueprint, None)),
        }
    }
}

/// Goes on without a record, and says so; an error, if the run may not.
fn do_without(assigned: &Assignment, error: &StoreError) -> Result<(), String> {
    if !can_do_without(assigned) {
        return Err(error.to_string());
    }
    if assigned.verbosity > Verbosity::Quiet {
        say!("{error}; this run has no record, and ps will not show it");
    }
    Ok(())
}

fn can_do_without(assigned: &Assignment) -> bool {
    assigned.launch.placement == Placement::Foreground
        && assigned.spec.group.is_none()
        && !assigned.spec.output.is_captured()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstop_core::cage::CagePreference;
    use fullstop_protocol::{Launch, Spec};

    #[test]
    fn a_run_whose_id_is_taken_gets_another() {
        let dir = std::env::temp_dir().join(format!("fullstop-opening-{}", std::process::id()));
        let store = Store::at(&dir).expect("a store");
        let mut assigned = Assignment {
            spec: Spec { cage: CagePreference::Tree, ..Spec::new(vec!["true".into()]) },
            launch: Launch::new(fresh_id(), Placement::Background),
            report: None,
            verbosity: Verbosity::Quiet,
        };
        assigned.set_state_dir(Some(dir.clone()));
        let taken = assigned.launch.id.clone();
        let (_, first) = open_ledger(&mut assigned, Timestamp::default()).expect("a ledger");
        assert_eq!(assigned.launch.id, taken);
        let (_, second) =
            open_ledger(&mut assigned, Timestamp::default()).expect("a ledger under another id");
        assert!(first.is_some() && second.is_some() && assigned.launch.id > taken);
        assert_eq!(store.all().expect("listed"), [taken, assigned.launch.id.clone()]);
        assigned.launch.generation = 2;
        open_ledger(&mut assigned, Timestamp::default())
            .expect_err("a restart is of this very run");
        std::fs::remove_dir_all(&dir).expect("removed");
    }
}
