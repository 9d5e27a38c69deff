//! A window on a run's terminal.

use crate::error::{Error, Result};
use crate::link::{AttachRequest, Attached, Link, Tail};
use crate::run::Run;
use fullstop_protocol::Frame;
use fullstop_protocol::Report;
use fullstop_protocol::Size;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream as StdStream;
use tokio::io::Interest;
use tokio::net::UnixStream;

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
}

/// What a window is to show next.
///
/// ```
/// use fullstop::Shown;
///
/// fn show(shown: Shown, screen: &mut Vec<u8>) {
///     match shown {
///         Shown::Screen(bytes) => *screen = bytes,
///         Shown::Bytes(bytes) => screen.extend(bytes),
///         Shown::Over(report) => println!("{}", report.reason()),
///     }
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    /// The screen as it is now, in place of whatever was shown before. It comes
    /// first, and again whenever the window was too slow for all that was written.
    Screen(Vec<u8>),
    /// What was written since.
    Bytes(Vec<u8>),
    /// It is over, or stuck; nothing else will come.
    Over(Box<Report>),
}

/// A window on a run's terminal. There may be many, and what becomes of one is
/// nothing to the run: it does not wait for a window that does not read.
///
/// ```no_run
/// # fullstop::init();
/// use fullstop::{AttachOptions, Runs, Shown, blocking};
///
/// let run = Runs::open()?.find("research")?;
/// let report = blocking::wait(async {
///     let mut window = run.attach(AttachOptions::default()).await?;
///     window.type_bytes(b"exit\r").await?;
///     loop {
///         if let Shown::Over(report) = window.next().await? {
///             return Ok(report);
///         }
///     }
/// })?;
/// println!("{}", report.reason());
/// # Ok::<(), fullstop::Error>(())
/// ```
#[derive(Debug)]
pub struct Window {
    run: Run,
    request: AttachRequest,
    glass: Glass,
    /// How much of the log was shown.
    shown: u64,
}

/// What is behind the window.
#[derive(Debug)]
enum Glass {
    Keeper(Box<Pane>),
    /// The keeper has hung up.
    Nobody,
    /// It is over; there may be more in the log than was shown.
    Log(Tail, Box<Report>),
    Over(Box<Report>),
}

impl Window {
    pub(crate) async fn open(run: Run, options: AttachOptions) -> Result<Window> {
        let request = AttachRequest { size: options.size, view: options.view, owner: false };
        match Link::open(&run, request).await? {
            Attached::Over(_) => Err(Error::Unfit(format!("run {} is over", run.id()))),
            Attached::To(link) => {
                let glass = Glass::Keeper(Pane::new(link)?);
                Ok(Window { run, request, glass, shown: 0 })
            }
        }
    }

    /// What is to be shown next. Being cut short loses nothing.
    ///
    /// If the keeper is killed, what the terminal's log holds beyond what was shown
    /// follows, and then the report of the guard.
    pub async fn next(&mut self) -> Result<Shown> {
        loop {
            match &mut self.glass {
                Glass::Keeper(pane) => match pane.hear().await? {
                    Some(Frame::Bytes(bytes)) => {
                        self.shown += bytes.len() as u64;
                        return Ok(Shown::Bytes(bytes));
                    }
                    Some(Frame::Screen { offset, bytes }) => {
                        self.shown = offset;
                        return Ok(Shown::Screen(bytes));
                    }
                    Some(Frame::Report(json)) => {
                        let report = serde_json::from_slice(&json).map_err(strange)?;
                        self.glass = Glass::Over(Box::new(report));
                    }
                    Some(Frame::Resize(_) | Frame::All | Frame::Shown { .. }) => {}
                    None => self.glass = Glass::Nobody,
                },
                Glass::Nobody => match Link::open_again(&self.run, self.request).await? {
                    Attached::To(link) => {
                        self.glass = Glass::Keeper(Pane::new(link)?);
                    }
                    Attached::Over(report) => {
                        self.glass = Glass::Log(Tail::of(&self.run, self.shown), report);
                    }
                },
                Glass::Log(tail, report) => match tail.piece() {
                    Some(bytes) => return Ok(Shown::Bytes(bytes)),
                    None => self.glass = Glass::Over(report.clone()),
                },
                Glass::Over(report) => return Ok(Shown::Over(report.clone())),
            }
        }
    }

    /// Types this. If it is cut short, the rest goes with whatever is done next.
    pub async fn type_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        if self.request.view {
            return Err(Error::Unfit("this window is only to look through".to_owned()));
        }
        let pane = self.keeper()?;
        pane.link.type_bytes(bytes);
        pane.flush().await
    }

    /// Tells how large the window is now. If it is cut short, that goes with whatever is done next.
    pub async fn resize(&mut self, size: Size) -> Result<()> {
        self.request.size = Some(size);
        let pane = self.keeper()?;
        pane.link.resize(size);
        pane.flush().await
    }

    fn keeper(&mut self) -> Result<&mut Pane> {
        match &mut self.glass {
            Glass::Keeper(pane) => Ok(pane),
            _ => Err(Error::Unfit(format!("nobody listens for run {} any more", self.run.id()))),
        }
    }
}

fn strange(error: impl Into<io::Error>) -> Error {
    Error::Strange { source: error.into() }
}

/// The link, and a second descriptor of it by which a runtime waits.
#[derive(Debug)]
struct Pane {
    link: Link,
    ready: UnixStream,
}

impl Pane {
    fn new(link: Link) -> Result<Box<Pane>> {
        let fail = |error| Error::io("wait for the keeper")(error);
        let second = StdStream::from(link.as_fd().try_clone_to_owned().map_err(fail)?);
        second.set_nonblocking(true).map_err(fail)?;
        let ready = UnixStream::from_std(second).map_err(fail)?;
        Ok(Box::new(Pane { link, ready }))
    }

    /// The next thing said; meanwhile, what is still unsent is sent. Both are tried
    /// before they are waited for.
    async fn hear(&mut self) -> Result<Option<Frame>> {
        loop {
            let interest = match self.try_flush() {
                Ok(()) => Interest::READABLE,
                Err(_would_block) => Interest::READABLE | Interest::WRITABLE,
            };
            if let Some(frame) = self.link.heard() {
                return frame.map(Some).map_err(strange);
            }
            match self.ready.try_io(Interest::READABLE, || self.link.hear()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                heard => return heard.map_err(strange),
            }
            self.ready.ready(interest).await.map_err(Error::io("wait for the keeper"))?;
        }
    }

    async fn flush(&mut self) -> Result<()> {
        while self.try_flush().is_err() {
            self.ready.writable().await.map_err(Error::io("type"))?;
        }
        Ok(())
    }

    fn try_flush(&mut self) -> io::Result<()> {
        if self.link.unsent() == 0 {
            return Ok(());
        }
        self.ready.try_io(Interest::WRITABLE, || self.link.flush())
    }
}
