//! Whether anybody looks after a run, by its listing and its lock alone.

use super::{LIVE, LOCK, MEMBERS, RECORD, ROOM, SOCKET, SPEC, SWEEP, is_at, listing};
use crate::error::{Result, StoreError};
use crate::files::Dir;
use crate::generations;
use fullstop_cage::linux::is_locked;
use fullstop_core::id::Id;
use rustix::fs::{AtFlags, OFlags, linkat, statat};
use rustix::io::Errno;
use std::os::fd::AsFd as _;
use std::time::{Duration, SystemTime};

/// What is younger may be in the making: no birth takes as long.
const YOUNG: Duration = Duration::from_secs(10);

/// Whether anybody looks after a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Its keeper or its guard is alive.
    Live,
    /// Both are gone, and it is not finished: to be swept.
    Lost,
    Over,
}

/// How a run stands, by its lock alone.
pub(crate) fn standing(root: &Dir, id: &Id) -> Result<Standing> {
    let name = listing(id);
    // A probe needs no right to write: the disk may be read-only.
    let lock = match root.open_file(&name, OFlags::RDONLY) {
        Err(error) if error.is_missing() => return unlisted(root, id),
        Err(error) => return misplaced(root, id).unwrap_or(Err(error)),
        Ok(lock) => lock,
    };
    match is_locked(lock.as_fd(), LIVE) {
        Ok(true) => Ok(Standing::Live),
        // Only one that nobody holds is asked what it is: a live run costs no call more.
        Ok(false) => misplaced(root, id).unwrap_or(Ok(Standing::Lost)),
        Err(error) => Err(StoreError::io("probe", &root.path.join(name), error)),
    }
}

/// One that somebody has taken off the list lives on if its lock is held. (Whoever
/// finishes a run removes that too.)
fn unlisted(root: &Dir, id: &Id) -> Result<Standing> {
    let name = format!("runs/{id}/{LOCK}");
    let lock = match root.open_regular(&name, OFlags::RDONLY) {
        Err(error) if error.is_missing() => return Ok(Standing::Over),
        other => other?,
    };
    let held = is_locked(lock.as_fd(), LIVE);
    let held = held.map_err(|error| StoreError::io("probe", &root.path.join(name), error))?;
    Ok(if held { Standing::Live } else { Standing::Over })
}

/// How a run stands in the place of whose listing something else was put: as one that is not
/// listed, or, if it has no directory either, nothing can be told. Nothing, if its listing is
/// a file.
fn misplaced(root: &Dir, id: &Id) -> Option<Result<Standing>> {
    let strange = root.strange(&listing(id))?;
    let dir = root.below(&format!("runs/{id}"));
    Some(dir.and_then(|_| unlisted(root, id)).map_err(|_| strange))
}

pub(crate) fn is_listed(root: &Dir, id: &Id) -> Result<bool> {
    match statat(&root.fd, listing(id).as_str(), AtFlags::SYMLINK_NOFOLLOW) {
        Ok(_) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(errno) => Err(StoreError::io("look at", &root.path.join(listing(id)), errno)),
    }
}

/// Lists a run again that was taken off the list although it is not over: its lock is there,
/// which goes last, and no process holds it. Returns whether it is listed now, to be swept.
pub(crate) fn list_lost(root: &Dir, dir: &Dir, id: &Id) -> Result<bool> {
    let lock = match dir.open_regular(LOCK, OFlags::RDWR) {
        Err(error) if error.is_missing() => return Ok(false),
        other => other?,
    };
    let why = |error| StoreError::io("probe", &dir.path.join(LOCK), error);
    let is_held = is_locked(lock.as_fd(), LIVE).map_err(why)?
        || is_locked(lock.as_fd(), SWEEP).map_err(why)?;
    if is_held || generations::read_record(dir)?.state.is_over() || !is_at(dir, LOCK, &lock) {
        return Ok(false);
    }
    if root.strange(&listing(id)).is_some() {
        root.clear(&listing(id))?;
    }
    let listed = linkat(&dir.fd, LOCK, &root.fd, listing(id).as_str(), AtFlags::empty());
    match listed {
        Ok(()) | Err(Errno::EXIST) => Ok(true),
        Err(errno) => Err(StoreError::io("list", &dir.path.join(LOCK), errno)),
    }
}

/// Whether neither a spec nor a record is there: what cannot be read is.
pub(super) fn is_unwritten(dir: &Dir) -> bool {
    let missing = |name| {
        let file = dir.open_file(name, OFlags::RDONLY);
        matches!(file, Err(error) if error.is_missing())
    };
    missing(RECORD) && (missing(SPEC) || dir.is_torn(SPEC))
}

/// Everything but the lock comes after the spec, which an older fullstop wrote under another
/// name first.
pub(super) fn is_first(name: &str) -> bool {
    [LOCK, SPEC, "spec.json.new"].contains(&name)
}

/// Whether a live run was listed a moment ago and its spec is still to be written. Its
/// directory is made before it is listed: where there is none, it was removed.
pub(crate) fn is_being_born(root: &Dir, dir: &Dir, id: &Id) -> Result<bool> {
    if !is_unwritten(dir) || !dir.names()?.iter().all(|name| is_first(name)) {
        return Ok(false);
    }
    let path = root.path.join(listing(id));
    match statat(&root.fd, listing(id).as_str(), AtFlags::empty()) {
        Err(Errno::NOENT) => Ok(false),
        Err(errno) => Err(StoreError::io("look at", &path, errno)),
        Ok(listed) => {
            // Nobody writes to a lock: this is when it was made. A name that is removed
            // changes another time.
            let since = u64::try_from(listed.st_mtime).unwrap_or_default();
            let since = SystemTime::UNIX_EPOCH + Duration::from_secs(since);
            Ok(since.elapsed().is_ok_and(|age| age < YOUNG))
        }
    }
}

/// Removes the lock and the socket of a run that is not listed; whether nothing else was
/// ever there. What has changed a moment ago may be in the making, and is left.
pub(crate) fn tidy(dir: &Dir) -> bool {
    let Ok(names) = dir.names() else { return false };
    let left = |name: &&String| [LOCK, SOCKET, ROOM, MEMBERS].contains(&name.as_str());
    let aged = || {
        let changed = std::fs::metadata(&dir.path).and_then(|meta| meta.modified());
        changed.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > YOUNG))
    };
    let is_blank = names.iter().all(|name| name == LOCK);
    if !(is_blank || names.iter().any(|name| left(&name))) || !aged() {
        return false;
    }
    match dir.open_file(LOCK, OFlags::RDWR) {
        Ok(lock) if is_locked(lock.as_fd(), LIVE).unwrap_or(true) => return false,
        Err(error) if !error.is_missing() => return false,
        _ => {}
    }
    for name in names.iter().filter(left) {
        let _ = dir.remove(name);
    }
    is_blank
}
