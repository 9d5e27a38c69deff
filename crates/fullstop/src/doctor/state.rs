//! The state directory: whose it is, what fits into it, what its file system can do.

use super::finding::{Area, Finding, Level};
use crate::error::{Error, Result};
use crate::runs::Runs;
use fullstop_cage::linux::{is_locked, try_lock};
use fullstop_cage::plain;
use rustix::fs::{OFlags, StatVfs, statvfs};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A record takes a few KiB, but the output of a busy agent goes to the same place.
const LOW_BYTES: u64 = 64 << 20;
/// What group and others may do.
const FOR_OTHERS: u32 = 0o077;
/// A run takes half a dozen.
const LOW_INODES: u64 = 1000;

pub fn findings(runs: &Result<Runs>) -> Vec<Finding> {
    match runs {
        Err(error) => vec![unusable(error)],
        Ok(runs) => [directory(runs.path()), space(runs.path()), features(runs.path())].into(),
    }
}

fn unusable(error: &Error) -> Finding {
    let what = format!("{error}; runs work in front only, and cannot be found again");
    let next = "set FULLSTOP_DIR to a directory of your own on a local disk";
    Finding::red(Area::State, "directory", what, next)
}

fn directory(path: &Path) -> Finding {
    let shown = path.display();
    match fs::metadata(path) {
        Ok(meta) => {
            let mode = meta.mode() & 0o7777;
            let what = format!("{shown}, of uid {}, mode {mode:04o}", meta.uid());
            let private = mode & FOR_OTHERS == 0;
            let level = if private { Level::Green } else { Level::Red };
            Finding::at(level, Area::State, "directory", what, format!("chmod 700 {shown}"))
        }
        Err(error) => {
            let what = format!("cannot look at {shown}: {}", plain(&error));
            Finding::red(Area::State, "directory", what, format!("see why: ls -ld {shown}"))
        }
    }
}

fn space(path: &Path) -> Finding {
    match statvfs(path) {
        Ok(stat) => room(path, &Room::of(&stat)),
        Err(errno) => {
            let why = plain(&errno.into());
            let what = format!("cannot tell the space for {}: {why}", path.display());
            Finding::yellow(Area::State, "space", what, format!("df {}", path.display()))
        }
    }
}

struct Room {
    bytes: u64,
    /// Nothing, where the file system does not count them.
    inodes: Option<u64>,
}

impl Room {
    fn of(stat: &StatVfs) -> Room {
        let bytes = stat.f_bavail.saturating_mul(stat.f_frsize);
        Room { bytes, inodes: (stat.f_files > 0).then_some(stat.f_favail) }
    }

    fn level(&self) -> Level {
        let inodes = self.inodes.unwrap_or(u64::MAX);
        if self.bytes == 0 || inodes == 0 {
            Level::Red
        } else if self.bytes < LOW_BYTES || inodes < LOW_INODES {
            Level::Yellow
        } else {
            Level::Green
        }
    }
}

fn room(path: &Path, room: &Room) -> Finding {
    let inodes = room.inodes.map_or(String::new(), |count| format!(" and {count} inodes"));
    let what = format!("{} MiB{inodes} free", room.bytes >> 20);
    let next = format!("fullstop prune, or make room on the disk of {}", path.display());
    Finding::at(room.level(), Area::State, "space", what, next)
}

/// Locks that belong to open files, second names, sockets: runs need all three, and
/// some file systems lack one.
fn features(path: &Path) -> Finding {
    let trial = Trial::new(path);
    let tried = [
        ("locks of open files (F_OFD_SETLK)", trial.locks()),
        ("second names for a file (hard links)", trial.links()),
        ("sockets", trial.sockets()),
    ];
    let missing: Vec<String> = tried
        .iter()
        .filter_map(|(what, tried)| Some(format!("{what}: {}", plain(tried.as_ref().err()?))))
        .collect();
    if missing.is_empty() {
        return Finding::green(Area::State, "file-system", "it has locks, links and sockets");
    }
    let what = format!("the file system of {} lacks {}", path.display(), missing.join(", "));
    let next = "set FULLSTOP_DIR to a directory on a local disk";
    Finding::red(Area::State, "file-system", what, next)
}

