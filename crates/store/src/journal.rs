//! The journal: one file per state directory, to which every change of a run's state is
//! appended as a notice, so that others can wait for it instead of looking.
//!
//! A notice is a line of JSON, filled up with blanks to 256 bytes. Appends of that size
//! do not tear and need no lock. The records stay the truth: a notice says where to
//! look, and a writer that is killed between record and notice loses one. The head of
//! the file is punched out, never renamed, so that the place of a notice stays its
//! number.

use crate::error::{Result, StoreError};
use crate::files::Dir;
use fullstop_core::id::Id;
use fullstop_protocol::Record;
use rustix::fs::{AtFlags, FallocateFlags, OFlags, fallocate, fstat, statat};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

pub(crate) const JOURNAL: &str = "journal";
/// Every notice is as long as this. It divides a page, which is why none tears.
const LENGTH: usize = 256;
/// How much of the journal is kept, and how often its head is punched out: enough
/// notices for any reader that is awake.
const KEPT: u64 = 1 << 20;
const VERSION: u32 = 1;

/// That a run stands differently than before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    pub version: u32,
    pub id: Id,
    pub generation: u32,
    /// How many events there were, through all generations; 0, if that is not told.
    #[serde(default)]
    pub events: u64,
    /// The word for its state.
    pub state: String,
}

impl Notice {
    /// That a run stands as this record says.
    pub fn of(record: &Record) -> Notice {
        Notice {
            version: VERSION,
            id: record.id.clone(),
            generation: record.generation,
            events: record.events,
            state: record.state.word().to_owned(),
        }
    }

    fn encode(&self) -> [u8; LENGTH] {
        let mut line = [b' '; LENGTH];
        line[LENGTH - 1] = b'\n';
        let json = serde_json::to_vec(self).unwrap_or_default();
        if json.len() < LENGTH {
            line[..json.len()].copy_from_slice(&json);
        }
        line
    }
}

/// Tells whoever reads the journal.
pub(crate) fn append(root: &Dir, notice: &Notice) -> Result<()> {
    let mut file = root.open_file(JOURNAL, OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND)?;
    let why = |error| StoreError::io("write", &root.path.join(JOURNAL), error);
    file.write_all(&notice.encode()).map_err(why)?;
    let end = file.stream_position().map_err(why)?;
    if end > KEPT && end / KEPT != (end - LENGTH as u64) / KEPT {
        // Where holes cannot be punched the journal grows.
        let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let _ = fallocate(&file, punch, 0, end - KEPT);
    }
    Ok(())
}

/// Reads what is appended from now on.
#[derive(Debug)]
pub struct JournalReader {
    root: Dir,
    file: File,
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
        let (file, next) = open_at_end(&root)?;
        Ok(JournalReader { root, file, next })
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
            (self.file, self.next) = open_at_end(&self.root)?;
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

fn open_at_end(root: &Dir) -> Result<(File, u64)> {
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
    Ok((file, next))
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
