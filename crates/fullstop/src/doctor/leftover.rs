//! Empty cgroups of runs that are over, and live runs that are not listed.

use super::finding::{Area, Finding};
use super::records::names;
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

/// Runs that live, and are not listed.
pub fn unlisted(runs: &Runs) -> Finding {
    let name = "unlisted";
    let found = match runs.files().unlisted() {
        Ok(found) => found,
        Err(error) => {
            let next = "see why: ls -l /proc/self /sys/fs/cgroup";
            return Finding::yellow(Area::State, name, error.to_string(), next);
        }
    };
    match found.first() {
        None => Finding::green(Area::State, name, "every run that can be seen is listed"),
        Some(first) => {
            let others = match found.len() - 1 {
                0 => String::new(),
                _ => format!("; also {}", names(found[1..].iter().map(|run| run.id.as_str()))),
            };
            Finding::yellow(Area::State, name, format!("{first}{others}"), first.next())
        }
    }
}
