//! What a run has written, its streams in order of time.

mod cursor;
mod entry;
mod followed;
mod lane;

pub use cursor::LogCursor;
pub use entry::LogEntry;
pub use followed::FollowedLogs;

use crate::error::{Error, Result};
use crate::run::Run;
use fullstop_core::words::Stream;
use fullstop_store::LogReader;
use lane::Lane;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The logs of a run, its streams in order of time. No line is torn by another stream.
///
/// ```standalone_crate
/// # fullstop::init();
/// # let dir = std::env::temp_dir().join(format!("fullstop-doc-logs-{}", std::process::id()));
/// # let runs = fullstop::Runs::at(&dir)?;
/// use fullstop::{Command, LogEntry, blocking};
///
/// let run = blocking::start(Command::new("echo").arg("hello").runs(&runs))?;
/// blocking::wait(run.wait())?;
/// let mut logs = run.logs()?;
/// let Some(LogEntry::Text { bytes, .. }) = logs.next()? else { panic!("it said nothing") };
/// assert_eq!(bytes, b"hello\n");
/// assert_eq!(logs.next()?, None);
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Logs {
    run: Run,
    only: Option<Stream>,
    lanes: Vec<Lane>,
    /// Which of them is within a long line, and must be heard out.
    speaking: Option<Stream>,
    /// So many lines are too many.
    skip: u64,
    /// When something was last read.
    heard: Instant,
    cursor: LogCursor,
}

impl Run {
    /// What it has written, from the beginning; an error, if nothing was captured.
    pub fn logs(&self) -> Result<Logs> {
        let mut logs = Logs {
            run: self.clone(),
            only: None,
            lanes: Vec::new(),
            speaking: None,
            skip: 0,
            heard: Instant::now(),
            cursor: LogCursor::new(self.id().clone()),
        };
        logs.open_more()?;
        if logs.lanes.is_empty() {
            return Err(Error::NoLog { id: self.id().clone(), stream: None });
        }
        Ok(logs)
    }
}

impl Logs {
    /// One stream alone; an error, if there is no log of it.
    pub fn only(mut self, stream: Stream) -> Result<Logs> {
        self.lanes.retain(|lane| lane.reader.stream() == stream);
        self.only = Some(stream);
        if self.lanes.is_empty() {
            return Err(Error::NoLog { id: self.run.id().clone(), stream: Some(stream) });
        }
        Ok(self)
    }

    /// What came then or later. To be asked for before anything is read.
    pub fn since(mut self, time: SystemTime) -> Result<Logs> {
        let at = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
        for lane in &mut self.lanes {
            lane.reader.seek_time(u64::try_from(at).unwrap_or(u64::MAX))?;
        }
        self.move_cursor();
        Ok(self)
    }

    /// The last so many lines. To be asked for before anything is read.
    pub fn tail(mut self, lines: u64) -> Result<Logs> {
        let mut found = 0;
        for lane in &mut self.lanes {
            found += lane.reader.seek_lines(lines)?;
        }
        self.move_cursor();
        self.skip = found.saturating_sub(lines);
        Ok(self)
    }

    /// Which streams there are.
    pub fn streams(&self) -> impl Iterator<Item = Stream> {
        self.lanes.iter().map(|lane| lane.reader.stream())
    }

    /// To where reading begins.
    fn move_cursor(&mut self) {
        for lane in &self.lanes {
            self.cursor.set(lane.reader.stream(), lane.reader.offset());
        }
    }

    /// The next that was said; nothing at the end, which is the end for now if the run is
    /// live. It does not wait.
    #[allow(clippy::should_implement_trait, reason = "an iterator does not go on after its end")]
    pub fn next(&mut self) -> Result<Option<LogEntry>> {
        let next = self.read_to_end()?;
        if let Some(entry) = &next {
            self.cursor.pass(entry);
        }
        Ok(next)
    }

