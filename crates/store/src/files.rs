//! Small files in a held directory: whole or not at all.

use crate::error::{Result, StoreError};
use crate::format::Format;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, mkdirat, openat, renameat, statat, unlinkat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

pub const OWNER_ONLY: Mode = Mode::RUSR.union(Mode::WUSR);

/// A directory that is held open; `path` is for messages.
#[derive(Debug)]
pub struct Dir {
    pub fd: OwnedFd,
    pub path: PathBuf,
}

impl Dir {
    pub fn open(path: &Path) -> Result<Dir> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::open(path, flags, Mode::empty())
            .map_err(|errno| StoreError::io("open", path, errno))?;
        Ok(Dir { fd, path: path.to_owned() })
    }

    /// Held once more, on its own.
    pub fn try_clone(&self) -> Result<Dir> {
        let fd = self.fd.try_clone().map_err(|error| StoreError::io("hold", &self.path, error))?;
        Ok(Dir { fd, path: self.path.clone() })
    }

    pub fn below(&self, name: &str) -> Result<Dir> {
        // A link would lead to what is not ours.
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let path = self.path.join(name);
        let fd = openat(&self.fd, name, flags, Mode::empty())
            .map_err(|errno| StoreError::io("open", &path, errno))?;
        Ok(Dir { fd, path })
    }

    /// Makes a directory below, if it is not there.
    pub(crate) fn make(&self, name: &str) -> Result<()> {
        match mkdirat(&self.fd, name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(errno) => Err(StoreError::io("make", &self.path.join(name), errno)),
        }
    }

    /// Neither a link nor a pipe of that name is waited for, or leads elsewhere.
    pub fn open_file(&self, name: &str, flags: OFlags) -> Result<File> {
        let ours = OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let opened = openat(&self.fd, name, flags | ours, OWNER_ONLY);
        opened.map(File::from).map_err(|errno| StoreError::io("open", &self.path.join(name), errno))
    }

    /// As [`Dir::open_file`], for what others could have put there: an error that says what it
    /// is, if it is no regular file.
    pub(crate) fn open_regular(&self, name: &str, flags: OFlags) -> Result<File> {
        match self.open_file(name, flags) {
            Err(error) if error.is_missing() => Err(error),
            Err(error) => Err(self.strange(name).unwrap_or(error)),
            Ok(file) if file.metadata().is_ok_and(|meta| meta.is_file()) => Ok(file),
            Ok(file) => self.strange(name).map_or(Ok(file), Err),
        }
    }

    /// What stands there in place of a file of ours; nothing, if it is a regular file, or not
    /// there.
    pub(crate) fn strange(&self, name: &str) -> Option<StoreError> {
        let found = statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let kind = match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile => return None,
            FileType::Fifo => "a pipe",
            FileType::Symlink => "a link",
            FileType::Directory => "a directory",
            FileType::Socket => "a socket",
            _ => "a device",
        };
        Some(StoreError::Strange { path: self.path.join(name), kind })
    }

    /// Takes away whatever has this name. Of a directory, which is none of ours, only the name
    /// is in the way: it is moved aside, with all that is in it.
    pub(crate) fn clear(&self, name: &str) -> Result<()> {
        /// Every one of them was put there by hand.
        const MOST: u32 = 100;
        match unlinkat(&self.fd, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => return Ok(()),
            Err(Errno::ISDIR) => {}
            Err(errno) => return Err(StoreError::io("remove", &self.path.join(name), errno)),
        }
        let mut moved = renameat(&self.fd, name, &self.fd, format!("{name}.strange"));
        for number in 2..MOST {
            if !matches!(moved, Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR)) {
                break;
            }
            moved = renameat(&self.fd, name, &self.fd, format!("{name}.strange-{number}"));
        }
        moved.map_err(|errno| StoreError::io("move aside", &self.path.join(name), errno))
    }

    /// Writes a file that is not there yet. What stands there was left by a writer that was cut
    /// short, or is none of ours: it is never written into.
    pub fn write_new(&self, name: &str, value: &impl Serialize) -> Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let file = match self.open_file(name, flags) {
            Err(error) if error.is_taken() => {
                self.clear(name)?;
                self.open_file(name, flags)?
            }
            other => other?,
        };
        self.fill(&file, name, value)
    }

    /// Replaces a file: whoever reads it reads the old one or the new one.
    pub fn replace(&self, name: &str, value: &impl Serialize) -> Result<()> {
        let new = format!("{name}.new");
        let written = self.write_new(&new, value).and_then(|()| {
            let renamed = || renameat(&self.fd, new.as_str(), &self.fd, name);
            let why = |errno| StoreError::io("replace", &self.path.join(name), errno);
            match renamed() {
                Err(Errno::ISDIR) => {
                    self.clear(name)?;
                    renamed().map_err(why)
                }
                other => other.map_err(why),
            }
        });
        // A full disk is not filled further by our own leavings.
        written.inspect_err(|_| drop(self.remove(&new)))
    }

    fn fill(&self, mut file: &File, name: &str, value: &impl Serialize) -> Result<()> {
        let mut text = serde_json::to_vec(value).map_err(|error| StoreError::Damaged {
            path: self.path.join(name),
            why: error.to_string(),
        })?;
        text.push(b'\n');
        file.write_all(&text).map_err(|error| StoreError::io("write", &self.path.join(name), error))
    }

    /// Reads a file with a version in it. A later one may mean other things by the
    /// same names, so it is not looked into.
    pub fn read<T: Format>(&self, name: &str) -> Result<T> {
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        let path = || self.path.join(name);
        // What it is is asked only if it cannot be read: that costs a whole file nothing.
        let strange = |error| self.strange(name).unwrap_or(error);
        let file = self
            .open_file(name, OFlags::RDONLY)
            .map_err(|error| if error.is_missing() { error } else { strange(error) })?;
        let text = read_whole(&file).map_err(|errno| {
            strange(match errno {
                Errno::FBIG => StoreError::Damaged {
                    path: path(),
                    why: "it is too long to be ours".to_owned(),
                },
                errno => StoreError::io("read", &path(), errno),
            })
        })?;
        let damaged = |error: serde_json::Error| {
            strange(StoreError::Damaged { path: path(), why: error.to_string() })
        };
        let Versioned { version } = serde_json::from_slice(&text).map_err(damaged)?;
        if version > T::VERSION {
            return Err(StoreError::Newer { path: path(), version });
        }
        T::parse(version, &text).map_err(damaged)
    }

    /// Whether whoever wrote it was cut short: what is whole ends with a line.
    pub fn is_torn(&self, name: &str) -> bool {
        let mut text = Vec::new();
        let file = self.open_regular(name, OFlags::RDONLY);
        file.is_ok_and(|mut file| file.read_to_end(&mut text).is_ok())
            && text.last() != Some(&b'\n')
    }

    pub fn remove(&self, name: &str) -> Result<()> {
        match unlinkat(&self.fd, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(StoreError::io("remove", &self.path.join(name), errno)),
        }
    }

    /// The same for what may be a directory, which is none of ours.
    pub fn remove_whole(&self, name: &str) -> Result<()> {
        match self.remove(name) {
            Err(StoreError::Io { what, path, source })
                if source.kind() == std::io::ErrorKind::IsADirectory =>
            {
                std::fs::remove_dir_all(&path).map_err(|source| StoreError::Io {
                    what,
                    path,
                    source,
                })
            }
            other => other,
        }
    }

    /// The names in it, hidden ones aside.
    pub fn names(&self) -> Result<Vec<String>> {
        self.names_that(|name| !name.starts_with('.'))
    }

    /// The names in it that begin with a dot; its own and that of its parent are among them.
    pub(crate) fn hidden_names(&self) -> Result<Vec<String>> {
        self.names_that(|name| name.starts_with('.'))
    }

    fn names_that(&self, wanted: fn(&str) -> bool) -> Result<Vec<String>> {
        let fd = openat(
            &self.fd,
            ".",
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .map_err(|errno| StoreError::io("read", &self.path, errno))?;
        let entries =
            rustix::fs::Dir::new(fd).map_err(|errno| StoreError::io("read", &self.path, errno))?;
        let mut names = Vec::new();
        for entry in entries {
            // Half a list would hide a member from whoever closes its group.
            let entry = entry.map_err(|errno| StoreError::io("read", &self.path, errno))?;
            let name = entry.file_name().to_str().ok().filter(|name| wanted(name));
            names.extend(name.map(str::to_owned));
        }
        Ok(names)
    }
}

/// Reads a small file in one call where it can: what is whole ends with a line, so that a
/// short read that ends with one needs no second read to know the end. FBIG, if it is longer
/// than anything of ours: an environment is the longest part, and the kernel bounds that.
fn read_whole(file: &File) -> rustix::io::Result<Vec<u8>> {
    const ROOM: usize = 8 * 1024;
    const LONGEST: usize = 64 * 1024 * 1024;
    let mut text = Vec::with_capacity(ROOM);
    loop {
        if text.len() == text.capacity() {
            text.reserve(text.len());
        }
        if text.len() > LONGEST {
            return Err(Errno::FBIG);
        }
        let room = text.capacity() - text.len();
        let length = match rustix::io::read(file, rustix::buffer::spare_capacity(&mut text)) {
            Err(Errno::INTR) => continue,
            other => other?,
        };
        if length == 0 || length < room && text.last() == Some(&b'\n') {
            return Ok(text);
        }
    }
}
