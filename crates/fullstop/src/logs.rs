//! What a run has written, its streams in order of time.

mod cursor;
mod entry;
mod lane;
mod lanes;
mod lines;
mod looker;
mod pace;

pub use cursor::LogCursor;
pub use entry::LogEntry;
pub use lines::{Lines, LogLine};

use crate::error::Result;
use crate::helpers::Helped;
use crate::run::Run;
use crate::stream::{Next, Streamed};
use crate::watcher::Follower;
use fullstop_core::words::Stream;
use futures_core::Stream as FutureStream;
use looker::Looker;
use std::time::SystemTime;
use tokio::time::{sleep, timeout};

/// The log of a run, its streams in order of time. No line is torn by another stream.
///
/// First is said what is wanted, which touches no file and cannot fail; the first
/// [`Logs::next`] opens the log, and tells what is wrong with it. What is read is read ahead,
/// 256 KiB at a time. While nothing is written a log that is followed holds one descriptor, and
/// costs nothing. It keeps nothing of the run alive.
///
/// ```
/// # let dir = std::env::temp_dir().join(format!("fullstop-doc-logs-{}", std::process::id()));
/// # let runs = fullstop::Runs::at(&dir)?;
/// use fullstop::{Command, LogEntry, blocking};
///
/// let run = blocking::start(Command::new("sh").args(["-c", "echo one; echo two"]).runs(&runs))?;
/// let mut text = Vec::new();
/// blocking::wait(async {
///     let mut log = run.logs().follow();
///     while let Some(entry) = log.next().await? {
///         if let LogEntry::Text { bytes, .. } = entry {
///             text.extend(bytes);
///         }
///     }
///     Ok(())
/// })?;
/// assert_eq!(text, b"one\ntwo\n");
///
/// let mut log = run.logs().tail(1);
/// let Some(LogEntry::Text { bytes, .. }) = blocking::wait(log.next())? else { panic!() };
/// assert_eq!(bytes, b"two\n");
/// assert_eq!(blocking::wait(log.next())?, None);
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Logs {
    looker: Helped<Looker>,
    is_open: bool,
    streams: Vec<Stream>,
    cursor: LogCursor,
    /// If it goes on as the run does.
    following: Option<Following>,
}

/// How a log is followed.
#[derive(Debug)]
struct Following {
    /// Nothing, before the first look.
    follower: Option<Follower>,
    /// It was woken since the last look, which may not be over when a future is dropped.
    is_told: bool,
    /// The last look found that nothing tells of changes.
    is_untold: bool,
}

impl Run {
    /// What it has written, from the beginning.
    pub fn logs(&self) -> Logs {
        Logs {
            looker: Helped::Here(Looker::new(self.files())),
            is_open: false,
            streams: Vec::new(),
            cursor: LogCursor::new(self.id().clone()),
            following: None,
        }
    }
}

impl Logs {
    /// One stream alone. To be asked for before anything is read, as all of these.
    #[must_use]
    pub fn only(self, stream: Stream) -> Logs {
        self.with(|looker| looker.wanted.only = Some(stream))
    }

    /// What came then or later.
    #[must_use]
    pub fn since(self, time: SystemTime) -> Logs {
        self.with(|looker| looker.wanted.since = Some(time))
    }

    /// The last so many lines; of these, what comes behind the other places that were asked for.
    #[must_use]
    pub fn tail(self, lines: u64) -> Logs {
        self.with(|looker| looker.wanted.tail = Some(lines))
    }

    /// What comes behind the place where another reader was.
    #[must_use]
    pub fn from(mut self, cursor: &LogCursor) -> Logs {
        if cursor.id() == self.cursor.id() {
            self.cursor = cursor.clone();
        }
        self.with(|looker| looker.wanted.from = Some(cursor.clone()))
    }

    /// Goes on as the run does, until it has ended for good: with what was written until now,
    /// and then with what comes.
    #[must_use]
    pub fn follow(mut self) -> Logs {
        self.following = Some(Following { follower: None, is_told: true, is_untold: false });
        self
    }

