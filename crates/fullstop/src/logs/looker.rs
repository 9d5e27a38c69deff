//! Reading a log ahead of its follower, a batch at a time. It reads in place.

use super::lanes::{Lanes, Wanted};
use super::pace::Pace;
use super::{LogCursor, LogEntry};
use crate::error::{Error, Result};
use crate::files::RunFiles;
use fullstop_core::words::Stream;
use fullstop_store::Standing;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// What has no newline for so long is a prompt, and not the first half of a line.
pub(super) const SILENCE: Duration = Duration::from_millis(100);
/// A run that is over may be started again, by a restart that is under way.
const RESTART: Duration = Duration::from_secs(1);
/// So much is read ahead.
const AHEAD: usize = 256 * 1024;

#[derive(Debug)]
pub(super) struct Looker {
    run: RunFiles,
    pub wanted: Wanted,
    /// Nothing, before it is opened.
    lanes: Option<Lanes>,
    /// What was read ahead.
    pub ready: VecDeque<LogEntry>,
    pub error: Option<Error>,
    /// All was read that was there.
    pub is_at_end: bool,
    is_live: bool,
    /// Since when it has not been live.
    over: Option<Instant>,
    /// There is more to be read at once.
    is_behind: bool,
    pub pace: Pace,
}

impl Looker {
    pub fn new(run: RunFiles) -> Looker {
        Looker {
            run,
            wanted: Wanted::default(),
            lanes: None,
            ready: VecDeque::new(),
            error: None,
            is_at_end: false,
            is_live: true,
            over: None,
            is_behind: false,
            pace: Pace::default(),
        }
    }

    /// Where the run's files are.
    pub fn dir(&self) -> PathBuf {
        self.run.store().run_path(self.run.id())
    }

    /// Which streams there are; none, before it is opened.
    pub fn streams(&self) -> Vec<Stream> {
        self.lanes.iter().flat_map(Lanes::streams).collect()
    }

    /// Where reading begins. To be asked for before anything is read.
    pub fn beginning(&self) -> LogCursor {
        let new = || LogCursor::new(self.run.id().clone());
        let mut cursor = self.wanted.from.clone().unwrap_or_else(new);
        self.lanes.iter().for_each(|lanes| lanes.show(&mut cursor));
        cursor
    }

    /// Opens the logs, if they are not open, and goes to where reading is to begin.
    pub fn open(&mut self) {
        self.error = self.try_open().err();
    }

    fn try_open(&mut self) -> Result<()> {
        if self.lanes.is_none() {
            self.lanes = Some(Lanes::open(&self.run, &self.wanted)?);
        }
        Ok(())
    }

    /// Reads what is there.
    pub fn read(&mut self) {
        self.error = self.try_read().err();
    }

    fn try_read(&mut self) -> Result<()> {
        let Some(lanes) = &mut self.lanes else { return Ok(()) };
        let has_all = read_ahead(lanes, &mut self.ready, Lanes::next_to_end)?;
        self.is_at_end = has_all;
        Ok(())
    }

    /// Reads what is new while the run goes on. It may have been told that there is something.
    pub fn look(&mut self, is_told: bool) {
        let heard = self.heard();
        self.error = self.try_look().err();
        self.pace.looked(is_told, self.heard() > heard);
    }

    fn heard(&self) -> Option<Instant> {
        self.lanes.as_ref().map(|lanes| lanes.heard)
    }

    fn try_look(&mut self) -> Result<()> {
        let Some(lanes) = &mut self.lanes else { return Ok(()) };
        // Asked before it is read, or its last words would be missed.
        self.is_live = self.run.standing()? == Standing::Live;
        self.over = if self.is_live { None } else { self.over.or_else(|| Some(Instant::now())) };
        lanes.open_more()?;
        lanes.read_on();
        self.is_behind = true;
        let is_live = self.is_live;
        let next = |lanes: &mut Lanes| next_followed(lanes, is_live);
        if read_ahead(lanes, &mut self.ready, next)? {
            self.is_behind = false;
            lanes.rest();
        }
        Ok(())
    }

    pub fn is_over_for_good(&self) -> bool {
        self.over.is_some_and(|since| since.elapsed() >= RESTART) && !self.is_behind
    }

    /// When to look again, though nothing has changed.
    pub fn patience(&self) -> Duration {
        if self.is_behind {
            return Duration::ZERO;
        }
        let left = |since: Instant, most: Duration| most.saturating_sub(since.elapsed());
        let begun = self.lanes.as_ref().filter(|lanes| !lanes.is_done());
        let line = begun.map(|lanes| left(lanes.heard, SILENCE));
        let over = self.over.map(|since| left(since, RESTART));
        line.into_iter().chain(over).fold(self.pace.patience(), Duration::min)
    }
}

/// Reads as much as can be kept; whether that is all that there is.
fn read_ahead(
    lanes: &mut Lanes,
    ready: &mut VecDeque<LogEntry>,
    next: impl Fn(&mut Lanes) -> Result<Option<LogEntry>>,
) -> Result<bool> {
    let mut size = 0;
    while size < AHEAD {
        let Some(entry) = next(lanes)? else { return Ok(true) };
        size += match &entry {
            LogEntry::Text { bytes, .. } => bytes.len(),
            LogEntry::Cut { .. } => 0,
        };
        ready.push_back(entry);
    }
    Ok(false)
}

/// The beginning of a line is held back for a moment, for its end may come.
fn next_followed(lanes: &mut Lanes, is_live: bool) -> Result<Option<LogEntry>> {
    loop {
        if let Some(entry) = lanes.next()? {
            return Ok(Some(entry));
        }
        if lanes.is_done() || is_live && lanes.heard.elapsed() < SILENCE {
            return Ok(None);
        }
        if let Some(entry) = lanes.flush() {
            return Ok(Some(entry));
        }
    }
}

#[cfg(test)]
mod tests;
