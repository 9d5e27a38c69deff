//! A run's place on disk, under an id that is its own.

use crate::fresh_id::fresh_id;
use crate::ledger::Ledger;
use crate::spec::{Ground, Loudness, Spec};
use fullstop_cage::linux::Blueprint;
use fullstop_store::{Store, StoreError};

/// How often another id is drawn. Once is a rare chance; more often is a fault of the disk.
const DRAWS: usize = 10;

/// Opens the run's ledger, and plans its cage, which is called by its id as well. A run in
/// the foreground goes on without a record; one that nobody could find again does not begin.
pub fn open_ledger(
    spec: &mut Spec,
    started_at: u64,
) -> Result<(Blueprint, Option<Ledger>), String> {
    // From the caller's directory: we shall leave that.
    spec.store = spec.store.take().or_else(|| Store::default_path().ok());
    let store = match spec.store.as_ref().map_or_else(Store::open, |path| Store::at(path)) {
        Ok(store) => store,
        Err(error) => {
            let blueprint = Blueprint::new(spec.cage, &spec.cgroup_name());
            return do_without(spec, &error).map(|()| (blueprint, None));
        }
    };
    // The tag is made of the path without links, as every other command makes it.
    spec.store = Some(store.path().to_owned());
    let mut draws = 0;
    loop {
        let blueprint = Blueprint::new(spec.cage, &spec.cgroup_name());
        match Ledger::open(&store, spec, &blueprint, started_at) {
            Ok(ledger) => return Ok((blueprint, Some(ledger))),
            // Another process has made the same id in the same tick.
            Err(error) if error.is_taken() && spec.generation == 1 && draws < DRAWS => {
                spec.id = fresh_id();
                draws += 1;
            }
            Err(error) => return do_without(spec, &error).map(|()| (blueprint, None)),
        }
    }
}

/// Goes on without a record, and says so; an error, if the run may not.
fn do_without(spec: &Spec, error: &StoreError) -> Result<(), String> {
    if !can_do_without(spec) {
        return Err(error.to_string());
    }
    if spec.loudness > Loudness::Quiet {
        say!("{error}; this run has no record, and ps will not show it");
    }
    Ok(())
}

fn can_do_without(spec: &Spec) -> bool {
    spec.ground == Ground::Front && spec.group.is_none() && !spec.streams.captures()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::HostPolicy;
    use fullstop_core::ladder::Ladder;
    use fullstop_core::machine::Plan;
    use fullstop_core::report::Wanted;
    use fullstop_core::words::OnExit;
    use fullstop_store::Streams;
    use std::path::Path;

    fn spec(store: &Path) -> Spec {
        Spec {
            id: fresh_id(),
            name: None,
            group: None,
            group_generations: None,
            generation: 1,
            argv: vec!["true".into()],
            env: Vec::new(),
            cwd: None,
            plan: Plan {
                ladder: Ladder::default(),
                on_exit: OnExit::Stop,
                timeout: None,
                no_output: None,
                idle: None,
            },
            cage: Wanted::Tree,
            on_host_exit: HostPolicy::Ignore,
            report: None,
            store: Some(store.to_owned()),
            ground: Ground::Back,
            streams: Streams::default(),
            secrets: Vec::new(),
            loudness: Loudness::Quiet,
        }
    }

    #[test]
    fn a_run_whose_id_is_taken_gets_another() {
        let dir = std::env::temp_dir().join(format!("fullstop-opening-{}", std::process::id()));
        let store = Store::at(&dir).expect("a store");
        let mut spec = spec(&dir);
        let taken = spec.id.clone();
        let (_, first) = open_ledger(&mut spec, 0).expect("a ledger");
        assert_eq!(spec.id, taken);
        let (_, second) = open_ledger(&mut spec, 0).expect("a ledger under another id");
        assert!(first.is_some() && second.is_some() && spec.id > taken);
        assert_eq!(store.all().expect("listed"), [taken, spec.id.clone()]);
        spec.generation = 2;
        open_ledger(&mut spec, 0).expect_err("a restart is of this very run");
        std::fs::remove_dir_all(&dir).expect("removed");
    }
}
