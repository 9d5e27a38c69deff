//! A place in a log that can be kept, sent to others, and come back to.

use super::LogEntry;
use fullstop_core::id::Id;
use fullstop_core::words::Stream;
use fullstop_store::InvalidCursor;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// How far the log of a run was read. As text it is opaque: another program may keep it, and
/// go on from there.
///
/// ```
/// # let dir = std::env::temp_dir().join(format!("fullstop-doc-log-cursor-{}", std::process::id()));
/// # let runs = fullstop::Runs::at(&dir)?;
/// use fullstop::{Command, LogCursor, LogEntry, blocking};
///
/// let words = Command::new("sh").args(["-c", "echo one; sleep 0.1; echo two"]);
/// let run = blocking::start(words.runs(&runs))?;
/// blocking::wait(run.wait())?;
/// let mut logs = run.logs();
/// blocking::wait(logs.next())?;
/// let kept = logs.cursor().to_string();
///
/// let cursor: LogCursor = kept.parse()?;
/// let mut logs = run.logs().from(&cursor);
/// let rest = blocking::wait(logs.next())?;
/// assert!(matches!(rest, Some(LogEntry::Text { bytes, .. }) if bytes == b"two\n"));
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LogCursor {
    id: Id,
    /// How much of each stream was read.
    ends: [u64; Stream::ALL.len()],
}

impl LogCursor {
    pub(super) fn new(id: Id) -> LogCursor {
        LogCursor { id, ends: [0; Stream::ALL.len()] }
    }

    /// Whose log it is.
    pub fn id(&self) -> &Id {
        &self.id
    }

    pub(super) fn end(&self, stream: Stream) -> u64 {
        place(stream).map_or(0, |place| self.ends[place])
    }

    pub(super) fn set(&mut self, stream: Stream, end: u64) {
        if let Some(place) = place(stream) {
            self.ends[place] = end;
        }
    }

    /// To behind this.
    pub fn pass(&mut self, entry: &LogEntry) {
        self.set(entry.stream(), entry.end());
    }
}

fn place(stream: Stream) -> Option<usize> {
    Stream::ALL.iter().position(|known| *known == stream)
}

impl fmt::Display for LogCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.id)?;
        self.ends.iter().try_for_each(|end| write!(f, "-{end:x}"))
    }
}

impl FromStr for LogCursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<LogCursor, InvalidCursor> {
        let invalid = || InvalidCursor::new(text);
        let mut parts = text.split('-');
        let id = parts.next().and_then(|id| id.parse().ok()).ok_or_else(invalid)?;
        let mut cursor = LogCursor::new(id);
        for end in &mut cursor.ends {
            let digits = parts.next().ok_or_else(invalid)?;
            *end = u64::from_str_radix(digits, 16).map_err(|_| invalid())?;
        }
        if parts.next().is_some() { Err(invalid()) } else { Ok(cursor) }
    }
}

impl From<LogCursor> for String {
    fn from(cursor: LogCursor) -> String {
        cursor.to_string()
    }
}

impl TryFrom<String> for LogCursor {
    type Error = InvalidCursor;

    fn try_from(text: String) -> Result<LogCursor, InvalidCursor> {
        text.parse()
    }
}
