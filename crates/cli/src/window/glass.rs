//! What is behind a window: a keeper, what is left of one, or a report.

use super::errand::Errand;
use crate::fail::Fail;
use fullstop::front::{AttachRequest, Attached, Frame, Link, Tail};
use fullstop::{Error, Report, Run, Size, blocking};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::time::{Duration, Instant};

/// More than this is not taken from a keyboard before some of it was sent.
const ENOUGH_TYPED: usize = 64 * 1024;
/// How often a keeper is asked for the window that its run was started from, a second each.
const TRIES: usize = 10;
/// How long a keeper may take for the last keys of a window that leaves.
const LAST_KEYS: Duration = Duration::from_secs(1);

pub struct Glass {
    run: Run,
    request: AttachRequest,
    behind: Behind,
    /// How much of the terminal's log was shown.
    shown: u64,
    /// The keeper wants to know when all is shown.
    asked: bool,
}

enum Behind {
    Keeper(Link),
    /// The keeper has hung up, or is asked for its screen anew.
    Nobody(Errand<Attached>),
    /// It is over; there may be more in the log than was shown.
    Log(Tail, Box<Report>),
    Over(Box<Report>),
}

/// What is to be shown.
pub enum Shown {
    Screen(Vec<u8>),
    Bytes(Vec<u8>),
}

impl Glass {
    pub fn open(run: &Run, request: AttachRequest) -> Result<Glass, Fail> {
        let mut opened = blocking::wait(Link::open(run, request));
        // The run is ours, and so is the window: a busy machine is waited for.
        for _ in 1..TRIES {
            if !(request.owner && matches!(opened, Err(Error::KeeperSilent { .. }))) {
                break;
            }
            opened = blocking::wait(Link::open(run, request));
        }
        let behind = match opened? {
            Attached::To(link) => Behind::Keeper(link),
            // It was over sooner than its own window was open.
            Attached::Over(report) if request.owner => Behind::Log(Tail::of(run, 0), report),
            Attached::Over(_) => {
                let id = run.id();
                return Err(format!("run {id} is over; fullstop show {id} tells how").into());
            }
        };
        Ok(Glass { run: run.clone(), request, behind, shown: 0, asked: false })
    }

    /// What is to be shown next, if there is anything by now.
    pub fn next(&mut self) -> Result<Option<Shown>, Fail> {
        loop {
            match &mut self.behind {
                Behind::Keeper(link) => {
                    let heard = match link.hear() {
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                        heard => heard.map_err(strange)?,
                    };
                    if let Some(shown) = self.take(heard)? {
                        return Ok(Some(shown));
                    }
                }
                Behind::Nobody(errand) => match errand.result() {
                    None => return Ok(None),
                    Some(Ok(Attached::To(link))) => self.behind = Behind::Keeper(link),
                    Some(Ok(Attached::Over(report))) => {
                        self.behind = Behind::Log(Tail::of(&self.run, self.shown), report);
                    }
                    Some(Err(error)) => return Err(error.into()),
                },
                Behind::Log(tail, report) => match tail.piece() {
                    Some(bytes) => return Ok(Some(Shown::Bytes(bytes))),
                    None => self.behind = Behind::Over(report.clone()),
                },
                Behind::Over(_) => return Ok(None),
            }
        }
    }

    fn take(&mut self, heard: Option<Frame>) -> Result<Option<Shown>, Fail> {
        match heard {
            Some(Frame::Bytes(bytes)) => {
                self.shown += bytes.len() as u64;
                return Ok(Some(Shown::Bytes(bytes)));
            }
            Some(Frame::Screen { offset, bytes }) => {
                self.shown = offset;
                return Ok(Some(Shown::Screen(bytes)));
            }
            Some(Frame::Report(json)) => {
                let report = serde_json::from_slice(&json).map_err(strange)?;
                self.behind = Behind::Over(Box::new(report));
            }
            Some(Frame::All) => self.asked = true,
            Some(Frame::Resize(_) | Frame::Shown { .. }) => {}
            None => self.connect_again()?,
        }
        Ok(None)
    }

    /// To a keeper that lives, or to what is left of the run.
    fn connect_again(&mut self) -> Result<(), Fail> {
        let (run, request) = (self.run.clone(), self.request);
        let again = move || async move { Link::open_again(&run, request).await };
        self.behind = Behind::Nobody(Errand::send(again)?);
        Ok(())
    }