    /// The next, with the beginning of a line that has no end yet.
    fn read_to_end(&mut self) -> Result<Option<LogEntry>> {
        loop {
            if let Some(entry) = self.read()? {
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

    /// Goes on as the run does: with what was written until now, and then with what comes.
    pub fn follow(self) -> FollowedLogs {
        FollowedLogs::new(self)
    }

    /// A place to go on from, behind all that was returned.
    pub fn cursor(&self) -> LogCursor {
        self.cursor.clone()
    }

    /// Goes on where another reader was. To be asked for before anything is read; an error,
    /// if that was another run.
    pub fn from(mut self, cursor: &LogCursor) -> Result<Logs> {
        if cursor.id() != self.run.id() {
            let (id, other) = (self.run.id().clone(), cursor.id().clone());
            return Err(Error::OtherLog { id, other });
        }
        for lane in &mut self.lanes {
            lane.reader.go_to(cursor.end(lane.reader.stream()));
        }
        self.cursor = cursor.clone();
        Ok(self)
    }

    /// The next that was said to its end, without the lines that are too many.
    fn read(&mut self) -> Result<Option<LogEntry>> {
        while let Some(said) = self.choose()? {
            if let Some(said) = self.skipped(said) {
                return Ok(Some(said));
            }
        }
        Ok(None)
    }

    /// Where it was at its end, there may be more now.
    fn read_on(&mut self) {
        self.lanes.iter_mut().for_each(|lane| lane.is_at_end = false);
    }

    /// Logs that were not there before. A run has a terminal, or the two others.
    fn open_more(&mut self) -> Result<()> {
        if self.lanes.len() > 1 || self.streams().any(|stream| stream == Stream::Tty) {
            return Ok(());
        }
        for stream in Stream::ALL {
            let is_wanted = self.only.is_none_or(|only| only == stream);
            if !is_wanted || self.streams().any(|known| known == stream) {
                continue;
            }
            if let Some(reader) = self.open(stream)? {
                self.lanes.push(Lane::new(reader));
            }
        }
        Ok(())
    }

    fn open(&self, stream: Stream) -> Result<Option<LogReader>> {
        Ok(match self.lanes.first() {
            Some(lane) => lane.reader.beside(stream)?,
            None => self.run.runs().store().log(self.run.id(), stream)?,
        })
    }

    /// Holds no file while nothing is written.
    fn rest(&mut self) {
        self.lanes.iter_mut().for_each(|lane| lane.reader.rest());
    }

    /// The oldest of what is said to its end.
    fn choose(&mut self) -> Result<Option<LogEntry>> {
        while let Some(at) = self.lanes.iter().position(Lane::is_to_be_read) {
            let lane = &mut self.lanes[at];
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
        let first = self.lanes.iter_mut().filter(may_speak).min_by_key(|lane| lane.next_at());
        let said = first.and_then(|lane| lane.ready.pop_front());
        Ok(said.inspect(|said| self.speaking = unfinished(said)))
    }

    /// Nothing was begun, and nobody waits for somebody else's end.
    fn is_done(&self) -> bool {
        self.speaking.is_none() && self.lanes.iter().all(|lane| lane.partial.is_empty())
    }

    /// The beginning of a line that does not go on, and lets others speak again.
    fn flush(&mut self) -> Option<LogEntry> {
        let speaking = self.speaking.take();
        let begun = |lane: &&mut Lane| {
            !lane.partial.is_empty() && speaking.is_none_or(|stream| stream == lane.reader.stream())
        };
        let lane = self.lanes.iter_mut().filter(begun).min_by_key(|lane| lane.at)?;
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

/// The stream that must be heard out after this.
fn unfinished(said: &LogEntry) -> Option<Stream> {
    match said {
        LogEntry::Text { stream, bytes, .. } => (bytes.last() != Some(&b'\n')).then_some(*stream),
        LogEntry::Cut { .. } => None,
    }
}

#[cfg(test)]
mod tests;
