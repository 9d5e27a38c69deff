//! What a run has written, its streams in order of time.

mod changes;

use crate::error::{Error, Result};
use crate::readable::readable;
use crate::run::Run;
use changes::Changes;
use fullstop_core::words::Stream;
use fullstop_store::{LogReader, Piece, Standing};
use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A line that grows longer than this is passed on before its end.
const LONG: usize = 64 * 1024;
/// What has no newline for so long is a prompt, and not the first half of a line.
const SILENCE: Duration = Duration::from_millis(100);
/// A run that is over may be started again, by a restart that is under way.
const RESTART: Duration = Duration::from_secs(1);

/// What was said, when and where.
///
/// ```
/// use fullstop::{Said, Stream};
///
/// let said = Said::Text { stream: Stream::Out, at: 1_800_000_000_000_000, bytes: b"up\n".to_vec() };
/// assert_eq!(said.at(), 1_800_000_000_000_000);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// Whole lines that came at one time, in microseconds since 1970. The last one may
    /// lack its newline: it is long, or nothing came behind it.
    Text { stream: Stream, at: u64, bytes: Vec<u8> },
    /// So much is not in the log any more.
    Cut {
        stream: Stream,
        /// When came what stands before it.
        at: u64,
        bytes: u64,
    },
}

impl Said {
    pub fn stream(&self) -> Stream {
        let (Said::Text { stream, .. } | Said::Cut { stream, .. }) = self;
        *stream
    }

    pub fn at(&self) -> u64 {
        let (Said::Text { at, .. } | Said::Cut { at, .. }) = self;
        *at
    }
}

/// The logs of a run, its streams in order of time. No line is torn by another stream.
///
/// ```standalone_crate
/// # fullstop::init();
/// # let dir = std::env::temp_dir().join(format!("fullstop-doc-logs-{}", std::process::id()));
/// # let runs = fullstop::Runs::at(&dir)?;
/// use fullstop::{Command, Said, blocking};
///
/// let run = blocking::start(Command::new("echo").arg("hello").runs(&runs))?;
/// blocking::wait(run.wait())?;
/// let mut logs = run.logs()?;
/// let Some(Said::Text { bytes, .. }) = logs.next()? else { panic!("it said nothing") };
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
    heard: Instant,
    /// What wakes a follower; nothing, before it follows.
    changes: Option<Changes>,
    is_live: bool,
    /// Since when it has not been live.
    over: Option<Instant>,
}

/// What a look at a run that goes on finds.
///
/// ```
/// use fullstop::Look;
///
/// assert_ne!(Look::Silent, Look::Over);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    Said(Said),
    /// Nothing now.
    Silent,
    /// Nothing any more: the run has ended, and was not started again.
    Over,
}

