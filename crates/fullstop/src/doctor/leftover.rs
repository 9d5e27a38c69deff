//! Cgroups that nobody needs any more.

use super::finding::{Area, Finding};
use crate::leftover::leftovers;
use crate::runs::Runs;

/// Nothing, where there is no place for any.
pub fn finding(runs: &Runs) -> Option<Finding> {
    let left = leftovers(runs)?;
    Some(match left.first() {
        None => Finding::green(Area::State, "cgroups", "no empty cgroup is left over"),
        Some(first) => {
            let (count, first) = (left.len(), first.display());
            let what = format!("{count} left over, empty, of no unfinished run: {first}");
            Finding::yellow(Area::State, "cgroups", what, "fullstop sweep")
        }
    })
}
