//! Reading a log while it is written, without ever keeping its writer waiting.

use super::parts::{self, Part, data_name, index_name};
use super::times::Times;
use crate::error::{Result, StoreError};
use crate::files::Dir;
use fullstop_core::words::Stream;
use rustix::fs::OFlags;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

/// The most that is read at once.
pub(super) const BLOCK: usize = 64 * 1024;

/// A piece of a stream.
///
/// ```
/// use fullstop_store::Piece;
///
/// let piece = Piece::Bytes { at: 1_800_000_000_000_000, bytes: b"hello\n".to_vec() };
/// assert_ne!(piece, Piece::Cut { bytes: 6 });
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// What came, and when: in microseconds since 1970.
    Bytes { at: u64, bytes: Vec<u8> },
    /// So much is not in the log any more.
    Cut { bytes: u64 },
}

/// How much there is of a stream.
///
/// ```
/// use fullstop_store::Extent;
///
/// let extent = Extent { kept: 64, cut: 36 };
/// assert_eq!(extent.kept + extent.cut, 100);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// In the log.
    pub kept: u64,
    /// Removed from it by its cap.
    pub cut: u64,
}

/// Reads the log of one stream, over all its files and generations.
///
/// ```
/// use fullstop_core::{id::Id, words::Stream};
/// use fullstop_store::{Piece, Store};
///
/// let dir = std::env::temp_dir().join(format!("fullstop-doc-reader-{}", std::process::id()));
/// let (store, id) = (Store::at(&dir)?, Id::new(1_800_000_000_000, 7));
/// let run = store.create(&id)?;
/// run.log(Stream::Out, None)?.write(b"hello\n", 1_800_000_000_000_000);
///
/// let mut log = store.log(&id, Stream::Out)?.expect("there is one");
/// let hello = Piece::Bytes { at: 1_800_000_000_000_000, bytes: b"hello\n".to_vec() };
/// assert_eq!(log.next()?, Some(hello));
/// assert_eq!(log.next()?, None); // for now
/// # let _ = std::fs::remove_dir_all(&dir);
/// # Ok::<(), fullstop_store::StoreError>(())
/// ```
#[derive(Debug)]
pub struct LogReader {
    /// Readers of several streams of one run share it.
    pub(super) dir: Arc<Dir>,
    pub(super) stream: Stream,
    /// Where the next byte is in the stream.
    pub(super) offset: u64,
    open: Option<Open>,
    /// What was read, and how much of it was given.
    block: Vec<u8>,
    given: usize,
    blocks: u64,
}

/// The file that is read. It is held: what is removed meanwhile is read to its end.
#[derive(Debug)]
struct Open {
    start: u64,
    data: File,
    times: Times,
}

/// What came of going on.
enum Step {
    On,
    /// On, over a gap.
    Over {
        cut: u64,
    },
    End,
}

impl LogReader {
    /// Nothing, if there is no such log.
    pub(crate) fn open(dir: Arc<Dir>, stream: Stream) -> Result<Option<LogReader>> {
        let is_there = !parts::list(&dir, stream)?.is_empty();
        let (block, given, blocks) = (Vec::new(), 0, 0);
        let reader = LogReader { dir, stream, offset: 0, open: None, block, given, blocks };
        Ok(is_there.then_some(reader))
    }

    /// The log of another stream of the same run, from its beginning.
    pub fn beside(&self, stream: Stream) -> Result<Option<LogReader>> {
        LogReader::open(Arc::clone(&self.dir), stream)
    }

    pub fn stream(&self) -> Stream {
        self.stream
    }

    /// Where in the stream the next byte is that it will give.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Holds no file and no memory until it is read again. To be called at its end; what is
    /// rotated away meanwhile is told as cut.
    pub fn rest(&mut self) {
        if self.given >= self.block.len() {
            self.seek(self.offset);
            self.block = Vec::new();
        }
    }

    /// How many blocks were read until now. What [`LogReader::next`] gives without reading
    /// another one was there already when the last one was read.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// How much there is of it now.
    pub fn extent(&self) -> Result<Extent> {
        let parts = parts::list(&self.dir, self.stream)?;
        let kept = parts.iter().map(|part| part.len).sum();
        let end = parts.last().map_or(0, Part::end);
        Ok(Extent { kept, cut: end.saturating_sub(kept) })
    }

    /// The next piece, of 64 KiB at most; nothing at the end, which is the end for now:
    /// more may come.
    #[allow(clippy::should_implement_trait, reason = "an iterator does not go on after its end")]
    pub fn next(&mut self) -> Result<Option<Piece>> {
        loop {
            if self.given < self.block.len() || self.fill()? {
                return self.give().map(Some);
            }
            match self.go_on()? {
                Step::On => {}
                Step::Over { cut } => return Ok(Some(Piece::Cut { bytes: cut })),
                Step::End => return Ok(None),
            }
        }
    }