/// How the names of a try begin: hidden, so that nothing else lists them.
const OF_A_TRY: &str = ".doctor-";
/// Nobody tries for that long; whoever left its files for longer was killed.
const STALE: Duration = Duration::from_mins(1);

/// Files of a try, removed with it.
struct Trial {
    dir: PathBuf,
    base: String,
}

impl Trial {
    fn new(dir: &Path) -> Trial {
        remove_stale(dir);
        // A pid says little in a directory that several pid namespaces share.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let base = format!("{OF_A_TRY}{}-{}", std::process::id(), now.as_nanos());
        Trial { dir: dir.to_owned(), base }
    }

    fn path(&self, end: &str) -> PathBuf {
        self.dir.join(format!("{}{end}", self.base))
    }

    fn file(&self) -> io::Result<File> {
        let mut options = File::options();
        options.create(true).truncate(false).read(true).write(true).mode(0o600);
        // As all that is opened there: nothing is waited for, and no link is followed.
        let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW;
        options.custom_flags(flags.bits().cast_signed());
        options.open(self.path(".lock"))
    }

    fn locks(&self) -> io::Result<()> {
        let (one, other) = (self.file()?, self.file()?);
        if try_lock(one.as_fd(), 0)? && is_locked(other.as_fd(), 0)? {
            return Ok(());
        }
        Err(io::Error::other("they have no effect"))
    }

    fn links(&self) -> io::Result<()> {
        self.file()?;
        fs::hard_link(self.path(".lock"), self.path(".link"))
    }

    /// By the held directory, as a keeper does: a path may be too long for a socket.
    fn sockets(&self) -> io::Result<()> {
        let dir = File::open(&self.dir)?;
        let address = format!("/proc/self/fd/{}/{}.sock", dir.as_raw_fd(), self.base);
        UnixListener::bind(address).map(drop)
    }
}

fn remove_stale(dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let age = entry.metadata().and_then(|meta| meta.modified());
        let age = age.ok().and_then(|at| at.elapsed().ok());
        let of_a_try = entry.file_name().to_string_lossy().starts_with(OF_A_TRY);
        if of_a_try && age.is_some_and(|age| age > STALE) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        for end in [".lock", ".link", ".sock"] {
            let _ = fs::remove_file(self.path(end));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_room_is_yellow_and_none_is_red() {
        let level = |bytes, inodes| Room { bytes, inodes }.level();
        assert_eq!(level(1 << 30, Some(100_000)), Level::Green);
        assert_eq!(level(1 << 30, None), Level::Green);
        assert_eq!(level(LOW_BYTES - 1, None), Level::Yellow);
        assert_eq!(level(1 << 30, Some(LOW_INODES - 1)), Level::Yellow);
        assert_eq!(level(0, None), Level::Red);
        assert_eq!(level(1 << 30, Some(0)), Level::Red);
    }

    #[test]
    fn a_try_leaves_nothing_behind() {
        let dir = std::env::temp_dir().join(format!("fullstop-doctor-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a directory");
        // Somebody was killed here an hour ago, and somebody else is at it now.
        let old = File::create(dir.join(".doctor-1-1.lock")).expect("a file");
        let hour_ago = SystemTime::now() - Duration::from_hours(1);
        old.set_modified(hour_ago).expect("an age");
        File::create(dir.join(".doctor-1-2.lock")).expect("a file");
        let finding = features(&dir);
        let left: Vec<_> =
            fs::read_dir(&dir).expect("a list").flatten().map(|entry| entry.file_name()).collect();
        fs::remove_dir_all(&dir).expect("removed");
        assert_eq!(finding.level, Level::Green, "{finding:?}");
        assert_eq!(left, [".doctor-1-2.lock"]);
    }
}
