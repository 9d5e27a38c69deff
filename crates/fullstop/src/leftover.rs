//! Cgroups that no run needs any more.

use crate::error::Result;
use crate::helpers::help_long;
use crate::runs::Runs;
use fullstop_cage::linux::probe::{is_populated, own_cgroup};
use fullstop_core::id::Id;
use fullstop_store::Tag;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

/// What the names of a doctor's cgroups begin with. A doctor may have been killed, too.
const OF_A_DOCTOR: &str = "fullstop-doctor-";

/// A run that ends just now has an empty one for a moment. So it is looked twice.
const MOMENT: Duration = Duration::from_millis(50);

/// How old one must be to be removed: no birth takes as long.
const OLD: Duration = Duration::from_secs(10);

/// Those of this state directory, beneath our own cgroup, that are empty and of no
/// unfinished run; nothing, where there is no place for any, or it cannot be told.
pub(crate) fn leftovers(runs: &Runs) -> Option<BTreeSet<PathBuf>> {
    let place = own_cgroup()?;
    let mut left = empty(runs, &place)?;
    if !left.is_empty() {
        sleep(MOMENT);
        let again = empty(runs, &place)?;
        left.retain(|path| again.contains(path));
    }
    Some(left)
}

impl Runs {
    /// Removes the empty cgroups that killed runs have left beneath our own. The
    /// kernel refuses while anybody is inside, so that this can do no harm.
    pub async fn remove_empty_cgroups(&self) -> Result<Vec<PathBuf>> {
        help_long(self.clone(), |runs| Ok(removed(runs))).await
    }
}

fn removed(runs: &Runs) -> Vec<PathBuf> {
    let old = |path: &PathBuf| {
        let made = fs::metadata(path).and_then(|meta| meta.modified()).ok();
        made.and_then(|made| made.elapsed().ok()).is_some_and(|age| age >= OLD)
    };
    let left = leftovers(runs).unwrap_or_default();
    left.into_iter().filter(|path| old(path) && fs::remove_dir(path).is_ok()).collect()
}

fn empty(runs: &Runs, place: &Path) -> Option<BTreeSet<PathBuf>> {
    let live: BTreeSet<Id> = runs.store().live().ok()?.into_iter().collect();
    let mut empty = BTreeSet::new();
    for entry in fs::read_dir(place).ok()? {
        let entry = entry.ok()?;
        let is_left = entry.file_name().to_str().is_some_and(|name| is_left(runs, &live, name));
        let path = entry.path();
        if is_left && entry.file_type().is_ok_and(|kind| kind.is_dir()) && !is_populated(&path) {
            empty.insert(path);
        }
    }
    Some(empty)
}

/// Whether it is one of this state directory, and of no unfinished run. Others may begin
/// their names like we do, and what another state directory has made is not ours.
fn is_left(runs: &Runs, live: &BTreeSet<Id>, name: &str) -> bool {
    match Tag::of_cgroup(name) {
        Some((id, Some(tag))) => tag.is_of(runs.path()) && !live.contains(&id),
        // Made before there were tags: it is ours if the run is written down here.
        Some((id, None)) => {
            !live.contains(&id) && runs.store().is_gone(&id).is_ok_and(|gone| !gone)
        }
        None => name.starts_with(OF_A_DOCTOR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_this_state_directory_has_made_is_left_over() {
        let path =
            |name| std::env::temp_dir().join(format!("fullstop-{name}-{}", std::process::id()));
        let runs = Runs::at(&path("leftover")).expect("a state directory");
        let (id, other) = (Id::new(1_800_000_000_000, 7), Id::new(1_800_000_000_000, 8));
        let dir = runs.store().create(&id).expect("a run");
        let own = Tag::new(&id, runs.path()).cgroup();
        let foreign = Tag::new(&id, &path("elsewhere")).cgroup();
        let unfinished = BTreeSet::from([id.clone()]);
        let none = BTreeSet::new();
        assert!(is_left(&runs, &none, &own) && !is_left(&runs, &unfinished, &own));
        assert!(is_left(&runs, &none, &format!("fullstop-{id}")), "it is written down here");
        assert!(!is_left(&runs, &unfinished, &format!("fullstop-{id}")));
        assert!(is_left(&runs, &none, "fullstop-doctor-42-0"));
        let untold = format!("fullstop-{other}");
        for name in [&foreign, &untold, "fullstop", "fullstop-", "fullstop-arena-1-2", "init.scope"]
        {
            assert!(!is_left(&runs, &none, name), "{name}");
        }
        dir.abandon();
        let _ = fs::remove_dir_all(runs.path());
    }
}
