//! What a log says, piece by piece.

use fullstop_core::words::Stream;

/// What was written, when and where.
///
/// ```
/// use fullstop::{LogEntry, Stream};
///
/// let at = 1_800_000_000_000_000;
/// let entry = LogEntry::Text { stream: Stream::Out, at, end: 3, bytes: b"up\n".to_vec() };
/// assert_eq!((entry.at(), entry.stream()), (at, Stream::Out));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogEntry {
    /// Whole lines that came at one time, in microseconds since 1970. The last one may
    /// lack its newline: it is long, or nothing came behind it.
    Text {
        /// Where it was written.
        stream: Stream,
        /// When its first line was begun.
        at: u64,
        /// How much of the stream there is up to their end.
        end: u64,
        /// What was written.
        bytes: Vec<u8>,
    },
    /// So much is not in the log any more.
    Cut {
        /// Where it was written.
        stream: Stream,
        /// When came what stands before it.
        at: u64,
        /// How much of the stream there is up to what comes behind it.
        end: u64,
        /// How many bytes.
        bytes: u64,
    },
}

impl LogEntry {
    /// Where it was written.
    pub fn stream(&self) -> Stream {
        let (LogEntry::Text { stream, .. } | LogEntry::Cut { stream, .. }) = self;
        *stream
    }

    /// When it came, in microseconds since 1970.
    pub fn at(&self) -> u64 {
        let (LogEntry::Text { at, .. } | LogEntry::Cut { at, .. }) = self;
        *at
    }

    pub(super) fn end(&self) -> u64 {
        let (LogEntry::Text { end, .. } | LogEntry::Cut { end, .. }) = self;
        *end
    }
}
