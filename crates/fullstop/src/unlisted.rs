//! Runs that live and are not listed: the state directory, or a part of it, was removed
//! under them, or what is written down of them is not true.
//!
//! They are found by the tag that their keepers and cgroups carry. It can be forged by any
//! process of the same user. So they are named, and no process is signalled.

use crate::error::{Error, Result};
use crate::files::StateFiles;
use crate::helpers::help_long;
use crate::runs::Runs;
use fullstop_cage::linux::probe::{is_populated, own_cgroup};
use fullstop_cage::linux::{OwnTime, inside, titled_founders};
use fullstop_core::id::Id;
use fullstop_keeper::name::KEEPER;
use fullstop_store::Tag;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A keeper that has put its run away needs a moment to leave, of its own time: what it
/// waits for a processor does not count. What is there after that is no such keeper.
const LEAVING: Duration = Duration::from_millis(500);
/// How soon it is looked again: twice as late each time.
const FIRST_NAP: Duration = Duration::from_millis(1);
const LONGEST_NAP: Duration = Duration::from_millis(50);
/// The longest wait, however busy the machine is.
const LONGEST: Duration = Duration::from_secs(10);

/// A run that lives, and is not among the unfinished of this state directory.
///
/// ```
/// # let dir = std::env::temp_dir().join(format!("fullstop-doc-unlisted-{}", std::process::id()));
/// # let runs = fullstop::Runs::at(&dir)?;
/// for run in fullstop::blocking::wait(runs.unlisted())? {
///     println!("{run}: {}", run.next());
/// }
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unlisted {
    /// The id that it shows.
    pub id: Id,
    /// The pid of a process that shows the title of its keeper.
    pub keeper: Option<i32>,
    /// Its cgroup, if a process is in it.
    pub cgroup: Option<PathBuf>,
    /// How many are in the cgroup.
    pub processes: usize,
}

impl Unlisted {
    fn new(id: &Id) -> Unlisted {
        Unlisted { id: id.clone(), keeper: None, cgroup: None, processes: 0 }
    }

    /// What to do about it.
    pub fn next(&self) -> String {
        match (self.keeper, &self.cgroup) {
            (None, Some(_)) if self.processes == 0 => "it is looked after elsewhere".to_owned(),
            (None, Some(cgroup)) => format!("echo 1 > {}/cgroup.kill ends it", cgroup.display()),
            (Some(keeper), _) => format!("kill -TERM {keeper} asks its keeper to stop it"),
            (None, None) => String::new(),
        }
    }
}

impl fmt::Display for Unlisted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "run {} lives, and is not listed:", self.id)?;
        match self.keeper {
            Some(keeper) => write!(f, " its keeper is pid {keeper}")?,
            None if self.processes == 0 => f.write_str(" it cannot be seen from here")?,
            None => f.write_str(" it has no keeper")?,
        }
        match &self.cgroup {
            Some(cgroup) if self.processes == 0 => {
                write!(f, ", but processes are in {}", cgroup.display())
            }
            Some(cgroup) => write!(f, ", {} processes in {}", self.processes, cgroup.display()),
            None => Ok(()),
        }
    }
}

impl Runs {
    /// The runs of this state directory that live, and are not among its unfinished ones:
    /// by the keepers that can be seen, and the cgroups beneath our own. Those of another
    /// state directory are not among them.
    pub async fn unlisted(&self) -> Result<Vec<Unlisted>> {
        help_long(self.files(), StateFiles::unlisted).await
    }
}

impl StateFiles {
    pub fn unlisted(&self) -> Result<Vec<Unlisted>> {
        let (begun, mut nap) = (Instant::now(), FIRST_NAP);
        let mut leaving: Option<(i32, OwnTime, Duration)> = None;
        loop {
            let found = found_twice(|| self.look_for_unlisted())?;
            let Some(keeper) = found.iter().find_map(|run| run.keeper) else { return Ok(found) };
            leaving.take_if(|(pid, ..)| *pid != keeper);
            let (_, time, had) =
                leaving.get_or_insert_with(|| (keeper, OwnTime::of(keeper), Duration::ZERO));
            *had += time.look();
            if *had >= LEAVING || begun.elapsed() >= LONGEST {
                return Ok(found);
            }
            sleep(nap);
            nap = (nap * 2).min(LONGEST_NAP);
        }
    }

    fn look_for_unlisted(&self) -> Result<Vec<Unlisted>> {
        let mut found = BTreeMap::new();
        let keepers = titled_founders(KEEPER).map_err(Error::io("look for keepers in /proc"))?;
        for (pid, tag) in keepers {
            if let Some(tag) = Tag::parse(&tag).filter(|tag| tag.is_of(self.path())) {
                found.entry(tag.id.clone()).or_insert_with(|| Unlisted::new(&tag.id)).keeper =
                    Some(pid);
            }
        }
        for (id, path) in self.living_cgroups()? {
            let run = found.entry(id.clone()).or_insert_with(|| Unlisted::new(&id));
            run.processes = inside(&path).len();
            run.cgroup = Some(path);
        }
        if !found.is_empty() {
            // Asked last: what was born meanwhile is listed by now.
            self.store().live()?.iter().for_each(|id| drop(found.remove(id)));
        }
        Ok(found.into_values().collect())
    }

    /// The cgroups beneath our own in which processes of this state directory's runs live.
    pub fn living_cgroups(&self) -> Result<BTreeMap<Id, PathBuf>> {
        let tagged = own_cgroup().map(|place| tagged(&place)).transpose()?.unwrap_or_default();
        let is_living = |(tag, path): &(Tag, PathBuf)| tag.is_of(self.path()) && is_populated(path);
        Ok(tagged.into_iter().filter(is_living).map(|(tag, path)| (tag.id, path)).collect())
    }
}

/// Those that two looks in a row have found. The first one alone takes a run for unlisted that
/// ends between the look into its cgroup and the look at the list.
fn found_twice(mut look: impl FnMut() -> Result<Vec<Unlisted>>) -> Result<Vec<Unlisted>> {
    let first = look()?;
    if first.is_empty() {
        return Ok(first);
    }
    let mut again = look()?;
    again.retain(|run| first.iter().any(|before| before.id == run.id));
    Ok(again)
}

/// The cgroups in this place whose names tell their run and its state directory.
fn tagged(place: &Path) -> Result<Vec<(Tag, PathBuf)>> {
    let named = |entry: io::Result<std::fs::DirEntry>| {
        let entry = entry?;
        let (_, tag) = entry.file_name().to_str().and_then(Tag::of_cgroup).unzip();
        Ok(tag.flatten().map(|tag| (tag, entry.path())))
    };
    let entries = match std::fs::read_dir(place) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other,
    };
    let all =
        entries.and_then(|entries| entries.filter_map(|entry| named(entry).transpose()).collect());
    all.map_err(Error::io("list the cgroups beneath our own"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_ends_while_it_is_looked_for_is_not_unlisted() {
        let [ends, lives, begins] = [1, 2, 3].map(|number| Unlisted::new(&Id::new(1, number)));
        let mut looks = vec![vec![lives.clone(), begins], vec![ends, lives.clone()]];
        let found = found_twice(|| Ok(looks.pop().unwrap_or_default())).expect("looked");
        assert_eq!(found, [lives]);
        let mut count = 0;
        let none = found_twice(|| {
            count += 1;
            Ok(Vec::new())
        });
        assert!(none.is_ok_and(|none| none.is_empty()) && count == 1, "looked {count} times");
    }
}
