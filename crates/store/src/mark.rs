//! The mark of a group: whether the group is open, and of which generation it is.
//!
//! A group's directory holds one file, `.open` or `.closed`. The file is made with the directory,
//! and from then on only renamed and overwritten in place. A close is one `rename`: it needs
//! neither space nor an inode, and there is nothing between open and closed.
//!
//! In the file stands the group's generation, a random number that never comes again. A start
//! remembers the generation that it read when it was asked for. A group gets another generation
//! before it is opened again, and a group that is forgotten and made anew has another one too. So
//! a start that was under way during a close finds that out, however late it wakes.

use crate::error::{Result, StoreError};
use crate::files::Dir;
use crate::format::VERSION;
use rustix::fs::{
    AtFlags, OFlags, Timespec, Timestamps, UTIME_NOW, linkat, renameat, statat, utimensat,
};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::io::{Read as _, Write as _};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// All groups of a state directory.
pub(crate) const GROUPS: &str = "groups";
const OPEN: &str = ".open";
const CLOSED: &str = ".closed";
/// What a mark is called while it is written.
const NEW: &str = ".new-";

/// The generations of a group and of all groups above it, as they were when a start was
/// asked for. They hold for that start alone.
///
/// ```
/// use fullstop_store::{GroupName, Store};
///
/// let dir = std::env::temp_dir().join(format!("fullstop-doc-seen-{}", std::process::id()));
/// let store = Store::at(&dir)?;
/// let group: GroupName = "plan/research".parse()?;
/// let seen = group.generations(store.root())?;
/// assert_eq!(group.generations(store.root())?, seen);
/// let above: GroupName = "plan".parse()?;
/// above.close(store.root())?;
/// above.open(store.root())?;
/// assert_ne!(group.generations(store.root())?, seen);
/// # let _ = std::fs::remove_dir_all(&dir);
/// # Ok::<(), fullstop_store::StoreError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generations(pub(crate) Vec<String>);

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
        match statat(&self.root.fd, self.at(name).as_str(), AtFlags::empty()) {
            Ok(_) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(self.failed("look at", errno)),
        }
    }

    pub fn is_closed(&self) -> Result<bool> {
        self.exists(CLOSED)
    }

    /// The generation of an open group; a missing file, if it has no mark.
    pub fn generation(&self) -> Result<String> {
        let read = self.read();
        // Looked for afterwards: one that was closed and opened again has another by then.
        if self.is_closed()? { Err(StoreError::GroupClosed(self.group.to_owned())) } else { read }
    }

    fn read(&self) -> Result<String> {
        const LONGEST: u64 = 1024;
        let mut text = Vec::new();
        let file = self.root.open_file(&self.at(OPEN), OFlags::RDONLY)?;
        file.take(LONGEST)
            .read_to_end(&mut text)
            .map_err(|error| StoreError::io("read", &self.root.path.join(self.at(OPEN)), error))?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Whether the group has stayed open, and of this generation.
    pub fn check(&self, seen: &str) -> Result<()> {
        match self.generation() {
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

    /// Opens the group, if it is closed. A start that read the generation before the close must
    /// not find it again: where another one cannot be written, the group stays closed.
    pub fn open(&self) -> Result<()> {
        if !self.is_closed()? {
            return Ok(());
        }
        let renamed = self.change().and_then(|()| {
            let (fd, open, closed) = (&self.root.fd, self.at(OPEN), self.at(CLOSED));
            renameat(fd, closed.as_str(), fd, open.as_str())
                .map_err(|errno| self.failed("open", errno))
        });
        match renamed {
            // Another process has opened it meanwhile.
            Err(error) if error.is_missing() => Ok(()),
            other => other,
        }
    }

    /// Gives a closed group another generation, in place. All generations have one length, but
    /// the marks of an older version are empty.
    fn change(&self) -> Result<()> {
        let mut file = self.root.open_file(&self.at(CLOSED), OFlags::WRONLY)?;
        let path = || self.root.path.join(self.at(CLOSED));
        file.write_all(text(&random()).as_bytes())
            .map_err(|error| StoreError::io("write", &path(), error))
    }

    /// Says that a start is under way in the group, for a prune that comes by.
    pub fn touch(&self) {
        let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        let times = Timestamps { last_access: now, last_modification: now };
        // Where it cannot be said, a prune may have the start refused: it is not wrong then.
        let _ = utimensat(&self.root.fd, self.at(OPEN).as_str(), &times, AtFlags::empty());
    }

    /// Whether no start was asked for in the group for so long.
    pub fn is_unused_for(&self, time: Duration) -> Result<bool> {
        match statat(&self.root.fd, self.at(OPEN).as_str(), AtFlags::empty()) {
            Ok(found) => Ok(is_older(found.st_mtime, found.st_mtime_nsec, time)),
            Err(Errno::NOENT) => Ok(true),
            Err(errno) => Err(self.failed("look at", errno)),
        }
    }

    /// Removes the mark of an open group.
    pub fn remove(&self) -> Result<()> {
        self.root.remove(&self.at(OPEN))
    }
}

/// All are of one length, so that one can take the place of another.
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

/// A time that lies in the future is as good as old: the clock was set back.
fn is_older(seconds: i64, nanos: impl TryInto<u32>, than: Duration) -> bool {
    let seconds = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
    let nanos = Duration::from_nanos(nanos.try_into().unwrap_or_default().into());
    (UNIX_EPOCH + seconds + nanos).elapsed().map_or(true, |age| age >= than)
}

/// Removes the half-made marks of processes that were killed while they made them.
pub(crate) fn tidy(root: &Dir) -> Result<()> {
    /// Making a mark takes less than a millisecond.
    const ABANDONED: Duration = Duration::from_secs(10);
    let groups = root.below(GROUPS)?;
    for name in groups.hidden_names()?.iter().filter(|name| name.starts_with(NEW)) {
        match statat(&groups.fd, name.as_str(), AtFlags::empty()) {
            Ok(found) if is_older(found.st_mtime, found.st_mtime_nsec, ABANDONED) => {
                groups.remove(name)?;
            }
            _ => {}
        }
    }
    Ok(())
}
