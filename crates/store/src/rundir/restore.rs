//! The names by which others find a live run: noticing that they are gone, and making
//! them anew.
//!
//! A confused agent may remove the state directory, or a part of it, under live runs. The
//! lock stays held, but nobody finds it. An inode that has lost its last name cannot be
//! given another, so that a new lock is made then. It is held before it is listed, as at a
//! birth: a sweep that finds the listing finds a live run.

use super::{EVENTS, LIVE, LOCK, RECORD, RunDir, SOCKET, SPEC, SWEEP, is_at, listing};
use crate::error::{Result, StoreError};
use crate::files::Dir;
use crate::format::SpecFile;
use crate::name_index;
use crate::store::Store;
use fullstop_cage::linux::{is_locked, try_lock};
use rustix::fs::{AtFlags, FileType, OFlags, fstat, linkat, statat};
use rustix::io::Errno;
use std::fs::File;
use std::os::fd::AsFd as _;

/// A name by which others find a live run.
///
/// ```
/// use fullstop_store::Name;
///
/// assert_eq!(Name::Listing.word(), "listing");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// `runs/ID`, with the lock in it.
    Lock,
    /// `live/ID`.
    Listing,
    Spec,
    Record,
    Socket,
    /// The entry in its group.
    Membership,
    /// The entry under its name, if it has one.
    Name,
}

impl Name {
    pub fn word(self) -> &'static str {
        match self {
            Name::Lock => "lock",
            Name::Listing => "listing",
            Name::Spec => "spec",
            Name::Record => "record",
            Name::Socket => "socket",
            Name::Membership => "membership",
            Name::Name => "name",
        }
    }
}

impl Name {
    /// What stands there, if it is ours.
    fn kind(self) -> FileType {
        match self {
            Name::Socket => FileType::Socket,
            _ => FileType::RegularFile,
        }
    }
}

impl RunDir {
    /// The names that are gone, of those that must be there: a record that was never
    /// written, and a socket on which nobody listens yet, are no loss. A state directory
    /// that was moved as a whole has lost nothing. An error, if it cannot be told.
    pub fn lost_names(&self, has_record: bool, listens: bool) -> Result<Vec<Name>> {
        if self.finished {
            return Ok(Vec::new());
        }
        let lock = fstat(&self.lock);
        let lock = lock.map_err(|errno| StoreError::io("look at", &self.dir.path, errno))?;
        let lock = Some(lock.st_ino);
        let run = |name: &str| format!("runs/{}/{name}", self.id);
        let membership = self.joined.as_ref().map(|joined| joined.path().to_owned());
        let entry = self.named.get().map(|(name, entry)| entry.path(name));
        let names = [
            (Name::Lock, Some(run(LOCK)), lock),
            (Name::Listing, Some(listing(&self.id)), lock),
            (Name::Spec, Some(run(SPEC)), None),
            (Name::Record, has_record.then(|| run(RECORD)), None),
            (Name::Socket, listens.then(|| run(SOCKET)), None),
            (Name::Membership, membership, None),
            (Name::Name, entry, None),
        ];
        let mut lost = Vec::new();
        for (name, path, inode) in names {
            if let Some(path) = path
                && !leads(&self.root, &path, inode, name.kind())?
            {
                lost.push(name);
            }
        }
        Ok(lost)
    }

    /// Whether what was told until now is still there.
    pub fn has_events(&self) -> bool {
        let kind = Name::Record.kind();
        leads(&self.dir, EVENTS, None, kind).unwrap_or(false)
    }

    /// Makes the directories anew and holds the lock in them. The run is not listed yet.
    /// Returns whether directories or lock are others than before. Nothing has changed for
    /// us if this fails.
    pub fn restore_lock(&mut self) -> Result<bool> {
        let (root, dir) = match self.directories_in(self.root.try_clone()?) {
            // Nothing can be made in a state directory that was removed.
            Err(error) if error.is_missing() => {
                self.directories_in(Store::at(&self.root.path)?.into_root())?
            }
            other => other?,
        };
        let lock = self.lock_in(&root, &dir)?;
        let is_same = lock.is_none() && is_same(&root, &self.root) && is_same(&dir, &self.dir);
        (self.root, self.dir) = (root, dir);
        if let Some(lock) = lock {
            self.lock = lock;
        }
        // The journal may be another one, whose readers know nothing of this run.
        self.noticed.replace(None);
        Ok(!is_same)
    }

