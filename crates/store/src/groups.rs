//! Groups: named sets of runs that can be closed as a whole.
//!
//! Joining: remember the generations of the group and all above it, take the run's lock,
//! listen on its socket, register here, look whether all of them are open and of the same
//! generation still, and only then spawn. Closing: rename the mark, then list and stop.
//! Opening: remove the mark, then make one of another generation. A run either registers
//! before the close, and is stopped by it, or sees the close and is refused. There is no
//! lock between them, so that none of them starves.
//! `tests/groups_model` explores it.

use crate::error::{Result, StoreError};
use crate::files::Dir;
use crate::mark::{AskedGroup, GROUPS, Mark, tidy};
use crate::rundir::RunDir;
use fullstop_core::id::Id;
use fullstop_protocol::GroupGenerations;
use rustix::fs::{AtFlags, linkat, unlinkat};
use rustix::io::Errno;
use std::fmt;
use std::str::FromStr;

const MEMBERS: &str = ".members";
/// How often a directory is made anew that a prune removes at once. One that prunes in a
/// loop wins nine of ten times.
const TRIES: usize = 1000;

/// A path of plain words: `plan/research`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupName(String);

impl FromStr for GroupName {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<GroupName> {
        const LONGEST_PART: usize = 100;
        // Each is held open while those below are listed.
        const DEEPEST: usize = 32;
        let plain = |letter: char| letter.is_alphanumeric() || "-_.:@+".contains(letter);
        let fine = |part: &str| {
            !part.is_empty()
                && !part.starts_with('.')
                && part.len() <= LONGEST_PART
                && part.chars().all(plain)
        };
        if text.split('/').count() > DEEPEST {
            let why = format!("a group of more than {DEEPEST} words is too deep");
            return Err(StoreError::GroupName(why));
        }
        if text.split('/').all(fine) {
            return Ok(GroupName(text.to_owned()));
        }
        Err(StoreError::GroupName(format!(
            "{text:?} is no group: words of letters, digits and -_.:@+, with / between them"
        )))
    }
}

impl fmt::Display for GroupName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl GroupName {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// It and every group above it, the outermost first.
    pub fn line(&self) -> impl Iterator<Item = &str> {
        let ends = self.0.match_indices('/').map(|(at, _)| at).chain([self.0.len()]);
        ends.map(|end| &self.0[..end])
    }

