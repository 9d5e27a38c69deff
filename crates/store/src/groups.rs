//! Groups: named sets of runs that can be closed as a whole.
//!
//! Joining: take the run's lock, listen on its socket, register here, look for
//! `closed` on the group and all above it, and only then spawn. Closing: write
//! `closed`, then list and stop. A run either registers before the close, and is
//! stopped by it, or sees the close and is refused. There is no lock between them,
//! so that nobody starves. `tests/groups_model` explores it.

use crate::error::{Result, StoreError};
use crate::files::Dir;
use crate::rundir::RunDir;
use fullstop_core::id::Id;
use rustix::fs::{AtFlags, Mode, OFlags, linkat, mkdirat, unlinkat};
use rustix::io::Errno;
use std::fmt;
use std::str::FromStr;

const MEMBERS: &str = ".members";
const CLOSED: &str = ".closed";
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
        format!("groups/{}", self.0)
    }

    /// Writes `closed`: from here on nothing can start in it.
    pub fn close(&self, root: &Dir) -> Result<()> {
        let name = format!("{}/{CLOSED}", self.dir());
        self.inside(root, || root.open_file(&name, OFlags::WRONLY | OFlags::CREATE).map(drop))
    }

    /// Does something in the group's directory, which is made if need be. `prune` may
    /// remove it, or one above it, in between: then once more.
    fn inside<T>(&self, root: &Dir, mut act: impl FnMut() -> Result<T>) -> Result<T> {
        let mut tries = 0;
        loop {
            match self.make(root).and_then(|()| act()) {
                Err(error) if error.is_missing() && tries < TRIES => tries += 1,
                other => return other,
            }
        }
    }

    pub fn open(&self, root: &Dir) -> Result<()> {
        root.remove(&format!("{}/{CLOSED}", self.dir()))
    }

    /// The group in its line that is closed, if any is.
    pub fn closed_by(&self, root: &Dir) -> Result<Option<&str>> {
        for name in self.line() {
            let path = format!("groups/{name}/{CLOSED}");
            match rustix::fs::statat(&root.fd, path.as_str(), AtFlags::empty()) {
                Ok(_) => return Ok(Some(name)),
                Err(Errno::NOENT) => {}
                Err(errno) => return Err(StoreError::io("look at", &root.path.join(path), errno)),
            }
        }
        Ok(None)
    }

    fn make(&self, root: &Dir) -> Result<()> {
        let dirs = ["groups".to_owned()];
        let dirs = dirs.into_iter().chain(self.line().map(|name| format!("groups/{name}")));
        for dir in dirs.chain([format!("{}/{MEMBERS}", self.dir())]) {
            match mkdirat(&root.fd, dir.as_str(), Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(StoreError::io("make", &root.path.join(dir), errno)),
            }
        }
        Ok(())
    }

    /// Registers a run whose lock is held and whose socket listens, then looks
    /// whether it may be born.
    pub fn join(&self, root: &Dir, run: &RunDir) -> Result<Joined> {
        let joined = Joined(format!("{}/{MEMBERS}/{}", self.dir(), run.id()));
        let (from, lock) = run.lock_path();
        self.inside(root, || {
            match linkat(from, lock, &root.fd, joined.0.as_str(), AtFlags::empty()) {
                Ok(()) | Err(Errno::EXIST) => Ok(()),
                Err(errno) => Err(StoreError::io("join", &root.path.join(&joined.0), errno)),
            }
        })?;
        let why = match self.closed_by(root) {
            Ok(None) => return Ok(joined),
            Ok(Some(closed)) => StoreError::GroupClosed(closed.to_owned()),
            Err(error) => error,
        };
        joined.leave(root);
        Err(why)
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
        match root.below("groups") {
            Ok(dir) => list(&dir, "", &mut found)?,
            Err(error) if error.is_missing() => {}
            Err(error) => return Err(error),
        }
        found.sort();
        Ok(found)
    }

    /// Removes it if it is open and empty. The kernel refuses to remove what has
    /// members, and whoever joins meanwhile makes it anew.
    pub fn forget_if_empty(&self, root: &Dir) {
        let remove = |path: String| {
            let _ = unlinkat(&root.fd, path.as_str(), AtFlags::REMOVEDIR);
        };
        if !matches!(self.closed_by(root), Ok(None)) {
            return;
        }
        remove(format!("{}/{MEMBERS}", self.dir()));
        remove(self.dir());
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
        let Ok(below) = dir.below(&name) else { continue };
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
