//! What is behind a window: a keeper, the end of one, what is left in the log, a report.

use super::link::Link;
use super::work::{Attached, Finished, LogTail, Outcome, Work};
use crate::error::{Error, Result};
use crate::run::Run;
use fullstop_protocol::{Frame, Report, Size};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};

/// How often a keeper is asked for the window that its run was started from, a second each.
const TRIES: usize = 10;

/// How to attach.
///
/// ```
/// use fullstop::AttachOptions;
///
/// let only_looking = AttachOptions { view: true, ..AttachOptions::default() };
/// assert!(only_looking.size.is_none(), "the terminal keeps its size");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttachOptions {
    /// How large the window is. One without a size has no say in the terminal's.
    pub size: Option<Size>,
    /// Only to look at it.
    pub view: bool,
    /// The window of a run that this program has just started by
    /// [`Command::start_for_window`](crate::Command::start_for_window). It gets every byte from
    /// the first on, no screen before them, and the command waits for it. It can also be opened
    /// when the run is over already, and then shows what is in the log.
    pub owner: bool,
}

/// What a window is to show next.
///
/// ```
/// use fullstop::WindowEvent;
///
/// fn show(shown: WindowEvent, screen: &mut Vec<u8>) {
///     match shown {
///         WindowEvent::Screen(bytes) => *screen = bytes,
///         WindowEvent::Bytes(bytes) => screen.extend(bytes),
///         WindowEvent::Over(report) => println!("{}", report.reason()),
///         _ => {}
///     }
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WindowEvent {
    /// The terminal is as large as this from here on. It comes before each screen.
    Resized(Size),
    /// The screen as it is now, in place of whatever was shown before. It comes
    /// first, and again whenever the window was too slow for all that was written.
    Screen(Vec<u8>),
    /// What was written since.
    Bytes(Vec<u8>),
    /// It is over, or stuck; nothing else will come.
    Over(Box<Report>),
}

/// What is to be done next for a window.
///
/// The [module](crate::attach) has an example.
#[derive(Debug)]
pub enum Next {
    /// This is to be shown.
    Show(WindowEvent),
    /// There is nothing to do until [`Attachment::descriptor`] is readable, or, where there is
    /// none, until the work that was given out is finished.
    Wait,
    /// This takes its time: it is to be done wherever that does no harm, and its outcome to be
    /// given to [`Attachment::finish`].
    Work(Work),
}

/// A window's connection to a keeper, and what becomes of it when the keeper dies.
///
/// Nothing here waits, but for [`Attachment::open`]. The [module](crate::attach) has an example.
#[derive(Debug)]
pub struct Attachment {
    run: Run,
    options: AttachOptions,
    state: State,
    /// How much of the terminal's log was shown.
    shown: u64,
    /// The keeper wants to know when all is shown.
    is_asked: bool,
}

#[derive(Debug)]
enum State {
    Keeper(Link),
    /// The keeper has hung up, or is to be asked for its screen anew.
    HungUp,
    /// It is being asked again.
    Asking,
    /// It is over; there may be more in the log than was shown.
    Log {
        tail: Box<LogTail>,
        /// Was read, and is to be shown.
        piece: Option<Vec<u8>>,
        report: Box<Report>,
    },
    /// The log is being read.
    Reading(Box<Report>),
    Over(Box<Report>),
}

impl Attachment {
    /// Attaches. A run that is over, or stuck, is an error that has its report, but for an owner.
    ///
    /// If the future is dropped, no window is attached.
    pub async fn open(run: &Run, options: AttachOptions) -> Result<Attachment> {
        let run = run.unhosted();
        let mut attached = Link::open(&run, options).await;
        // The run is ours, and so is the window: a busy machine is waited for.
        for _ in 1..TRIES {
            if !(options.owner && matches!(attached, Err(Error::KeeperSilent { .. }))) {
                break;
            }
            attached = Link::open(&run, options).await;
        }
        let state = match attached? {
            Attached::To(link) => State::Keeper(link),
            // It was over sooner than its own window was open.
            Attached::Over(report) if options.owner => {
                State::Log { tail: Box::new(LogTail::of(&run, 0)), piece: None, report }
            }
            Attached::Over(report) => return Err(Error::Ended(report)),
        };
        Ok(Attachment { run, options, state, shown: 0, is_asked: false })
    }

    pub(crate) fn run(&self) -> &Run {
        &self.run
    }