    /// Has the screen drawn anew, as for a window that comes.
    pub fn redraw(&mut self, size: Option<Size>) -> Result<(), Fail> {
        self.request.size = size.filter(|_| !self.request.view);
        if !matches!(self.behind, Behind::Keeper(_)) {
            return Ok(());
        }
        self.send_last_keys();
        self.connect_again()
    }

    /// Nobody is behind it any more. What is still to be heard is no more than a socket
    /// holds, and then it is known how it ended, though nobody may look.
    pub fn is_abandoned(&self) -> bool {
        match &self.behind {
            Behind::Keeper(link) => {
                let mut fds = [PollFd::new(link, PollFlags::empty())];
                let polled = poll(&mut fds, Some(&Timespec::default()));
                polled.is_ok() && fds[0].revents().contains(PollFlags::HUP)
            }
            Behind::Nobody(_) => true,
            Behind::Log(..) | Behind::Over(_) => false,
        }
    }

    /// How it ended, whether or not all of it was shown.
    pub fn end(&self) -> Option<&Report> {
        match &self.behind {
            Behind::Log(_, report) | Behind::Over(report) => Some(report),
            _ => None,
        }
    }

    /// Once there is nothing more to be shown.
    pub fn report(&self) -> Option<&Report> {
        match &self.behind {
            Behind::Over(report) => Some(report),
            _ => None,
        }
    }

    pub fn is_over(&self) -> bool {
        matches!(self.behind, Behind::Over(_) | Behind::Log(..))
    }

    /// Whether keys are to be read: as long as somebody takes them. Where nobody is,
    /// what a hand types may still be the keys to leave.
    pub fn takes_keys(&self, by_hand: bool) -> bool {
        match &self.behind {
            Behind::Keeper(link) => link.unsent() < ENOUGH_TYPED,
            _ => by_hand,
        }
    }

    pub fn type_bytes(&mut self, bytes: &[u8]) {
        if let Behind::Keeper(link) = &mut self.behind
            && !self.request.view
        {
            link.type_bytes(bytes);
        }
        self.flush();
    }

    /// A window that only looks has no say in it.
    pub fn resize(&mut self, size: Option<Size>) {
        let Some(size) = size.filter(|_| !self.request.view) else { return };
        self.request.size = Some(size);
        if let Behind::Keeper(link) = &mut self.behind {
            link.resize(size);
        }
        self.flush();
    }

    /// Whether the keeper waits for all to be shown.
    pub fn is_asked(&self) -> bool {
        self.asked
    }

    /// So much was shown; `refusal`: why it cannot be more.
    pub fn tell_shown(&mut self, bytes: u64, refusal: Option<String>) {
        self.asked = false;
        if let Behind::Keeper(link) = &mut self.behind {
            link.tell_shown(bytes, refusal);
        }
        self.flush();
    }

    /// Keys go their way though nothing can be shown.
    pub fn flush(&mut self) {
        if let Behind::Keeper(link) = &mut self.behind {
            let _ = link.flush();
        }
    }

    pub fn send_last_keys(&mut self) {
        let until = Instant::now() + LAST_KEYS;
        while let Behind::Keeper(link) = &mut self.behind
            && link.flush().is_err()
            && let Some(left) = until.checked_duration_since(Instant::now())
        {
            let left = Timespec::try_from(left).unwrap_or_default();
            let _ = poll(&mut [PollFd::new(link, PollFlags::OUT)], Some(&left));
        }
    }

    /// What to wait for: without room only for the end of a keeper.
    pub fn interest(&self, room: bool) -> Option<PollFd<'_>> {
        match &self.behind {
            Behind::Keeper(link) => {
                let mut flags = PollFlags::empty();
                flags.set(PollFlags::IN, room);
                flags.set(PollFlags::OUT, link.unsent() > 0);
                Some(PollFd::new(link, flags))
            }
            Behind::Nobody(errand) => Some(PollFd::new(errand, PollFlags::IN)),
            Behind::Log(..) | Behind::Over(_) => None,
        }
    }
}

fn strange(error: impl Into<io::Error>) -> Fail {
    Fail::from(format!("the keeper speaks strangely: {}", error.into()))
}
