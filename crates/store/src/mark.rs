//! The mark of a group: whether the group is open, and of which generation it is.
//!
//! A group's directory holds one file, `.open` or `.closed`; where both are there, the group is
//! closed. The mark is made with the directory. A close is one `rename` of `.open` to `.closed`:
//! it needs neither space nor an inode, and there is nothing between open and closed.
//!
//! In the file stands the group's generation, a random number that never comes again. A start
//! remembers the generation that it read when it was asked for. So that a start that was under way
//! during a close finds that out, however late it wakes, two laws hold:
//!
//! - a mark is never written to again, and it comes to be `.open` once, when it is new: what opens
//!   a group removes its mark, rather than renaming it back, and makes another one;
//! - a close takes away whatever is `.open`.

use crate::error::{Result, StoreError};
use crate::files::Dir;
use fullstop_protocol::GroupGenerations;
use rustix::fs::{AtFlags, FlockOperation, OFlags, flock, fstat, linkat, renameat, statat};
use rustix::io::Errno;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// All groups of a state directory.
pub(crate) const GROUPS: &str = "groups";
const OPEN: &str = ".open";
const CLOSED: &str = ".closed";
/// The version of a mark.
const VERSION: u32 = 1;
/// What a mark is called while it is written.
const NEW: &str = ".new-";

/// What a start has seen of its groups when it was asked for. While this is kept, a prune leaves
/// the groups as they are: nothing could tell the start whether a group that was forgotten had
/// been closed before.
///
/// ```
/// use fullstop_store::{GroupName, Store};
///
/// let dir = std::env::temp_dir().join(format!("fullstop-doc-asked-{}", std::process::id()));
/// let store = Store::at(&dir)?;
/// let group: GroupName = "plan/research".parse()?;
/// let first = group.ask(store.root())?.generations;
/// assert_eq!(group.ask(store.root())?.generations, first);
/// let above: GroupName = "plan".parse()?;
/// above.close(store.root())?;
/// above.open(store.root())?;
/// assert_ne!(group.ask(store.root())?.generations, first);
/// # let _ = std::fs::remove_dir_all(&dir);
/// # Ok::<(), fullstop_store::StoreError>(())
/// ```
#[derive(Debug)]
pub struct AskedGroup {
    pub generations: GroupGenerations,
    /// With a shared lock on each.
    _marks: Vec<File>,
}

impl AskedGroup {
    pub(crate) fn of(marks: Vec<(File, String)>) -> AskedGroup {
        let (marks, generations) = marks.into_iter().unzip();
        AskedGroup { generations: GroupGenerations(generations), _marks: marks }
    }
}

/// Where a group has no mark there is nothing to lock.
pub(crate) struct LockedMark {
    _file: Option<File>,
}

/// The mark of one group.
pub(crate) struct Mark<'a> {
    root: &'a Dir,
    group: &'a str,
}