/// One stream.
#[derive(Debug)]
struct Lane {
    reader: LogReader,
    ready: VecDeque<Said>,
    /// The beginning of a line, and when it came.
    partial: Vec<u8>,
    at: u64,
    /// It had nothing more when others were last read: what they have is not younger than
    /// what may come here.
    is_at_end: bool,
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
            changes: None,
            is_live: true,
            over: None,
        };
        logs.open_more()?;
        if logs.lanes.is_empty() {
            let why = format!("run {} has no log: its output was not captured", self.id());
            return Err(Error::Unfit(why));
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
            let why = format!("run {} has no log of its {stream}", self.run.id());
            return Err(Error::Unfit(why));
        }
        Ok(self)
    }

    /// What came then or later. To be asked for before anything is read.
    pub fn since(mut self, time: SystemTime) -> Result<Logs> {
        let at = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
        for lane in &mut self.lanes {
            lane.reader.seek_time(u64::try_from(at).unwrap_or(u64::MAX))?;
        }
        Ok(self)
    }

    /// The last so many lines. To be asked for before anything is read.
    pub fn tail(mut self, lines: u64) -> Result<Logs> {
        let mut found = 0;
        for lane in &mut self.lanes {
            found += lane.reader.seek_lines(lines)?;
        }
        self.skip = found.saturating_sub(lines);
        Ok(self)
    }

    /// Which streams there are.
    pub fn streams(&self) -> impl Iterator<Item = Stream> {
        self.lanes.iter().map(|lane| lane.reader.stream())
    }

    /// The next that was said; nothing at the end, which is the end for now if the run is
    /// live. It does not wait.
    #[allow(clippy::should_implement_trait, reason = "an iterator does not go on after its end")]
    pub fn next(&mut self) -> Result<Option<Said>> {
        loop {
            if let Some(said) = self.read()? {
                return Ok(Some(said));
            }
            if self.is_done() {
                self.read_on();
                return Ok(None);
            }
            if let Some(said) = self.flush() {
                return Ok(Some(said));
            }
        }
    }

    /// As [`Logs::next`], but waits for more; nothing, once the run is over for good.
    pub async fn follow(&mut self) -> Result<Option<Said>> {
        loop {
            match self.look()? {
                Look::Said(said) => return Ok(Some(said)),
                Look::Over => return Ok(None),
                Look::Silent => {}
            }
            let patience = self.patience();
            let told = async {
                match self.changes() {
                    Some(changes) if readable(changes).await.is_ok() => {}
                    _ => tokio::time::sleep(patience).await,
                }
            };
            // What has come is found by the next look.
            let _ = tokio::time::timeout(patience, told).await;
        }
    }

    /// Follows without waiting. The beginning of a line is held back for a moment, for its
    /// end may come. When nothing is said, wait until [`Logs::changes`] is readable, and no
    /// longer than [`Logs::patience`].
    pub fn look(&mut self) -> Result<Look> {
        if let Some(said) = self.read()? {
            return Ok(Look::Said(said));
        }
        if self.has_news()? {
            self.read_on();
            if let Some(said) = self.read()? {
                return Ok(Look::Said(said));
            }
        }
        while !(self.is_done() || self.is_live && self.heard.elapsed() < SILENCE) {
            let flushed = self.flush();
            if let Some(said) = flushed.map_or_else(|| self.read(), |said| Ok(Some(said)))? {
                return Ok(Look::Said(said));
            }
        }
        let is_over = self.over.is_some_and(|since| since.elapsed() >= RESTART);
        Ok(if is_over { Look::Over } else { Look::Silent })
    }

    /// Readable when there may be something to be heard; nothing, if there is no use in
    /// waiting for more than [`Logs::patience`].
    pub fn changes(&self) -> Option<BorrowedFd<'_>> {
        self.changes.as_ref().and_then(Changes::fd)
    }

    /// When to look again, though nothing has changed.
    pub fn patience(&self) -> Duration {
        let by_itself = self.changes.as_ref().map_or(Duration::ZERO, Changes::patience);
        let left = |since: Instant, most: Duration| most.saturating_sub(since.elapsed());
        let line = (!self.is_done()).then(|| left(self.heard, SILENCE));
        let over = self.over.map(|since| left(since, RESTART));
        line.into_iter().chain(over).fold(by_itself, Duration::min)
    }

    /// Why it is looked for what comes, four times a second, instead of being woken.
    pub fn why_looking(&self) -> Option<&io::Error> {
        self.changes.as_ref().and_then(Changes::problem)
    }

    /// Whether there may be more than was read; asks how the run stands as well.
    fn has_news(&mut self) -> Result<bool> {
        let dir = self.run.dir();
        let changes = self.changes.get_or_insert_with(|| Changes::new(&dir));
        let told = changes.told();
        if !told && !changes.is_due() && self.over.is_none() {
            return Ok(false);
        }
        // Asked before it is read, or its last words would be missed.
        self.is_live = self.run.standing()? == Standing::Live;
        self.over = if self.is_live { None } else { self.over.or_else(|| Some(Instant::now())) };
        if told || !self.is_live {
            self.open_more()?;
            return Ok(true);
        }
        let mut grown = false;
        for lane in &mut self.lanes {
            grown |= lane.reader.has_grown()?;
        }
        if grown {
            changes.missed();
        }
        Ok(grown)
    }

    /// The next that was said to its end, without the lines that are too many.
    fn read(&mut self) -> Result<Option<Said>> {
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
            if let Some(reader) = self.run.runs().store().log(self.run.id(), stream)? {
                let (ready, partial) = (VecDeque::new(), Vec::new());
                self.lanes.push(Lane { reader, ready, partial, at: 0, is_at_end: false });
            }
        }
        Ok(())
    }

    /// The oldest of what is said to its end.
    fn choose(&mut self) -> Result<Option<Said>> {
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
    fn flush(&mut self) -> Option<Said> {
        let speaking = self.speaking.take();
        let begun = |lane: &&mut Lane| {
            !lane.partial.is_empty() && speaking.is_none_or(|stream| stream == lane.reader.stream())
        };
        let said = self.lanes.iter_mut().filter(begun).min_by_key(|lane| lane.at)?.flush();
        if self.skip > 0 {
            self.skip -= 1;
            return None;
        }
        Some(said)
    }

    /// Without the lines that are too many; nothing, if it is all too much.
    fn skipped(&mut self, said: Said) -> Option<Said> {
        if self.skip == 0 {
            return Some(said);
        }
        let Said::Text { stream, at, mut bytes } = said else { return None };
        let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        let ends: Vec<usize> = ends.map(|(place, _)| place + 1).collect();
        let skip = usize::try_from(self.skip).unwrap_or(usize::MAX).min(ends.len());
        self.skip -= skip as u64;
        if self.skip > 0 {
            return None;
        }
        bytes.drain(..ends[skip - 1]);
        (!bytes.is_empty()).then_some(Said::Text { stream, at, bytes })
    }
}