    fn directories_in(&self, root: Dir) -> Result<(Dir, Dir)> {
        let name = format!("runs/{}", self.id);
        for name in ["runs", "live", &name] {
            root.make(name)?;
        }
        let dir = root.below(&name)?;
        Ok((root, dir))
    }

    /// The lock of this directory, if it has to be another one.
    fn lock_in(&self, root: &Dir, dir: &Dir) -> Result<Option<File>> {
        if is_at(dir, LOCK, &self.lock) {
            return Ok(None);
        }
        if is_at(root, &listing(&self.id), &self.lock) {
            link(root, &listing(&self.id), dir, LOCK)?;
            return Ok(None);
        }
        let why = |error| StoreError::io("lock", &dir.path.join(LOCK), error);
        if dir.strange(LOCK).is_some() {
            dir.clear(LOCK)?;
        }
        let lock = dir.open_file(LOCK, OFlags::RDWR | OFlags::CREATE)?;
        // The order of a claim: see `hold`. The keeper does not wait, it tries again later.
        let ours = try_lock(lock.as_fd(), LIVE).map_err(why)?
            && !is_locked(lock.as_fd(), SWEEP).map_err(why)?
            && is_at(dir, LOCK, &lock);
        if ours { Ok(Some(lock)) } else { Err(StoreError::Live { path: dir.path.clone() }) }
    }

    /// Lists it among the unfinished again.
    pub fn list_again(&self) -> Result<()> {
        if is_at(&self.root, &listing(&self.id), &self.lock) {
            return Ok(());
        }
        link(&self.dir, LOCK, &self.root, &listing(&self.id))
    }

    /// Lists it under its name again, if it has one.
    pub fn list_name_again(&self) -> Result<()> {
        let Some((name, entry)) = self.named.get() else { return Ok(()) };
        name_index::add(&self.root, name, entry)
    }

    /// Writes the spec of a run that is live, in the place of any other.
    pub fn rewrite_spec(&self, spec: &SpecFile) -> Result<()> {
        self.list_name(spec)?;
        self.dir.replace(SPEC, spec)
    }

    /// Whether the run's directory was removed. One that was moved is there.
    pub fn is_removed(&self) -> bool {
        fstat(&self.dir.fd).is_ok_and(|stat| stat.st_nlink == 0)
    }
}

fn is_same(one: &Dir, other: &Dir) -> bool {
    let inode = |dir: &Dir| fstat(&dir.fd).map(|stat| (stat.st_dev, stat.st_ino));
    matches!((inode(one), inode(other)), (Ok(one), Ok(other)) if one == other)
}

/// Whether a name is there, of what is of this kind, and leads to this inode if one is meant.
fn leads(root: &Dir, name: &str, inode: Option<u64>, kind: FileType) -> Result<bool> {
    match statat(&root.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(inode.is_none_or(|inode| inode == stat.st_ino)
            && FileType::from_raw_mode(stat.st_mode) == kind),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(false),
        Err(errno) => Err(StoreError::io("look at", &root.path.join(name), errno)),
    }
}

/// Gives a lock that is held a second name. A stale one that stands there, of a copied
/// directory, gives way, and so does what is no file; one that is held does not.
fn link(from: &Dir, name: &str, to: &Dir, second: &str) -> Result<()> {
    let path = to.path.join(second);
    let linked = || linkat(&from.fd, name, &to.fd, second, AtFlags::empty());
    let why = |errno| StoreError::io("list", &path, errno);
    match linked() {
        Err(Errno::EXIST) => {}
        other => return other.map_err(why),
    }
    if to.strange(second).is_none() {
        let other = to.open_file(second, OFlags::RDONLY)?;
        let held = is_locked(other.as_fd(), LIVE);
        if held.map_err(|error| StoreError::io("probe", &path, error))? {
            return Err(StoreError::Live { path });
        }
    }
    to.clear(second)?;
    linked().map_err(why)
}
