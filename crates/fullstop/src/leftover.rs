//! Cgroups that nobody needs any more.

use crate::error::Result;
use crate::runs::Runs;
use fullstop_cage::linux::probe::{is_populated, own_cgroup};
use fullstop_core::id::Id;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

/// What our cgroups are called, before the id of a run.
const PREFIX: &str = "fullstop-";
/// What those of a doctor are called, who may have been killed as well.
const OF_A_DOCTOR: &str = "doctor-";

/// A run that is being born or ends just now has an empty one for a moment, and it may
/// be written down in another directory than ours. So it is looked twice.
const MOMENT: Duration = Duration::from_millis(50);

/// How old one must be to be removed: no birth takes as long.
const OLD: Duration = Duration::from_secs(10);

/// Those beneath our own cgroup that are empty and of no unfinished run; nothing,
/// where there is no place for any.
pub(crate) fn leftovers(runs: &Runs) -> Option<BTreeSet<PathBuf>> {
    let place = own_cgroup()?;
    let mut left = empty(&place, &live(runs).ok()?);
    if !left.is_empty() {
        sleep(MOMENT);
        let again = empty(&place, &live(runs).ok()?);
        left.retain(|path| again.contains(path));
    }
    Some(left)
}

impl Runs {
    /// Removes the empty cgroups that killed runs have left beneath our own. The
    /// kernel refuses while anybody is inside, so that this can do no harm.
    pub fn remove_empty_cgroups(&self) -> Vec<PathBuf> {
        let old = |path: &PathBuf| {
            let made = fs::metadata(path).and_then(|meta| meta.modified()).ok();
            made.and_then(|made| made.elapsed().ok()).is_some_and(|age| age >= OLD)
        };
        let left = leftovers(self).unwrap_or_default();
        left.into_iter().filter(|path| old(path) && fs::remove_dir(path).is_ok()).collect()
    }
}

/// The names that unfinished runs have a right to.
fn live(runs: &Runs) -> Result<BTreeSet<String>> {
    let ids = runs.store().live()?;
    Ok(ids.iter().map(|id| format!("{PREFIX}{id}")).collect())
}

fn empty(place: &Path, live: &BTreeSet<String>) -> BTreeSet<PathBuf> {
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    let ours = entries.filter(|entry| {
        let name = entry.file_name();
        name.to_str().is_some_and(|name| is_ours(name) && !live.contains(name))
    });
    let paths = ours.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    paths.map(|entry| entry.path()).filter(|path| path.exists() && !is_populated(path)).collect()
}

/// Others may begin their names like we do.
fn is_ours(name: &str) -> bool {
    let rest = name.strip_prefix(PREFIX);
    rest.is_some_and(|rest| rest.starts_with(OF_A_DOCTOR) || rest.parse::<Id>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_we_make_is_ours() {
        let id = Id::new(1_800_000_000_000, 7);
        assert!(is_ours(&format!("fullstop-{id}")));
        assert!(is_ours("fullstop-doctor-42-0"));
        for other in ["fullstop", "fullstop-", "fullstop-arena-1-2", "fullstop.slice", "init.scope"]
        {
            assert!(!is_ours(other), "{other}");
        }
    }
}
