//! The streams of a run, merged in order of time. It reads in place.

use super::lane::Lane;
use super::{LogCursor, LogEntry};
use crate::error::{Error, Result};
use crate::files::RunFiles;
use fullstop_core::words::Stream;
use fullstop_store::LogReader;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// What is to be read.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted {
    /// One stream alone.
    pub only: Option<Stream>,
    pub from: Option<LogCursor>,
    pub since: Option<SystemTime>,
    /// The last so many lines.
    pub tail: Option<u64>,
}

#[derive(Debug)]
pub(super) struct Lanes {
    run: RunFiles,
    only: Option<Stream>,
    all: Vec<Lane>,
    /// Which of them is within a long line, and must be heard out.
    speaking: Option<Stream>,
    /// So many lines are too many.
    skip: u64,
    /// When something was last read.
    pub heard: Instant,
}

impl Lanes {
    pub fn open(run: &RunFiles, wanted: &Wanted) -> Result<Lanes> {
        if let Some(cursor) = wanted.from.as_ref().filter(|cursor| cursor.id() != run.id()) {
            return Err(Error::OtherLog { id: run.id().clone(), other: cursor.id().clone() });
        }
        let mut lanes = Lanes {
            run: run.clone(),
            only: wanted.only,
            all: Vec::new(),
            speaking: None,
            skip: 0,
            heard: Instant::now(),
        };
        lanes.open_more()?;
        if lanes.all.is_empty() {
            let stream = if has_log(run)? { wanted.only } else { None };
            return Err(Error::NoLog { id: run.id().clone(), stream });
        }
        lanes.seek(wanted)?;
        Ok(lanes)
    }

    /// Goes forward to the last of the places that were asked for.
    fn seek(&mut self, wanted: &Wanted) -> Result<()> {
        let mut found = 0;
        for lane in &mut self.all {
            let reader = &mut lane.reader;
            if let Some(cursor) = &wanted.from {
                reader.go_to(cursor.end(reader.stream()));
            }
            if let Some(since) = wanted.since {
                let at = since.duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
                reader.seek_time(u64::try_from(at).unwrap_or(u64::MAX))?;
            }
            if let Some(lines) = wanted.tail {
                found += reader.seek_lines(lines)?;
            }
        }
        self.skip = found.saturating_sub(wanted.tail.unwrap_or(u64::MAX));
        Ok(())
    }

    /// Which streams there are.
    pub fn streams(&self) -> impl Iterator<Item = Stream> {
        self.all.iter().map(|lane| lane.reader.stream())
    }

    /// Moves a cursor to where the next byte will be read.
    pub fn show(&self, cursor: &mut LogCursor) {
        for lane in &self.all {
            cursor.set(lane.reader.stream(), lane.reader.offset());
        }
    }

    /// The next, with the beginning of a line that has no end yet; nothing at the end for now.
    pub fn next_to_end(&mut self) -> Result<Option<LogEntry>> {
        loop {
            if let Some(entry) = self.next()? {
                return Ok(Some(entry));
            }
            if self.is_done() {
                self.read_on();
                return Ok(None);
            }
            if let Some(entry) = self.flush() {
                return Ok(Some(entry));
            }
        }
    }

    /// The next that was said to its end, without the lines that are too many.
    pub fn next(&mut self) -> Result<Option<LogEntry>> {
        while let Some(said) = self.choose()? {
            if let Some(said) = self.skipped(said) {
                return Ok(Some(said));
            }
        }
        Ok(None)
    }

    /// Where it was at its end, there may be more now.
    pub fn read_on(&mut self) {
        self.all.iter_mut().for_each(|lane| lane.is_at_end = false);
    }

    /// Logs that were not there before. A run has a terminal, or the two others.
    pub fn open_more(&mut self) -> Result<()> {
        if self.all.len() > 1 || self.streams().any(|stream| stream == Stream::Tty) {
            return Ok(());
        }
        for stream in Stream::ALL {
            let is_wanted = self.only.is_none_or(|only| only == stream);
            if !is_wanted || self.streams().any(|known| known == stream) {
                continue;
            }
            if let Some(reader) = self.open_one(stream)? {
                self.all.push(Lane::new(reader));
            }
        }
        Ok(())
    }

    fn open_one(&self, stream: Stream) -> Result<Option<LogReader>> {
        Ok(match self.all.first() {
            Some(lane) => lane.reader.beside(stream)?,
            None => self.run.store().log(self.run.id(), stream)?,
        })
    }

    /// Holds no file while nothing is written.
    pub fn rest(&mut self) {
        self.all.iter_mut().for_each(|lane| lane.reader.rest());
    }

    /// The oldest of what is said to its end.
    fn choose(&mut self) -> Result<Option<LogEntry>> {
        while let Some(at) = self.all.iter().position(Lane::is_to_be_read) {
            let lane = &mut self.all[at];
            let blocks = lane.reader.blocks();
            let grown = lane.fill()?;
            let has_read = lane.reader.blocks() > blocks;
            if grown {
                self.heard = Instant::now();
            }
            // What came before it may have come to a stream that was looked at before.
            if has_read {
                self.read_on();
            }
        }
        let speaking = self.speaking;
        let may_speak = |lane: &&mut Lane| {
            !lane.ready.is_empty() && speaking.is_none_or(|stream| stream == lane.reader.stream())
        };
        let first = self.all.iter_mut().filter(may_speak).min_by_key(|lane| lane.next_at());
        let said = first.and_then(|lane| lane.ready.pop_front());
        Ok(said.inspect(|said| self.speaking = unfinished(said)))
    }

    /// No stream has a line that is begun, and none waits until another has ended its line.
    pub fn is_done(&self) -> bool {
        self.speaking.is_none() && self.all.iter().all(|lane| lane.partial.is_empty())
    }

    /// The beginning of a line that does not go on, and lets others speak again.
    pub fn flush(&mut self) -> Option<LogEntry> {
        let speaking = self.speaking.take();
        let begun = |lane: &&mut Lane| {
            !lane.partial.is_empty() && speaking.is_none_or(|stream| stream == lane.reader.stream())
        };
        let lane = self.all.iter_mut().filter(begun).min_by_key(|lane| lane.at)?;
        let said = lane.flush(lane.reader.offset());
        if self.skip > 0 {
            self.skip -= 1;
            return None;
        }
        Some(said)
    }

    /// Without the lines that are too many; nothing, if it is all too much.
    fn skipped(&mut self, said: LogEntry) -> Option<LogEntry> {
        if self.skip == 0 {
            return Some(said);
        }
        let LogEntry::Text { stream, at, end, mut bytes } = said else { return None };
        let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        let ends: Vec<usize> = ends.map(|(place, _)| place + 1).collect();
        let skip = usize::try_from(self.skip).unwrap_or(usize::MAX).min(ends.len());
        self.skip -= skip as u64;
        if self.skip > 0 {
            return None;
        }
        bytes.drain(..ends[skip - 1]);
        (!bytes.is_empty()).then_some(LogEntry::Text { stream, at, end, bytes })
    }
}

fn has_log(run: &RunFiles) -> Result<bool> {
    for stream in Stream::ALL {
        if run.store().log(run.id(), stream)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The stream that must be heard out after this.
fn unfinished(said: &LogEntry) -> Option<Stream> {
    match said {
        LogEntry::Text { stream, bytes, .. } => (bytes.last() != Some(&b'\n')).then_some(*stream),
        LogEntry::Cut { .. } => None,
    }
}
