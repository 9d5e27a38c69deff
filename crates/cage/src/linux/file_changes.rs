//! Being woken when a file changes, instead of looking at it again and again. See
//! inotify(7): a user has few of these, so that a program makes one and watches many
//! files with it.

use rustix::fs::inotify::{CreateFlags, Reader, WatchFlags, add_watch, init};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::Path;

/// Readable once a watched file has changed.
#[derive(Debug)]
pub struct FileChanges(OwnedFd);

impl FileChanges {
    pub fn new() -> io::Result<FileChanges> {
        Ok(FileChanges(init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?))
    }

    /// From here on, what is written to the file wakes, and so does the loss of its
    /// name; of a directory, what appears in it.
    pub fn watch(&self, path: &Path) -> io::Result<()> {
        let changes = WatchFlags::MODIFY
            | WatchFlags::ATTRIB
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF
            | WatchFlags::CREATE
            | WatchFlags::MOVED_TO;
        add_watch(&self.0, path, changes)?;
        Ok(())
    }

    /// Forgets what has changed until now; whether anything has.
    pub fn drain(&self) -> bool {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut events = Reader::new(&self.0, &mut buffer);
        let mut any = false;
        while events.next().is_ok() {
            any = true;
        }
        any
    }
}

impl AsFd for FileChanges {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for FileChanges {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write as _;

    #[test]
    fn a_write_and_the_loss_of_the_name_are_seen_once() {
        let path = std::env::temp_dir().join(format!("fullstop-changes-{}", std::process::id()));
        let mut file = fs::File::create(&path).expect("a file");
        let changes = FileChanges::new().expect("an inotify");
        changes.watch(&path).expect("a watch");
        assert!(!changes.drain());
        file.write_all(b"one").expect("written");
        assert!(changes.drain() && !changes.drain());
        fs::remove_file(&path).expect("removed");
        assert!(changes.drain() && !changes.drain());
    }
}