    /// What is to be done next. It does not wait, and once it is over it says so as often as it
    /// is asked.
    pub fn advance(&mut self) -> Result<Next> {
        loop {
            match &mut self.state {
                State::Keeper(link) => {
                    let heard = match link.hear() {
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                            return Ok(Next::Wait);
                        }
                        heard => heard.map_err(strange)?,
                    };
                    if let Some(shown) = self.take(heard)? {
                        return Ok(Next::Show(shown));
                    }
                }
                State::HungUp => {
                    self.state = State::Asking;
                    return Ok(Next::Work(Work::ask_again(&self.run, self.options, self.shown)));
                }
                State::Asking | State::Reading(_) => return Ok(Next::Wait),
                State::Log { piece, .. } if piece.is_some() => {
                    let bytes = piece.take().unwrap_or_default();
                    return Ok(Next::Show(WindowEvent::Bytes(bytes)));
                }
                State::Log { report, .. } => {
                    let reading = State::Reading(report.clone());
                    if let State::Log { tail, .. } = std::mem::replace(&mut self.state, reading) {
                        return Ok(Next::Work(Work::read(tail)));
                    }
                }
                State::Over(report) => return Ok(Next::Show(WindowEvent::Over(report.clone()))),
            }
        }
    }

    /// Takes up what came of [`Next::Work`]. After an error the next [`Attachment::advance`] gives
    /// the work out again.
    pub fn finish(&mut self, finished: Finished) -> Result<()> {
        match (finished.0, &self.state) {
            (Outcome::Asked(Ok(Attached::To(link)), _), State::Asking) => {
                self.state = State::Keeper(link);
            }
            (Outcome::Asked(Ok(Attached::Over(report)), tail), State::Asking) => {
                self.state = State::Log { tail, piece: None, report };
            }
            (Outcome::Asked(Err(error), _), State::Asking) => {
                self.state = State::HungUp;
                return Err(error);
            }
            (Outcome::Read(Ok((tail, Some(bytes)))), State::Reading(report)) => {
                let report = report.clone();
                self.state = State::Log { tail, piece: Some(bytes), report };
            }
            // A log that cannot be read has no more.
            (Outcome::Read(_), State::Reading(report)) => self.state = State::Over(report.clone()),
            // Of another window, or given twice.
            _ => {}
        }
        Ok(())
    }

    fn take(&mut self, heard: Option<Frame>) -> Result<Option<WindowEvent>> {
        match heard {
            Some(Frame::Bytes(bytes)) => {
                self.shown += bytes.len() as u64;
                return Ok(Some(WindowEvent::Bytes(bytes)));
            }
            Some(Frame::Screen { offset, bytes }) => {
                self.shown = offset;
                return Ok(Some(WindowEvent::Screen(bytes)));
            }
            Some(Frame::Resize(size)) => return Ok(Some(WindowEvent::Resized(size))),
            Some(Frame::Report(json)) => {
                let report = serde_json::from_slice(&json).map_err(strange)?;
                self.state = State::Over(Box::new(report));
            }
            Some(Frame::All) => self.is_asked = true,
            Some(Frame::Shown { .. }) => {}
            None => self.state = State::HungUp,
        }
        Ok(None)
    }

    /// What is to be waited for: readable, if there is room for what it brings, and writable as
    /// long as something is [unsent](Attachment::unsent). Another one, or none, after each
    /// [`Attachment::advance`] and [`Attachment::finish`].
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match &self.state {
            State::Keeper(link) => Some(link.as_fd()),
            _ => None,
        }
    }

    /// Whether the keeper has hung up, and it is not known yet what that means.
    pub fn is_disconnected(&self) -> bool {
        matches!(self.state, State::HungUp | State::Asking)
    }

    /// How it ended, as soon as that is known: there may be more to be shown.
    pub fn report(&self) -> Option<&Report> {
        match &self.state {
            State::Log { report, .. } | State::Reading(report) | State::Over(report) => {
                Some(report)
            }
            _ => None,
        }
    }

    /// Whether nothing more will come.
    pub fn is_over(&self) -> bool {
        matches!(self.state, State::Over(_))
    }

    /// To be sent by the next [`Attachment::flush`]. An error, if it takes nothing that is typed.
    pub fn type_bytes(&mut self, typed: &[u8]) -> Result<()> {
        let id = || self.run.id().clone();
        if self.options.view {
            return Err(Error::ViewOnly { id: id() });
        }
        match &mut self.state {
            State::Keeper(link) if !link.is_hung_up() => link.type_bytes(typed),
            _ => return Err(Error::WindowClosed { id: id() }),
        }
        Ok(())
    }

    /// How large the window is now, to be sent by the next [`Attachment::flush`]. One only to
    /// look through has no say in it.
    pub fn resize(&mut self, size: Size) {
        if self.options.view {
            return;
        }
        self.options.size = Some(size);
        if let State::Keeper(link) = &mut self.state {
            link.resize(size);
        }
    }

    /// Has the screen drawn anew, as for a window of this size that comes. What is unsent is not
    /// sent any more.
    pub fn redraw(&mut self, size: Option<Size>) {
        self.options.size = size.filter(|_| !self.options.view);
        if matches!(self.state, State::Keeper(_)) {
            self.state = State::HungUp;
        }
    }

    /// Whether the keeper waits to be told that all is shown, by [`Attachment::confirm`]. Only an
    /// owner is asked.
    pub fn awaits_confirmation(&self) -> bool {
        self.is_asked
    }

    /// So many bytes were shown; `refusal`: why it cannot be more. To be sent by the next
    /// [`Attachment::flush`].
    pub fn confirm(&mut self, shown: u64, refusal: Option<String>) {
        self.is_asked = false;
        if let State::Keeper(link) = &mut self.state {
            link.tell_shown(shown, refusal);
        }
    }

    /// How much of the terminal's log was given to be shown.
    pub fn shown(&self) -> u64 {
        self.shown
    }

    /// How many bytes wait to be sent, or are lost with the keeper.
    pub fn unsent(&self) -> usize {
        match &self.state {
            State::Keeper(link) => link.unsent(),
            _ => 0,
        }
    }

    /// Sends what can be sent without waiting: [`io::ErrorKind::WouldBlock`], if something is
    /// left, and [`io::ErrorKind::BrokenPipe`], if the keeper has hung up.
    pub fn flush(&mut self) -> io::Result<()> {
        match &mut self.state {
            State::Keeper(link) => link.flush(),
            _ => Ok(()),
        }
    }
}

fn strange(error: impl Into<io::Error>) -> Error {
    Error::Strange { source: error.into() }
}
