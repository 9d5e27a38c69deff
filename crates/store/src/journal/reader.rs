//! Reading the journal: what was appended since the last look.

use super::cursor::{Cursor, JournalId};
use super::{JOURNAL, KEPT, LENGTH, Notice, VERSION};
use crate::error::{Result, StoreError};
use crate::files::Dir;
use rustix::fs::{AtFlags, OFlags, fstat, statat};
use std::fs::File;
use std::io::{Seek as _, SeekFrom};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

/// Reads what is appended from now on, or from a cursor on.
#[derive(Debug)]
pub struct JournalReader {
    root: Dir,
    file: File,
    id: JournalId,
    /// Where the next notice begins.
    next: u64,
}

/// What was appended since the last look.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct News {
    pub notices: Vec<Notice>,
    /// Something was, that cannot be read: any run may stand differently.
    pub missed: bool,
}

impl JournalReader {
    /// At its end. A journal that is not there yet is made, to be watched.
    pub(crate) fn open(root: Dir) -> Result<JournalReader> {
        let (file, id, next) = open_at_end(&root)?;
        Ok(JournalReader { root, file, id, next })
    }

    /// How far it was read.
    pub fn cursor(&self) -> Cursor {
        Cursor { journal: self.id.clone(), next: self.next }
    }

    /// Goes back to where another reader was. Returns false, and stays where it is, if
    /// what came since cannot be read any more, or if that was another journal.
    pub fn go_to(&mut self, cursor: &Cursor) -> Result<bool> {
        let end = end_of(&self.root, &mut self.file)?;
        let is_kept = cursor.next <= end && end - cursor.next <= KEPT;
        let is_known = cursor.journal == self.id && is_kept;
        if is_known {
            self.next = cursor.next;
        }
        Ok(is_known)
    }

    /// The file itself, by whatever name it has now.
    pub fn path(&self) -> PathBuf {
        use std::os::fd::AsRawFd as _;
        PathBuf::from(format!("/proc/self/fd/{}", self.file.as_raw_fd()))
    }

    /// Passes over what was appended until now.
    pub fn go_to_end(&mut self) -> Result<()> {
        self.next = end_of(&self.root, &mut self.file)?;
        Ok(())
    }

    /// If another file bears the journal's name by now, that one is read, from its end
    /// on, and has to be watched in place of the old one. Returns whether that is so.
    pub fn reopen_if_replaced(&mut self) -> Result<bool> {
        let named = statat(&self.root.fd, JOURNAL, AtFlags::empty());
        let same = matches!((named, fstat(&self.file)), (Ok(named), Ok(held))
            if (named.st_dev, named.st_ino) == (held.st_dev, held.st_ino));
        if !same {
            (self.file, self.id, self.next) = open_at_end(&self.root)?;
        }
        Ok(!same)
    }

    /// What is new. Of more than is kept, nothing is read, and all is missed.
    pub fn read(&mut self) -> Result<News> {
        let mut news = News::default();
        let end = end_of(&self.root, &mut self.file)?;
        if end < self.next || end - self.next > KEPT {
            news.missed = true;
            self.next = end;
        }
        let mut new = vec![0; usize::try_from(end - self.next).unwrap_or_default()];
        let why = |error| StoreError::io("read", &self.root.path.join(JOURNAL), error);
        let length = self.file.read_at(&mut new, self.next).map_err(why)?;
        self.next += take_whole(&new[..length], &mut news) as u64;
        Ok(news)
    }
}

fn open_at_end(root: &Dir) -> Result<(File, JournalId, u64)> {
    let opened = root.open_file(JOURNAL, OFlags::RDONLY);
    let mut file = match opened {
        Err(error) if error.is_missing() => {
            root.open_file(JOURNAL, OFlags::RDWR | OFlags::CREATE | OFlags::APPEND)?
        }
        other => other?,
    };
    // A member of a run may have put anything there, and must not keep us reading.
    if !file.metadata().is_ok_and(|meta| meta.is_file()) {
        let why = "it is no plain file".to_owned();
        return Err(StoreError::Damaged { path: root.path.join(JOURNAL), why });
    }
    let next = end_of(root, &mut file)?;
    let id = JournalId::of(&file)
        .map_err(|errno| StoreError::io("look at", &root.path.join(JOURNAL), errno))?;
    Ok((file, id, next))
}

fn end_of(root: &Dir, file: &mut File) -> Result<u64> {
    let why = |error| StoreError::io("read", &root.path.join(JOURNAL), error);
    file.seek(SeekFrom::End(0)).map_err(why)
}

/// Takes the whole notices at the beginning of `bytes`. Returns how much that was.
fn take_whole(bytes: &[u8], news: &mut News) -> usize {
    let mut used = 0;
    while let Some(line) = bytes.get(used..used + LENGTH) {
        if line[LENGTH - 1] == b'\n' {
            match serde_json::from_slice::<Notice>(line) {
                Ok(notice) if notice.version <= VERSION => news.notices.push(notice),
                // A later version may mean other things by the same words.
                _ => news.missed = true,
            }
            used += LENGTH;
        } else {
            // Out of step: a hole, or a stranger's line. It goes on behind its end.
            news.missed = true;
            let end = line.iter().position(|&byte| byte == b'\n');
            used += end.map_or(LENGTH, |end| end + 1);
        }
    }
    used
}