/// The stream that must be heard out after this.
fn unfinished(said: &Said) -> Option<Stream> {
    match said {
        Said::Text { stream, bytes, .. } => (bytes.last() != Some(&b'\n')).then_some(*stream),
        Said::Cut { .. } => None,
    }
}

impl Lane {
    fn is_to_be_read(&self) -> bool {
        self.ready.is_empty() && !self.is_at_end
    }

    /// Reads until something can be passed on; whether anything came.
    fn fill(&mut self) -> Result<bool> {
        let mut grown = false;
        while self.ready.is_empty() {
            let Some(piece) = self.reader.next()? else {
                self.is_at_end = true;
                break;
            };
            grown = true;
            match piece {
                Piece::Cut { bytes } => {
                    self.pass_on();
                    let (stream, at) = (self.reader.stream(), self.at);
                    self.ready.push_back(Said::Cut { stream, at, bytes });
                }
                Piece::Bytes { at, bytes } => self.add(at, bytes),
            }
        }
        Ok(grown)
    }

    fn add(&mut self, at: u64, mut bytes: Vec<u8>) {
        let stream = self.reader.stream();
        if !self.partial.is_empty() {
            // A line has the time of its beginning.
            let end = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1);
            self.partial.extend(bytes.drain(..end));
            if self.partial.last() == Some(&b'\n') || self.partial.len() >= LONG {
                self.pass_on();
            }
        }
        if bytes.is_empty() {
            return;
        }
        let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        self.partial = bytes.split_off(end);
        self.at = at;
        if !bytes.is_empty() {
            self.ready.push_back(Said::Text { stream, at, bytes });
        }
        if self.partial.len() >= LONG {
            self.pass_on();
        }
    }

    fn flush(&mut self) -> Said {
        let bytes = std::mem::take(&mut self.partial);
        Said::Text { stream: self.reader.stream(), at: self.at, bytes }
    }

    fn pass_on(&mut self) {
        if !self.partial.is_empty() {
            let said = self.flush();
            self.ready.push_back(said);
        }
    }

    fn next_at(&self) -> u64 {
        self.ready.front().map_or(u64::MAX, Said::at)
    }
}

#[cfg(test)]
mod tests;