    fn with(mut self, set: impl FnOnce(&mut Looker)) -> Logs {
        if let Helped::Here(looker) = &mut self.looker {
            set(looker);
        }
        self
    }

    /// Opens it, and goes to where reading begins, as the first [`Logs::next`] does otherwise.
    /// An error, if there is no such log, or the cursor is one of another run.
    pub async fn open(&mut self) -> Result<()> {
        if self.is_open {
            return Ok(());
        }
        let looker = self.looker.work(Looker::open).await?;
        if let Some(error) = looker.error.take() {
            return Err(error);
        }
        self.streams = looker.streams();
        self.cursor = looker.beginning();
        self.is_open = true;
        Ok(())
    }

    /// Which streams there were when it was opened.
    pub fn streams(&self) -> &[Stream] {
        &self.streams
    }

    /// The next that was said. Nothing at the end, which is the end for now if the run is live;
    /// of a log that is followed, nothing once the run is over for good. A future that is
    /// dropped loses nothing.
    pub async fn next(&mut self) -> Result<Option<LogEntry>> {
        self.open().await?;
        loop {
            self.looker.back().await?;
            if let Some(entry) = self.at_once() {
                return Ok(Some(entry));
            }
            let looker = self.looker.back().await?;
            if let Some(error) = looker.error.take() {
                return Err(error);
            }
            match &mut self.following {
                Some(_) if looker.is_over_for_good() => return Ok(None),
                Some(following) => following.look(&mut self.looker).await?,
                None if std::mem::take(&mut looker.is_at_end) => return Ok(None),
                None => drop(self.looker.work(Looker::read).await?),
            }
        }
    }

    /// What can be had without waiting.
    fn at_once(&mut self) -> Option<LogEntry> {
        let Helped::Here(looker) = &mut self.looker else { return None };
        let entry = looker.ready.pop_front()?;
        self.cursor.pass(&entry);
        Some(entry)
    }

    /// Whether the next can be had without waiting.
    pub fn has_ready(&self) -> bool {
        matches!(&self.looker, Helped::Here(looker) if !looker.ready.is_empty())
    }

    /// A place to go on from, behind all that was returned; before it is opened, the beginning
    /// of the log, or the place that was asked for with [`Logs::from`].
    pub fn cursor(&self) -> LogCursor {
        self.cursor.clone()
    }

    /// Why it polls four times a second instead of being woken, if it does.
    pub fn why_polling(&self) -> Option<String> {
        let following = self.following.as_ref()?;
        if following.is_untold {
            return Some("nothing tells of changes in its directory".to_owned());
        }
        following.follower.as_ref().and_then(Follower::why_polling)
    }

    /// The same as a stream, for use with a `StreamExt`. It ends behind an error.
    pub fn into_stream(self) -> impl FutureStream<Item = Result<LogEntry>> + Send + Unpin {
        let next = |mut logs: Logs| -> Next<Logs, LogEntry> {
            Box::pin(async move {
                let next = logs.next().await;
                (logs, next.transpose())
            })
        };
        Streamed::new(self, Logs::at_once, next)
    }
}

impl Following {
    /// Waits until there may be more, and reads it.
    async fn look(&mut self, looker: &mut Helped<Looker>) -> Result<()> {
        let now = looker.back().await?;
        let (patience, nap) = (now.patience(), now.pace.nap());
        let is_first = self.follower.is_none();
        let follower = self.follower.get_or_insert_with(|| Follower::of_directory(&now.dir()));
        if is_first {
            // From then on it is known whether anything wakes this, and that is asked behind the
            // first entry.
            follower.begun().await;
        }
        if !self.is_told {
            self.is_told = timeout(patience, follower.changed()).await.is_ok();
        }
        sleep(nap).await;
        let is_told = self.is_told;
        let now = looker.work(move |looker| looker.look(is_told)).await?;
        self.is_untold = now.pace.is_untold();
        self.is_told = false;
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests;
