//! A log that is followed while it is written.

mod pace;

use super::{LogCursor, LogEntry, Logs};
use crate::error::{Error, Result};
use crate::helpers::Helped;
use crate::watcher::Follower;
use fullstop_store::Standing;
use pace::Pace;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use tokio::time::{sleep, timeout};

/// What has no newline for so long is a prompt, and not the first half of a line.
const SILENCE: Duration = Duration::from_millis(100);
/// A run that is over may be started again, by a restart that is under way.
const RESTART: Duration = Duration::from_secs(1);
/// So much is read ahead of whoever follows.
const AHEAD: usize = 256 * 1024;

/// The log of a run as it grows, line by line, until the run has ended. While nothing is
/// written it holds one descriptor, and costs nothing.
///
/// ```standalone_crate
/// # fullstop::init();
/// # let dir = std::env::temp_dir().join(format!("fullstop-doc-followed-{}", std::process::id()));
/// # let runs = fullstop::Runs::at(&dir)?;
/// use fullstop::{Command, LogEntry, blocking};
///
/// let run = blocking::start(Command::new("sh").args(["-c", "echo one; echo two"]).runs(&runs))?;
/// let mut text = Vec::new();
/// blocking::wait(async {
///     let mut log = run.logs()?.follow();
///     while let Some(entry) = log.next().await? {
///         if let LogEntry::Text { bytes, .. } = entry {
///             text.extend(bytes);
///         }
///     }
///     Ok(())
/// })?;
/// assert_eq!(text, b"one\ntwo\n");
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct FollowedLogs {
    looker: Helped<Looker>,
    follower: Follower,
    /// It was woken since the last look, which may not be over when this is dropped.
    is_told: bool,
    cursor: LogCursor,
    /// Found out by the last look.
    is_untold: bool,
}

impl FollowedLogs {
    pub(super) fn new(logs: Logs) -> FollowedLogs {
        FollowedLogs {
            follower: Follower::of_directory(&logs.run.dir()),
            cursor: logs.cursor(),
            looker: Helped::Here(Looker::new(logs)),
            is_told: true,
            is_untold: false,
        }
    }

    /// Waits for the next that is written; nothing, once the run is over for good. A future
    /// that is dropped loses nothing.
    pub async fn next(&mut self) -> Result<Option<LogEntry>> {
        loop {
            let looker = self.looker.back().await?;
            self.is_untold = looker.pace.is_untold();
            if let Some(entry) = looker.ready.pop_front() {
                self.cursor.pass(&entry);
                return Ok(Some(entry));
            }
            if let Some(error) = looker.error.take() {
                return Err(error);
            }
            if looker.is_over_for_good() {
                return Ok(None);
            }
            let (patience, nap) = (looker.patience(), looker.pace.nap());
            if !self.is_told {
                self.is_told = timeout(patience, self.follower.changed()).await.is_ok();
            }
            sleep(nap).await;
            let is_told = self.is_told;
            self.looker.work(move |looker| looker.look(is_told)).await?;
            self.is_told = false;
        }
    }

    /// Whether the next can be had without waiting.
    pub fn has_ready(&self) -> bool {
        matches!(&self.looker, Helped::Here(looker) if !looker.ready.is_empty())
    }

    /// A place to go on from, behind all that was returned.
    pub fn cursor(&self) -> LogCursor {
        self.cursor.clone()
    }

    /// Why it looks four times a second instead of being woken, if it does.
    pub fn why_looking(&self) -> Option<String> {
        let untold = || Some("nothing tells of changes in its directory".to_owned());
        if self.is_untold { untold() } else { self.follower.why_looking() }
    }
}

#[derive(Debug)]
struct Looker {
    logs: Logs,
    /// What was read ahead.
    ready: VecDeque<LogEntry>,
    error: Option<Error>,
    is_live: bool,
    /// Since when it has not been live.
    over: Option<Instant>,
    /// There is more to be read at once.
    is_behind: bool,
    pace: Pace,
}

impl Looker {
    fn new(logs: Logs) -> Looker {
        Looker {
            logs,
            ready: VecDeque::new(),
            error: None,
            is_live: true,
            over: None,
            is_behind: false,
            pace: Pace::default(),
        }
    }

    fn is_over_for_good(&self) -> bool {
        self.over.is_some_and(|since| since.elapsed() >= RESTART) && !self.is_behind
    }

    /// Reads what is new. It may have been told that there is something.
    fn look(&mut self, is_told: bool) {
        let heard = self.logs.heard;
        if let Err(error) = self.read() {
            self.error = Some(error);
        }
        self.pace.looked(is_told, self.logs.heard > heard);
    }

    fn read(&mut self) -> Result<()> {
        // Asked before it is read, or its last words would be missed.
        self.is_live = self.logs.run.standing()? == Standing::Live;
        self.over = if self.is_live { None } else { self.over.or_else(|| Some(Instant::now())) };
        self.logs.open_more()?;
        self.logs.read_on();
        let mut size = 0;
        self.is_behind = true;
        while size < AHEAD {
            let Some(entry) = self.next()? else {
                self.is_behind = false;
                self.logs.rest();
                break;
            };
            size += match &entry {
                LogEntry::Text { bytes, .. } => bytes.len(),
                LogEntry::Cut { .. } => 0,
            };
            self.ready.push_back(entry);
        }
        Ok(())
    }

    /// The beginning of a line is held back for a moment, for its end may come.
    fn next(&mut self) -> Result<Option<LogEntry>> {
        loop {
            if let Some(entry) = self.logs.read()? {
                return Ok(Some(entry));
            }
            if self.logs.is_done() || self.is_live && self.logs.heard.elapsed() < SILENCE {
                return Ok(None);
            }
            if let Some(entry) = self.logs.flush() {
                return Ok(Some(entry));
            }
        }
    }

    /// When to look again, though nothing has changed.
    fn patience(&self) -> Duration {
        if self.is_behind {
            return Duration::ZERO;
        }
        let left = |since: Instant, most: Duration| most.saturating_sub(since.elapsed());
        let line = (!self.logs.is_done()).then(|| left(self.logs.heard, SILENCE));
        let over = self.over.map(|since| left(since, RESTART));
        line.into_iter().chain(over).fold(self.pace.patience(), Duration::min)
    }
}

#[cfg(test)]
mod tests;
