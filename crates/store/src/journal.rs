//! The journal: one file per state directory, to which every change of a run's state is
//! appended as a notice, so that others can wait for it instead of looking.
//!
//! A notice is a line of JSON, filled up with blanks to 256 bytes. Appends of that size
//! do not tear and need no lock. The records stay the truth: a notice says where to
//! look, and a writer that is killed between record and notice loses one. The head of
//! the file is punched out, never renamed, so that the place of a notice stays its
//! number.

mod cursor;
mod reader;

pub use cursor::{Cursor, InvalidCursor};
pub use reader::{JournalReader, News};

use crate::error::{Result, StoreError};
use crate::files::Dir;
use fullstop_core::id::Id;
use fullstop_protocol::Record;
use rustix::fs::{FallocateFlags, OFlags, fallocate};
use serde::{Deserialize, Serialize};
use std::io::{Seek as _, Write as _};

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
    /// The word for its state; [`Notice::REMOVED`], if it is not there any more.
    pub state: String,
}

impl Notice {
    pub const REMOVED: &str = "removed";

    /// That a run was removed, record and all.
    pub(crate) fn of_removed(id: &Id, last: Option<&Record>) -> Notice {
        Notice {
            version: VERSION,
            id: id.clone(),
            generation: last.map_or(0, |record| record.generation),
            events: last.map_or(0, |record| record.events),
            state: Notice::REMOVED.to_owned(),
        }
    }

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

/// Appends a notice for those who read the journal. They make it, before they read the
/// records: without a journal there is no reader who would miss the notice.
pub(crate) fn append(root: &Dir, notice: &Notice) -> Result<()> {
    let mut file = match root.open_file(JOURNAL, OFlags::WRONLY | OFlags::APPEND) {
        Err(error) if error.is_missing() => return Ok(()),
        opened => opened?,
    };
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