    pub fn contains(&self, other: &str) -> bool {
        other.strip_prefix(&self.0).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    fn dir(&self) -> String {
        format!("{GROUPS}/{}", self.0)
    }

    /// What a start has to remember from the moment it is asked for, and keeps until it is born;
    /// an error, if the group is closed. What is missing of the groups is made: from here on they
    /// can be closed on a full disk.
    pub fn ask(&self, root: &Dir) -> Result<AskedGroup> {
        let ask = || self.line().map(|name| Mark::of(root, name).ask()).collect();
        self.make_and(root, ask).map(AskedGroup::of)
    }

    /// From here on nothing can start in it.
    pub fn close(&self, root: &Dir) -> Result<()> {
        self.make_and(root, || Mark::of(root, &self.0).close())
    }

    /// Does something with the marks of the group's line. What is missing is made, and then
    /// it is tried again; `prune` may remove it in between.
    fn make_and<T>(&self, root: &Dir, act: impl Fn() -> Result<T>) -> Result<T> {
        let mut tries = 0;
        loop {
            match act() {
                Err(error) if error.is_missing() && tries < TRIES => {}
                other => return other,
            }
            tries += 1;
            match self.make(root) {
                Err(error) if error.is_missing() => {}
                other => other?,
            }
        }
    }

    /// Makes the directories and the marks of its line, the outermost first.
    fn make(&self, root: &Dir) -> Result<()> {
        root.make(GROUPS)?;
        for name in self.line() {
            root.make(&format!("{GROUPS}/{name}"))?;
            Mark::of(root, name).make()?;
        }
        Ok(())
    }

    pub fn open(&self, root: &Dir) -> Result<()> {
        Mark::of(root, &self.0).open()
    }

    /// The group in its line that is closed, if any is.
    pub fn closed_by(&self, root: &Dir) -> Result<Option<&str>> {
        for name in self.line() {
            if Mark::of(root, name).is_closed()? {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }

    /// Registers a run whose lock is held and whose socket listens, then looks whether it
    /// may be born: whether its groups are what they were when it was asked for.
    pub fn join(&self, root: &Dir, run: &RunDir, seen: &GroupGenerations) -> Result<Joined> {
        let joined = self.register(root, run)?;
        let marks: Vec<Mark<'_>> = self.line().map(|name| Mark::of(root, name)).collect();
        let mut pairs = marks.iter().zip(&seen.0);
        let checked = if marks.len() == seen.0.len() {
            pairs.try_for_each(|(mark, seen)| mark.check(seen))
        } else {
            Err(StoreError::GroupClosedMeanwhile(self.0.clone()))
        };
        if let Err(why) = checked {
            joined.leave(root);
            return Err(why);
        }
        Ok(joined)
    }

    fn register(&self, root: &Dir, run: &RunDir) -> Result<Joined> {
        let members = format!("{}/{MEMBERS}", self.dir());
        let joined = Joined(format!("{members}/{}", run.id()));
        let (from, lock) = run.lock_path();
        for _ in 0..TRIES {
            match linkat(from, lock, &root.fd, joined.0.as_str(), AtFlags::empty()) {
                Ok(()) | Err(Errno::EXIST) => return Ok(joined),
                // Nobody has joined it before, or a prune has removed it.
                Err(Errno::NOENT) => {}
                Err(errno) => {
                    return Err(StoreError::io("join", &root.path.join(&joined.0), errno));
                }
            }
            match root.make(&members) {
                Err(error) if error.is_missing() => break,
                other => other?,
            }
        }
        // The group itself was removed, and what was seen of it is gone for good.
        Err(StoreError::GroupClosedMeanwhile(self.0.clone()))
    }

    /// Those registered in it and in every group below it.
    pub fn members(&self, root: &Dir) -> Result<Vec<Id>> {
        let mut found = Vec::new();
        match root.below(&self.dir()) {
            Ok(dir) => gather(&dir, &mut found)?,
            Err(error) if error.is_missing() => {}
            Err(error) => return Err(error),
        }
        Ok(found)
    }

    /// All groups there are.
    pub fn all(root: &Dir) -> Result<Vec<GroupName>> {
        let mut found = Vec::new();
        match root.below(GROUPS) {
            Ok(dir) => list(&dir, "", &mut found)?,
            Err(error) if error.is_missing() => {}
            Err(error) => return Err(error),
        }
        found.sort();
        Ok(found)
    }

    /// Removes it if it is open and empty, and no start is under way in it. The kernel refuses to
    /// remove what has members or groups in it.
    pub fn forget_if_empty(&self, root: &Dir) -> Result<()> {
        let has_groups = match root.below(&self.dir()).and_then(|dir| dir.names()) {
            Err(error) if error.is_missing() => return Ok(()),
            names => !names?.is_empty(),
        };
        let mark = Mark::of(root, &self.0);
        if has_groups || self.closed_by(root)?.is_some() {
            return Ok(());
        }
        let Some(_locked) = mark.try_lock()? else { return Ok(()) };
        if !remove_dir(root, &format!("{}/{MEMBERS}", self.dir()))? {
            return Ok(());
        }
        mark.remove()?;
        if remove_dir(root, &self.dir())? {
            return Ok(());
        }
        // It was closed, or joined, in this moment, and needs a mark again.
        match mark.make() {
            Err(error) if error.is_missing() => Ok(()),
            made => made,
        }
    }

    /// Removes the half-made marks of processes that were killed while they made a group.
    pub fn tidy(root: &Dir) -> Result<()> {
        match tidy(root) {
            Err(error) if error.is_missing() => Ok(()),
            other => other,
        }
    }
}

/// Whether a directory is gone; one that is not empty is left.
fn remove_dir(root: &Dir, name: &str) -> Result<bool> {
    match unlinkat(&root.fd, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
        Err(errno) => Err(StoreError::io("remove", &root.path.join(name), errno)),
    }
}

/// A directory may vanish while it is read: then it had no members.
fn gather(dir: &Dir, found: &mut Vec<Id>) -> Result<()> {
    let subdirectories = dir.names()?;
    match dir.below(MEMBERS).and_then(|members| members.names()) {
        Ok(names) => found.extend(names.into_iter().filter_map(|name| name.parse().ok())),
        Err(error) if error.is_missing() => {}
        Err(error) => return Err(error),
    }
    for name in subdirectories {
        match dir.below(&name) {
            Ok(below) => gather(&below, found)?,
            Err(error) if error.is_missing() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn list(dir: &Dir, above: &str, found: &mut Vec<GroupName>) -> Result<()> {
    for name in dir.names()? {
        let below = match dir.below(&name) {
            Ok(below) => below,
            // Forgotten since it was listed, or no group.
            Err(error) if error.is_missing() || error.is_no_directory() => continue,
            Err(error) => return Err(error),
        };
        let path = if above.is_empty() { name } else { format!("{above}/{name}") };
        list(&below, &path, found)?;
        found.extend(path.parse());
    }
    Ok(())
}

/// A membership, to be given up at the end.
#[derive(Debug)]
pub struct Joined(String);

impl Joined {
    /// The membership of a run that somebody else has begun.
    pub fn of(group: &GroupName, id: &Id) -> Joined {
        Joined(format!("{}/{MEMBERS}/{id}", group.dir()))
    }

    /// Where it stands, below the state directory.
    pub(crate) fn path(&self) -> &str {
        &self.0
    }

    pub(crate) fn leave(self, root: &Dir) {
        let _ = unlinkat(&root.fd, self.0.as_str(), AtFlags::empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for fine in ["plan", "plan/research", "a.b/c-d_e:f", "größe"] {
            assert!(fine.parse::<GroupName>().is_ok(), "{fine}");
        }
        for bad in ["", "/", "a/", "/a", "a//b", ".", "..", "a/../b", ".members", "a b", "a\n"] {
            assert!(bad.parse::<GroupName>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_line_goes_from_the_outermost_inwards() {
        let name: GroupName = "a/b/c".parse().expect("a name");
        assert_eq!(name.line().collect::<Vec<_>>(), ["a", "a/b", "a/b/c"]);
        assert!(name.contains("a/b/c/d") && name.contains("a/b/c") && !name.contains("a/b/cd"));
    }
}