    /// What is read and came at one time.
    fn give(&mut self) -> Result<Piece> {
        let waiting = &self.block[self.given..];
        let seen = self.offset + waiting.len() as u64;
        let (mut at, mut until) = (None, seen);
        if let Some(open) = &mut self.open {
            (at, until) = open.times.of(&self.dir, self.offset, seen);
            if at.is_none() {
                let why = |error| StoreError::io("look at", &self.dir.path, error);
                at = Some(changed(&open.data).map_err(why)?);
            }
        }
        let count = usize::try_from(until.min(seen) - self.offset).unwrap_or(waiting.len());
        let bytes = waiting[..count].to_vec();
        self.offset += count as u64;
        self.given += count;
        Ok(Piece::Bytes { at: at.unwrap_or_default(), bytes })
    }

    /// Reads what comes next in the file that is open; whether there was any.
    fn fill(&mut self) -> Result<bool> {
        let Some(open) = &self.open else { return Ok(false) };
        self.block.resize(BLOCK, 0);
        self.given = 0;
        let read = open.data.read_at(&mut self.block, self.offset - open.start);
        self.block.truncate(*read.as_ref().unwrap_or(&0));
        match read {
            Ok(count) => {
                self.blocks += u64::from(count > 0);
                Ok(count > 0)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => self.fill(),
            Err(error) => {
                let path = self.dir.path.join(data_name(self.stream, open.start));
                Err(StoreError::io("read", &path, error))
            }
        }
    }

    /// Goes on to the file behind the one that is read to its end, if there is one.
    fn go_on(&mut self) -> Result<Step> {
        loop {
            let parts = parts::list(&self.dir, self.stream)?;
            let Some(next) = self.choose(&parts) else { return Ok(Step::End) };
            // A file with another one behind it is not written to any more, but may have
            // been since it was read.
            if self.fill()? {
                return Ok(Step::On);
            }
            let name = data_name(self.stream, next.start);
            let data = match self.dir.open_file(&name, OFlags::RDONLY | OFlags::NOFOLLOW) {
                // Rotated away since it was listed.
                Err(error) if error.is_missing() => continue,
                other => other?,
            };
            let cut = next.start.saturating_sub(self.offset);
            self.offset += cut;
            let index = index_name(self.stream, next.start);
            let times = if self.offset > next.start {
                Times::from(&self.dir, index, self.offset)
            } else {
                Times::new(index)
            };
            self.open = Some(Open { start: next.start, data, times });
            return Ok(if cut > 0 { Step::Over { cut } } else { Step::On });
        }
    }

    /// The file to be read next.
    fn choose(&self, parts: &[Part]) -> Option<Part> {
        let Some(open) = &self.open else {
            // The one that holds the next byte, or begins behind it. None is opened at the end: a
            // log that is silent costs its follower a look at its length.
            return parts.iter().find(|part| part.end() > self.offset).copied();
        };
        parts.iter().find(|part| part.start > open.start).copied()
    }

    /// Begins anew at another place.
    pub(super) fn seek(&mut self, offset: u64) {
        self.offset = offset;
        self.open = None;
        self.block.clear();
        self.given = 0;
    }
}

/// When a file was last written to, for want of a better time.
pub(super) fn changed(file: &File) -> io::Result<u64> {
    let at = file.metadata()?.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(u64::try_from(at.as_micros()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;
    use fullstop_core::id::Id;

    /// What comes between a look at the end of a file and one for the next file is not
    /// taken for missing.
    #[test]
    fn the_last_bytes_before_a_rotation_are_read() {
        let name = format!("fullstop-store-reader-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let store = Store::at(&path).expect("a store");
        let id = Id::new(1_800_000_000_000, 7);
        let run = store.create(&id).expect("a run");
        let mut log = run.log(Stream::Out, Some(80)).expect("a log");
        log.write(b"head ", 1);
        let mut reader = store.log(&id, Stream::Out).expect("looked").expect("a log");
        reader.next().expect("read").expect("the head");
        assert!(!reader.fill().expect("read"), "at its end");
        // The head has room for forty.
        log.write(&[b'x'; 38], 1);
        assert!(matches!(reader.go_on(), Ok(Step::On)));
        let rest = |piece| matches!(piece, Some(Piece::Bytes { bytes, .. }) if bytes == [b'x'; 35]);
        assert!(rest(reader.next().expect("read")));
        let _ = std::fs::remove_dir_all(path);
    }
}
