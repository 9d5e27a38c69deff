//! What a window needs that takes its time.

use super::attachment::AttachOptions;
use super::link::Link;
use crate::error::{Error, Result};
use crate::helpers::help;
use crate::orders::await_there;
use crate::run::Run;
use crate::stop;
use fullstop_core::words::Stream;
use fullstop_protocol::Report;
use fullstop_store::{LogReader, Piece};

/// Work for a window that takes its time, and belongs to no loop that has other things to do.
///
/// The [module](crate::attach) has an example.
#[derive(Debug)]
#[must_use = "a window waits for its outcome"]
pub struct Work(Box<Kind>);

#[derive(Debug)]
enum Kind {
    AskAgain { run: Run, options: AttachOptions, shown: u64 },
    Read(Box<LogTail>),
}

/// The outcome of some [`Work`], for [`Attachment::finish`](super::Attachment::finish).
///
/// The [module](crate::attach) has an example.
#[derive(Debug)]
pub struct Finished(pub(super) Outcome);

#[derive(Debug)]
pub(super) enum Outcome {
    /// What attaching again came to, and the log, if it is over.
    Asked(Result<Attached>, Box<LogTail>),
    /// What is left of the log, and the next piece of it.
    Read(Result<(Box<LogTail>, Option<Vec<u8>>)>),
}

/// What attaching came to.
#[derive(Debug)]
pub(super) enum Attached {
    To(Link),
    /// It is over, or stuck: there is no keeper, or none that shows anything.
    Over(Box<Report>),
}

impl Work {
    pub(super) fn ask_again(run: &Run, options: AttachOptions, shown: u64) -> Work {
        Work(Box::new(Kind::AskAgain { run: run.clone(), options, shown }))
    }

    pub(super) fn read(tail: Box<LogTail>) -> Work {
        Work(Box::new(Kind::Read(tail)))
    }

    /// Does it, on any thread and in any runtime of tokio. If the future is dropped, the window
    /// is never told, and waits for ever: keep it, or drop the window as well.
    pub async fn run(self) -> Finished {
        Finished(match *self.0 {
            Kind::AskAgain { run, options, shown } => {
                let asked = Link::open_again(&run, options).await;
                Outcome::Asked(asked, Box::new(LogTail::of(&run, shown)))
            }
            Kind::Read(tail) => Outcome::Read(help(move || tail.read()).await),
        })
    }
}

impl Link {
    /// The keeper has hung up without a report. If it was killed, its guard ends the
    /// run, and the report is waited for; if it lives, it is asked again. A window
    /// that was the owner's gets the screen like any other.
    async fn open_again(run: &Run, options: AttachOptions) -> Result<Attached> {
        loop {
            match Link::open(run, AttachOptions { owner: false, ..options }).await {
                Err(Error::KeeperSilent { .. }) => {}
                done => return done,
            }
            let theirs = run.unhosted();
            if let Some(report) = await_there(async move { stop::glance(&theirs).await }).await? {
                return Ok(Attached::Over(Box::new(report)));
            }
        }
    }
}

/// What the log holds beyond what a window has shown.
#[derive(Debug)]
pub(super) struct LogTail {
    run: Run,
    state: TailState,
}

#[derive(Debug)]
enum TailState {
    /// Begins behind so many bytes.
    Unopened(u64),
    /// Nothing, if it has no log.
    Open(Option<LogReader>),
}

impl LogTail {
    pub fn of(run: &Run, shown: u64) -> LogTail {
        LogTail { run: run.clone(), state: TailState::Unopened(shown) }
    }

    /// The next piece; nothing at its end. A log that cannot be read has none.
    fn read(mut self: Box<Self>) -> (Box<LogTail>, Option<Vec<u8>>) {
        if let TailState::Unopened(shown) = self.state {
            let log = self.run.runs().store().log(self.run.id(), Stream::Tty).ok().flatten();
            self.state = TailState::Open(log.map(|mut log| {
                log.go_to(shown);
                log
            }));
        }
        let piece = match &mut self.state {
            TailState::Open(Some(log)) => next_bytes(log),
            _ => None,
        };
        (self, piece)
    }
}

fn next_bytes(log: &mut LogReader) -> Option<Vec<u8>> {
    loop {
        match log.next().ok()?? {
            Piece::Bytes { bytes, .. } => return Some(bytes),
            // The cap of the log has taken it.
            Piece::Cut { .. } => {}
        }
    }
}
