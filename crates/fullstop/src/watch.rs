//! The watch: what changes in all runs, in one stream.
//!
//! A watch reads notices from the journal, and the records of the runs that they name. So it
//! costs nothing while nothing happens, however many runs live, and wakes no keeper.

mod looker;

use crate::error::Result;
use crate::helpers::Helped;
use crate::rounds;
use crate::runs::Runs;
use crate::status::Status;
use crate::stream::{Next, Streamed};
use crate::watcher::Follower;
use fullstop_core::id::Id;
use fullstop_store::Cursor;
use futures_core::Stream;
use looker::Looker;
use serde::Serialize;
use tokio::time::timeout;

/// What has changed.
///
/// ```
/// # let dir = std::env::temp_dir().join(format!("fullstop-doc-change-{}", std::process::id()));
/// # let runs = fullstop::Runs::at(&dir)?;
/// use fullstop::{Change, blocking};
///
/// let mut watch = runs.watch();
/// match blocking::wait(watch.next())? {
///     Change::Snapshot { runs, .. } => println!("{} runs live", runs.len()),
///     Change::Run { run } => println!("{} is {}", run.id, run.state),
///     Change::Removed { id } => println!("{id} was removed"),
///     _ => {}
/// }
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Change {
    /// All that there are now. What was known before is void.
    Snapshot {
        /// How each of them stands.
        runs: Vec<Status>,
        /// Changes before it cannot be told: too many came at once, the cursor is not known
        /// any more, or there was another journal.
        missed: bool,
    },
    /// A run began, or stands differently.
    Run {
        /// How it stands now.
        run: Box<Status>,
    },
    /// A run was removed, whether or not it was one of those that were asked for.
    Removed {
        /// Which one.
        id: Id,
    },
}

/// Watches runs: those that are unfinished, and those that begin.
///
/// ```
/// # let dir = std::env::temp_dir().join(format!("fullstop-doc-watch-{}", std::process::id()));
/// # let runs = fullstop::Runs::at(&dir)?;
/// use fullstop::{Change, Command, blocking};
///
/// let mut watch = runs.watch().label("team", "search");
/// let Change::Snapshot { runs: live, .. } = blocking::wait(watch.next())? else { panic!() };
/// assert!(live.is_empty());
///
/// let run = blocking::start(Command::new("true").label("team", "search").runs(&runs))?;
/// let mut states = Vec::new();
/// while states.last().map(String::as_str) != Some("ended") {
///     if let Change::Run { run } = blocking::wait(watch.next())? {
///         states.push(run.state);
///     }
/// }
/// # blocking::wait(run.wait())?;
///
/// // Another program goes on where this one was.
/// let cursor = watch.cursor().expect("a journal");
/// let mut later = runs.watch().since(cursor);
/// blocking::wait(run.remove())?;
/// assert!(matches!(blocking::wait(later.next())?, Change::Removed { .. }));
/// # let _ = std::fs::remove_dir_all(&dir);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Watch {
    follower: Follower,
    looker: Helped<Looker>,
    /// Up to where all was returned.
    cursor: Option<Cursor>,
    has_looked: bool,
}

impl Runs {
    /// Watches them from now on: the first change is a snapshot.
    pub fn watch(&self) -> Watch {
        Watch {
            follower: Follower::of_journal(self.store()),
            looker: Helped::Here(Looker::new(self)),
            cursor: None,
            has_looked: false,
        }
    }
}

impl Watch {
    /// Only those with this label. To be asked for before the first change, as all of these.
    #[must_use]
    pub fn label(self, key: impl Into<String>, value: impl Into<String>) -> Watch {
        let (key, value) = (key.into(), value.into());
        self.with(move |looker| looker.filter.add_label(key, value))
    }

    /// Only those in this group, or in one inside it.
    #[must_use]
    pub fn group(self, path: impl Into<String>) -> Watch {
        let path = path.into();
        self.with(move |looker| looker.filter.set_group(path))
    }

    /// Those that have ended as well.
    #[must_use]
    pub fn all(self) -> Watch {
        self.with(|looker| looker.all = true)
    }

    /// What has changed since another watch was here. If that cannot be told any more, it
    /// begins with a snapshot.
    #[must_use]
    pub fn since(self, cursor: Cursor) -> Watch {
        self.with(move |looker| looker.since = Some(cursor))
    }

    fn with(mut self, set: impl FnOnce(&mut Looker)) -> Watch {
        if let Helped::Here(looker) = &mut self.looker {
            set(looker);
        }
        self
    }

    /// Waits for the next change. A future that is dropped loses none.
    pub async fn next(&mut self) -> Result<Change> {
        loop {
            let looker = self.looker.back().await?;
            if let Some(change) = looker.changes.pop_front() {
                if looker.changes.is_empty() {
                    self.cursor = looker.cursor();
                }
                return change;
            }
            if self.has_looked {
                // After a timeout as after a change, the next look finds what is new.
                let _ = timeout(rounds::EVERY, self.follower.changed()).await;
            } else {
                self.follower.begun().await;
            }
            self.has_looked = true;
            self.looker.work(Looker::look).await?;
        }
    }

    /// The same as a stream, for use with a `StreamExt`. It ends behind an error, and nowhere else.
    pub fn into_stream(self) -> impl Stream<Item = Result<Change>> + Send + Unpin {
        let next = |mut watch: Watch| -> Next<Watch, Change> {
            Box::pin(async move {
                let next = watch.next().await;
                (watch, Some(next))
            })
        };
        Streamed::new(self, |_| None, next)
    }

    /// A place to go on from, behind all changes that were returned until now; nothing
    /// before the first, and where there is no journal.
    pub fn cursor(&self) -> Option<Cursor> {
        self.cursor.clone()
    }

    /// Why it polls four times a second instead of being woken, if it does.
    pub fn why_polling(&self) -> Option<String> {
        self.follower.why_polling()
    }
}
