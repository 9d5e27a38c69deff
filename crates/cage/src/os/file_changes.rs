//! Being woken when a file changes, instead of looking at it again and again. See
//! inotify(7): a user has few of these, so that a program makes one and watches many
//! files with it.

use rustix::fs::inotify::{
    CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init, remove_watch,
};
use rustix::io::Errno;
use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

/// Readable once a watched file has changed.
///
/// A copy of this process that has forked shares the kernel's object behind it: there it changes
/// nothing, and takes nothing.
#[derive(Debug)]
pub struct FileChanges {
    inotify: OwnedFd,
    process: u32,
}

/// Which of the watched files. Two watches of one file have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WatchId(i32);

impl FileChanges {
    pub fn new() -> io::Result<FileChanges> {
        let inotify = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        Ok(FileChanges { inotify, process: std::process::id() })
    }

    /// From here on, what is written to the file wakes, and so does the loss of its
    /// name; of a directory, what appears in it, is written there or disappears.
    pub fn watch(&self, path: &Path) -> io::Result<WatchId> {
        let changes = WatchFlags::MODIFY
            | WatchFlags::ATTRIB
            | WatchFlags::DELETE
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF
            | WatchFlags::CREATE
            | WatchFlags::MOVED_TO;
        Ok(WatchId(add_watch(&self.inotify, path, changes)?))
    }

    /// Watches it no longer.
    pub fn forget(&self, watch: WatchId) {
        if self.is_ours() {
            // The kernel has forgotten a file that is gone already.
            let _ = remove_watch(&self.inotify, watch.0);
        }
    }

    fn is_ours(&self) -> bool {
        self.process == std::process::id()
    }

    /// Takes what has changed until now; of a directory, with the name of what has changed in it.
    /// Returns false if some of it was lost, so that any file may have changed.
    pub fn take(&self, mut changed: impl FnMut(WatchId, Option<&CStr>)) -> bool {
        if !self.is_ours() {
            return false;
        }
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut events = Reader::new(&self.inotify, &mut buffer);
        let mut is_whole = true;
        loop {
            match events.next() {
                Ok(event) if event.events().contains(ReadFlags::QUEUE_OVERFLOW) => is_whole = false,
                Ok(event) => changed(WatchId(event.wd()), event.file_name()),
                Err(Errno::INTR) => {}
                Err(_) => return is_whole,
            }
        }
    }
}

impl AsFd for FileChanges {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write as _;
    use std::path::PathBuf;

    fn path(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("fullstop-{name}-{}", std::process::id()))
    }

    fn taken(changes: &FileChanges) -> Vec<WatchId> {
        let mut taken = Vec::new();
        assert!(changes.take(|watch, _| taken.push(watch)));
        taken.dedup();
        taken
    }

    #[test]
    fn a_write_and_the_loss_of_the_name_are_seen_once() {
        let path = path("changes");
        let mut file = fs::File::create(&path).expect("a file");
        let changes = FileChanges::new().expect("an inotify");
        let watch = changes.watch(&path).expect("a watch");
        assert_eq!(taken(&changes), []);
        file.write_all(b"one").expect("written");
        assert_eq!(taken(&changes), [watch]);
        assert_eq!(taken(&changes), []);
        fs::remove_file(&path).expect("removed");
        assert_eq!(taken(&changes), [watch]);
    }

    #[test]
    fn a_copy_of_this_process_neither_takes_nor_forgets() {
        let path = path("changes-copy");
        let mut file = fs::File::create(&path).expect("a file");
        let changes = FileChanges::new().expect("an inotify");
        let watch = changes.watch(&path).expect("a watch");
        let inotify = changes.inotify.try_clone().expect("a descriptor");
        let copy = FileChanges { inotify, process: 1 };
        file.write_all(b"one").expect("written");
        assert!(!copy.take(|_, _| panic!("it was taken from the original")));
        copy.forget(watch);
        drop(copy);
        assert_eq!(taken(&changes), [watch]);
        file.write_all(b"two").expect("written");
        assert_eq!(taken(&changes), [watch]);
        fs::remove_file(&path).expect("removed");
    }

    #[test]
    fn files_are_told_apart_and_forgotten() {
        let paths = [path("changes-one"), path("changes-two")];
        let changes = FileChanges::new().expect("an inotify");
        let [one, two] = paths.each_ref().map(|path| {
            fs::create_dir_all(path).expect("a directory");
            changes.watch(path).expect("a watch")
        });
        assert_eq!(changes.watch(&paths[0]).expect("a second watch"), one);
        let write = |path: &Path| fs::write(path.join("log"), "one").expect("written");
        write(&paths[1]);
        assert!(changes.take(|watch, name| assert_eq!((watch, name), (two, Some(c"log")))));
        changes.forget(one);
        taken(&changes);
        for path in &paths {
            write(path);
        }
        assert_eq!(taken(&changes), [two]);
        fs::remove_file(paths[1].join("log")).expect("removed");
        assert_eq!(taken(&changes), [two]);
        for path in &paths {
            fs::remove_dir_all(path).expect("removed");
        }
    }
}
