//! A place in a journal that can be kept, sent to others, and come back to.

use crate::world;
use rustix::fs::{AtFlags, StatxFlags, statx};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::File;
use std::str::FromStr;
use thiserror::Error;

/// Which journal: the file by its inode and its birth, and the boot, since a crash of the
/// machine may take the last notices away, so that others get their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct JournalId {
    boot: String,
    inode: u64,
    born_ns: u128,
}

impl JournalId {
    pub fn of(file: &File) -> Result<JournalId, Errno> {
        let stat = statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::INO | StatxFlags::BTIME)?;
        let seconds = u128::try_from(stat.stx_btime.tv_sec).unwrap_or_default();
        // A file system that keeps no birth says zero.
        let born_ns = seconds * 1_000_000_000 + u128::from(stat.stx_btime.tv_nsec);
        let boot = world::here().boot.replace('-', "");
        Ok(JournalId { boot, inode: stat.stx_ino, born_ns })
    }
}

/// How far the changes of all runs are known. As text it is opaque: another program may
/// keep it, and go on from there.
///
/// ```
/// use fullstop_store::{Cursor, Store};
///
/// # let dir = std::env::temp_dir().join(format!("fullstop-doc-cursor-{}", std::process::id()));
/// let store = Store::at(&dir)?;
/// let mut reader = store.journal()?;
/// let cursor: Cursor = reader.cursor().to_string().parse()?;
/// assert!(reader.go_to(&cursor)?);
///
/// std::fs::remove_file(dir.join("journal"))?;
/// let mut reader = store.journal()?;
/// assert!(!reader.go_to(&cursor)?, "it is another journal");
/// # let _ = std::fs::remove_dir_all(&dir);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Cursor {
    pub(super) journal: JournalId,
    /// Where the next notice begins.
    pub(super) next: u64,
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let JournalId { boot, inode, born_ns } = &self.journal;
        write!(f, "{boot}-{inode:x}-{born_ns:x}-{:x}", self.next)
    }
}

impl From<Cursor> for String {
    fn from(cursor: Cursor) -> String {
        cursor.to_string()
    }
}

/// A text that is no cursor.
///
/// ```
/// use fullstop_store::Cursor;
///
/// let invalid = "yesterday".parse::<Cursor>().unwrap_err();
/// assert_eq!(invalid.to_string(), r#""yesterday" is no cursor"#);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0:?} is no cursor")]
pub struct InvalidCursor(String);

impl InvalidCursor {
    /// Says so of this text.
    pub fn new(text: &str) -> InvalidCursor {
        InvalidCursor(text.to_owned())
    }
}

impl FromStr for Cursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Cursor, InvalidCursor> {
        let invalid = || InvalidCursor::new(text);
        let parts: Vec<&str> = text.split('-').collect();
        let [boot, inode, born_ns, next] = parts[..] else { return Err(invalid()) };
        let number = |digits: &str| u64::from_str_radix(digits, 16).map_err(|_| invalid());
        if !boot.bytes().all(|letter| letter.is_ascii_hexdigit()) {
            return Err(invalid());
        }
        let born_ns = u128::from_str_radix(born_ns, 16).map_err(|_| invalid())?;
        let journal = JournalId { boot: boot.to_owned(), inode: number(inode)?, born_ns };
        Ok(Cursor { journal, next: number(next)? })
    }
}

impl TryFrom<String> for Cursor {
    type Error = InvalidCursor;

    fn try_from(text: String) -> Result<Cursor, InvalidCursor> {
        text.parse()
    }
}
