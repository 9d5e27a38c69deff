//! Locks that belong to an open file and not to a process. See F_OFD_SETLK(2const).
//!
//! Guard and keeper share one by the fork, and it is free when both are gone. A
//! probe takes nothing, so that two probers cannot mistake each other for a holder.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Takes one byte of the file, if nobody has it. It is given back by closing.
pub fn try_lock(file: BorrowedFd<'_>, byte: i64) -> io::Result<bool> {
    let mut lock = whole(byte);
    match order(file, libc::F_OFD_SETLK, &mut lock) {
        Ok(()) => Ok(true),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// Whether somebody else has that byte.
pub fn is_locked(file: BorrowedFd<'_>, byte: i64) -> io::Result<bool> {
    let mut lock = whole(byte);
    order(file, libc::F_OFD_GETLK, &mut lock)?;
    Ok(i32::from(lock.l_type) != libc::F_UNLCK)
}

fn whole(byte: i64) -> libc::flock {
    // SAFETY: all zero is a valid lock description; the pid must be zero.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::c_short::try_from(libc::F_WRLCK).unwrap_or_default();
    lock.l_whence = libc::c_short::try_from(libc::SEEK_SET).unwrap_or_default();
    lock.l_start = byte;
    lock.l_len = 1;
    lock
}

fn order(file: BorrowedFd<'_>, command: libc::c_int, lock: &mut libc::flock) -> io::Result<()> {
    // SAFETY: the lock description is ours, and lives throughout the call.
    let done = unsafe { libc::fcntl(file.as_raw_fd(), command, std::ptr::from_mut(lock)) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsFd;

    fn files() -> (std::path::PathBuf, File, File) {
        let name =
            format!("fullstop-lock-{}-{:?}", std::process::id(), std::thread::current().id());
        let path = std::env::temp_dir().join(name);
        let open =
            || File::options().create(true).truncate(false).read(true).write(true).open(&path);
        let (one, other) = (open().expect("a file"), open().expect("a file"));
        (path, one, other)
    }

    #[test]
    fn a_duplicate_holds_it_until_the_last_is_closed() {
        let (path, one, other) = files();
        assert!(!is_locked(other.as_fd(), 0).expect("asked"));
        assert!(try_lock(one.as_fd(), 0).expect("tried"));
        let copy = one.try_clone().expect("a copy");
        drop(one);
        assert!(is_locked(other.as_fd(), 0).expect("asked"));
        assert!(!try_lock(other.as_fd(), 0).expect("tried"));
        drop(copy);
        assert!(!is_locked(other.as_fd(), 0).expect("asked"));
        let _ = std::fs::remove_file(path);
    }

    #[test]
    fn the_bytes_are_apart_and_a_probe_takes_nothing() {
        let (path, one, other) = files();
        assert!(try_lock(one.as_fd(), 0).expect("tried"));
        assert!(try_lock(other.as_fd(), 1).expect("tried"));
        assert!(is_locked(other.as_fd(), 0).expect("asked"));
        assert!(is_locked(other.as_fd(), 0).expect("asked"));
        assert!(is_locked(one.as_fd(), 1).expect("asked"));
        let _ = std::fs::remove_file(path);
    }
}