impl<'a> Mark<'a> {
    pub fn of(root: &'a Dir, group: &'a str) -> Mark<'a> {
        Mark { root, group }
    }

    fn at(&self, name: &str) -> String {
        format!("{GROUPS}/{}/{name}", self.group)
    }

    fn failed(&self, what: &'static str, errno: Errno) -> StoreError {
        StoreError::io(what, &self.root.path.join(GROUPS).join(self.group), errno)
    }

    fn exists(&self, name: &str) -> Result<bool> {
        // A link that leads nowhere is a mark as well: what was closed is not opened by it.
        match statat(&self.root.fd, self.at(name).as_str(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(self.failed("look at", errno)),
        }
    }

    pub fn is_closed(&self) -> Result<bool> {
        self.exists(CLOSED)
    }

    /// The mark of an open group and its generation, locked against a prune; a missing file, if
    /// it has none.
    pub fn ask(&self) -> Result<(File, String)> {
        /// A prune holds its lock for a few system calls. One that hangs there holds up no
        /// start: without the lock it may be refused, and no more.
        const TRIES: usize = 1000;
        let file = self.open_mark()?;
        for _ in 0..TRIES {
            match flock(&file, FlockOperation::NonBlockingLockShared) {
                Err(Errno::WOULDBLOCK) => std::thread::yield_now(),
                // Some file systems have no locks.
                Ok(()) | Err(_) => break,
            }
        }
        let found = fstat(&file).map_err(|errno| self.failed("look at", errno))?;
        if found.st_nlink == 0 {
            return Err(self.failed("look at", Errno::NOENT));
        }
        let generation = self.generation(&file)?;
        Ok((file, generation))
    }

    /// Locks the mark for a prune; nothing, if a start is under way in the group, or it is closed.
    pub fn try_lock(&self) -> Result<Option<LockedMark>> {
        let file = match self.open_mark() {
            Err(StoreError::GroupClosed(_)) => return Ok(None),
            Err(error) if error.is_missing() => return Ok(Some(LockedMark { _file: None })),
            other => other?,
        };
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => Ok(None),
            Ok(()) | Err(_) => Ok(Some(LockedMark { _file: Some(file) })),
        }
    }

    /// The mark of an open group; an error, if it is closed, and a missing file, if it has none.
    fn open_mark(&self) -> Result<File> {
        match self.root.open_file(&self.at(OPEN), OFlags::RDONLY) {
            Err(error) if error.is_missing() && self.is_closed()? => Err(self.closed()),
            other => other,
        }
    }

    fn closed(&self) -> StoreError {
        StoreError::GroupClosed(self.group.to_owned())
    }

    /// What stands in the mark; an error, if the group is closed.
    fn generation(&self, mark: &File) -> Result<String> {
        const LONGEST: u64 = 1024;
        let mut text = Vec::new();
        mark.take(LONGEST)
            .read_to_end(&mut text)
            .map_err(|error| StoreError::io("read", &self.root.path.join(self.at(OPEN)), error))?;
        // Looked for afterwards: one that was closed and opened again has another by then.
        if self.is_closed()? {
            return Err(self.closed());
        }
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Whether the group has stayed open, and of this generation.
    pub fn check(&self, seen: &str) -> Result<()> {
        match self.open_mark().and_then(|mark| self.generation(&mark)) {
            Ok(now) if now == seen => Ok(()),
            Err(error) if !error.is_missing() => Err(error),
            _ => Err(StoreError::GroupClosedMeanwhile(self.group.to_owned())),
        }
    }

    /// Makes the mark of a group that has none: whole, or not at all.
    pub fn make(&self) -> Result<()> {
        if self.exists(OPEN)? || self.is_closed()? {
            return Ok(());
        }
        let generation = random();
        let new = format!("{GROUPS}/{NEW}{generation}");
        let made = || {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
            let mut file = self.root.open_file(&new, flags)?;
            file.write_all(text(&generation).as_bytes())
                .map_err(|error| StoreError::io("write", &self.root.path.join(&new), error))?;
            let (fd, open) = (&self.root.fd, self.at(OPEN));
            match linkat(fd, new.as_str(), fd, open.as_str(), AtFlags::empty()) {
                Ok(()) | Err(Errno::EXIST) => Ok(()),
                Err(errno) => Err(self.failed("mark", errno)),
            }
        };
        let made = made();
        self.root.remove(&new)?;
        made
    }

    /// Closes the group; a missing file, if it has no mark.
    pub fn close(&self) -> Result<()> {
        let (fd, open, closed) = (&self.root.fd, self.at(OPEN), self.at(CLOSED));
        match renameat(fd, open.as_str(), fd, closed.as_str()) {
            Err(Errno::NOENT) if self.is_closed()? => Ok(()),
            other => other.map_err(|errno| self.failed("close", errno)),
        }
    }

    /// Opens the group, if it is closed. That needs no room: without a mark it is open as well.
    pub fn open(&self) -> Result<()> {
        if !self.is_closed()? {
            return Ok(());
        }
        // An older version closes a group by a second file: a start may have seen the first.
        self.remove()?;
        self.root.remove(&self.at(CLOSED))?;
        // With its next mark it can be closed on a disk that is full by then.
        match self.make() {
            // A start makes the mark, and does not begin where there is no room for it. Or a
            // prune has forgotten the group.
            Err(error) if error.is_full() || error.is_missing() => Ok(()),
            other => other,
        }
    }

    /// Removes `.open`.
    pub fn remove(&self) -> Result<()> {
        self.root.remove(&self.at(OPEN))
    }
}

fn text(generation: &str) -> String {
    format!("{{\"version\":{VERSION},\"generation\":\"{generation}\"}}\n")
}

fn random() -> String {
    let mut bytes = [0; 8];
    let drawn = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::NONBLOCK);
    let number = match drawn {
        Ok(8) => u64::from_ne_bytes(bytes),
        // A kernel that has just booted may have no random numbers yet: the time must do.
        _ => {
            let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            u64::try_from(unix.as_nanos()).unwrap_or_default()
        }
    };
    format!("{number:016x}")
}

/// Removes the half-made marks of processes that were killed while they made them.
pub(crate) fn tidy(root: &Dir) -> Result<()> {
    /// Making a mark takes less than a millisecond.
    const ABANDONED: Duration = Duration::from_secs(10);
    let groups = root.below(GROUPS)?;
    for name in groups.hidden_names()?.iter().filter(|name| name.starts_with(NEW)) {
        let changed = std::fs::metadata(groups.path.join(name)).and_then(|meta| meta.modified());
        if changed.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > ABANDONED)) {
            groups.remove(name)?;
        }
    }
    Ok(())
}
