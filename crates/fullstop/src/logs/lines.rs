//! A log, line by line.

use super::{LogCursor, LogEntry, Logs};
use crate::error::Result;
use crate::stream::{Next, Streamed};
use fullstop_core::words::Stream;
use futures_core::Stream as FutureStream;
use std::borrow::Cow;
use std::collections::VecDeque;

/// One line that a run has written.
///
/// ```
/// use fullstop::{LogLine, Stream};
///
/// let (stream, at) = (Stream::Out, 1_800_000_000_000_000);
/// let line = LogLine { stream, at, bytes: b"up".to_vec(), has_newline: true, missing: 0 };
/// assert_eq!(line.text(), "up");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// Where it was written.
    pub stream: Stream,
    /// When it was begun, in microseconds since 1970.
    pub at: u64,
    /// What it says, without its newline; never more than [`LogLine::LONGEST`].
    pub bytes: Vec<u8>,
    /// Whether the line ends here. A line that is too long comes in pieces, and what nothing
    /// came behind for a moment, as a prompt, comes without its end.
    pub has_newline: bool,
    /// So many bytes are not in the log any more. What tells that has no bytes of its own.
    pub missing: u64,
}

impl LogLine {
    /// A line that is longer comes in pieces of this length.
    pub const LONGEST: usize = 64 * 1024;

    /// What it says, where it is not UTF-8 with replacement characters.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }
}

/// The log of a run, line by line: see [`Logs::lines`].
///
/// ```
/// # let dir = std::env::temp_dir().join(format!("fullstop-doc-lines-{}", std::process::id()));
/// # let runs = fullstop::Runs::at(&dir)?;
/// use fullstop::{Command, blocking};
///
/// let run = blocking::start(Command::new("sh").args(["-c", "echo one; echo two"]).runs(&runs))?;
/// let mut said = Vec::new();
/// blocking::wait(async {
///     let mut lines = run.logs().follow().lines();
///     while let Some(line) = lines.next().await? {
///         said.push(line.text().into_owned());
///     }
///     Ok(())
/// })?;
/// assert_eq!(said, ["one", "two"]);
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Lines {
    logs: Logs,
    /// With the place in their stream behind each.
    ready: VecDeque<(LogLine, u64)>,
    /// Nothing, before the log is opened.
    cursor: Option<LogCursor>,
}

impl Logs {
    /// The same, line by line.
    pub fn lines(self) -> Lines {
        Lines { logs: self, ready: VecDeque::new(), cursor: None }
    }
}

impl Lines {
    /// Waits for the next line; nothing, where [`Logs::next`] returns nothing. A future that is
    /// dropped loses nothing.
    pub async fn next(&mut self) -> Result<Option<LogLine>> {
        if self.cursor.is_none() {
            self.logs.open().await?;
            self.cursor = Some(self.logs.cursor());
        }
        loop {
            if let Some(line) = self.at_once() {
                return Ok(Some(line));
            }
            let Some(entry) = self.logs.next().await? else { return Ok(None) };
            self.add(entry);
        }
    }

    /// A place to go on from, behind all lines that were returned.
    pub fn cursor(&self) -> LogCursor {
        self.cursor.clone().unwrap_or_else(|| self.logs.cursor())
    }

    /// The same as a stream, for use with a `StreamExt`. It ends behind an error.
    pub fn into_stream(self) -> impl FutureStream<Item = Result<LogLine>> + Send + Unpin {
        let next = |mut lines: Lines| -> Next<Lines, LogLine> {
            Box::pin(async move {
                let next = lines.next().await;
                (lines, next.transpose())
            })
        };
        Streamed::new(self, Lines::at_once, next)
    }

    fn at_once(&mut self) -> Option<LogLine> {
        let (line, end) = self.ready.pop_front()?;
        if let Some(cursor) = &mut self.cursor {
            cursor.set(line.stream, end);
        }
        Some(line)
    }

    fn add(&mut self, entry: LogEntry) {
        let (stream, at) = (entry.stream(), entry.at());
        match entry {
            LogEntry::Cut { bytes: missing, end, .. } => {
                let line = LogLine { stream, at, bytes: Vec::new(), has_newline: false, missing };
                self.ready.push_back((line, end));
            }
            LogEntry::Text { end, bytes, .. } => {
                let mut place = end - bytes.len() as u64;
                for line in bytes.split_inclusive(|byte| *byte == b'\n') {
                    for (text, has_newline) in pieces(line) {
                        place += text.len() as u64 + u64::from(has_newline);
                        let bytes = text.to_vec();
                        let line = LogLine { stream, at, bytes, has_newline, missing: 0 };
                        self.ready.push_back((line, place));
                    }
                }
            }
        }
    }
}

/// A line in pieces that are not too long, without its newline, and whether it ends there.
fn pieces(line: &[u8]) -> impl Iterator<Item = (&[u8], bool)> {
    let (text, has_newline) = match line.split_last() {
        Some((b'\n', text)) => (text, true),
        _ => (line, false),
    };
    // An empty line is a line.
    let count = text.len().div_ceil(LogLine::LONGEST).max(1);
    (0..count).map(move |piece| {
        let end = text.len().min((piece + 1) * LogLine::LONGEST);
        (&text[piece * LogLine::LONGEST..end], has_newline && piece + 1 == count)
    })
}

#[cfg(test)]
mod tests;
