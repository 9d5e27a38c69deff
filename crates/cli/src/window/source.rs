//! Where a window's bytes come from and its keys go to: an attachment, polled with all else.

use crate::fail::Fail;
use fullstop::attach::{Attachment, Finished, Next};
use fullstop::blocking::{self, Background};
use fullstop::{AttachOptions, Error, Report, Run, Size, WindowEvent};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::time::{Duration, Instant};

/// More than this is not taken from a keyboard before some of it was sent.
const ENOUGH_TYPED: usize = 64 * 1024;
/// How long a keeper may take for the last keys of a window that leaves.
const LAST_KEYS: Duration = Duration::from_secs(1);

pub struct Source {
    attachment: Attachment,
    /// What the attachment waits for, if it is not the keeper.
    work: Option<Background<Finished>>,
}

/// What is to be shown.
pub enum Output {
    Screen(Vec<u8>),
    Bytes(Vec<u8>),
}

impl Source {
    pub fn open(run: &Run, options: AttachOptions) -> Result<Source, Fail> {
        match blocking::wait(Attachment::open(run, options)) {
            Ok(attachment) => Ok(Source { attachment, work: None }),
            Err(Error::Ended(_)) => {
                let id = run.id();
                Err(format!("run {id} is over; fullstop show {id} tells how").into())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// What is to be shown next, if there is anything by now.
    pub fn next(&mut self) -> Result<Option<Output>, Fail> {
        loop {
            if let Some(work) = &self.work {
                let Some(finished) = work.result() else { return Ok(None) };
                self.work = None;
                self.attachment.finish(finished?)?;
            }
            match self.attachment.advance()? {
                Next::Show(WindowEvent::Screen(bytes)) => return Ok(Some(Output::Screen(bytes))),
                Next::Show(WindowEvent::Bytes(bytes)) => return Ok(Some(Output::Bytes(bytes))),
                Next::Show(WindowEvent::Over(_)) | Next::Wait => return Ok(None),
                // The window has a terminal of its own size.
                Next::Show(_) => {}
                Next::Work(work) => {
                    let work = move || async move { Ok(work.run().await) };
                    self.work = Some(Background::begin(work)?);
                }
            }
        }
    }

    /// Has the screen drawn anew, as for a window that comes.
    pub fn redraw(&mut self, size: Option<Size>) {
        self.send_last_keys();
        self.attachment.redraw(size);
    }

    /// Nobody is behind it any more. What is still to be heard is no more than a socket
    /// holds, and then it is known how it ended, though nobody may look.
    pub fn is_abandoned(&self) -> bool {
        self.attachment.descriptor().map_or(self.attachment.is_disconnected(), |keeper| {
            let mut fds = [PollFd::from_borrowed_fd(keeper, PollFlags::empty())];
            let polled = poll(&mut fds, Some(&Timespec::default()));
            polled.is_ok() && fds[0].revents().contains(PollFlags::HUP)
        })
    }

    /// How it ended, whether or not all of it was shown.
    pub fn end(&self) -> Option<&Report> {
        self.attachment.report()
    }

    /// Once there is nothing more to be shown.
    pub fn report(&self) -> Option<&Report> {
        self.attachment.report().filter(|_| self.attachment.is_over())
    }

    /// Whether keys are to be read: as long as the keeper takes them. Without a keeper, what a
    /// person types may still be the keys to leave.
    pub fn takes_keys(&self, by_hand: bool) -> bool {
        match self.attachment.descriptor() {
            Some(_) => self.attachment.unsent() < ENOUGH_TYPED,
            None => by_hand,
        }
    }

    /// What is typed is lost where no keeper takes it.
    pub fn type_bytes(&mut self, bytes: &[u8]) {
        let _ = self.attachment.type_bytes(bytes);
        self.flush();
    }

    pub fn resize(&mut self, size: Option<Size>) {
        if let Some(size) = size {
            self.attachment.resize(size);
        }
        self.flush();
    }

    /// Whether the keeper waits for all to be shown.
    pub fn awaits_confirmation(&self) -> bool {
        self.attachment.awaits_confirmation()
    }

    /// So much was shown; `refusal`: why it cannot be more.
    pub fn confirm(&mut self, shown: u64, refusal: Option<String>) {
        self.attachment.confirm(shown, refusal);
        self.flush();
    }

    /// Keys go their way though nothing can be shown.
    pub fn flush(&mut self) {
        let _ = self.attachment.flush();
    }

    pub fn send_last_keys(&mut self) {
        let until = Instant::now() + LAST_KEYS;
        while self.attachment.flush().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
            && let Some(keeper) = self.attachment.descriptor()
            && let Some(left) = until.checked_duration_since(Instant::now())
        {
            let left = Timespec::try_from(left).unwrap_or_default();
            let _ = poll(&mut [PollFd::from_borrowed_fd(keeper, PollFlags::OUT)], Some(&left));
        }
    }

    /// What to wait for: without room only for the end of a keeper.
    pub fn interest(&self, room: bool) -> Option<PollFd<'_>> {
        if let Some(keeper) = self.attachment.descriptor() {
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::IN, room);
            flags.set(PollFlags::OUT, self.attachment.unsent() > 0);
            return Some(PollFd::from_borrowed_fd(keeper, flags));
        }
        // Without room the terminal could not take what the log has.
        let work = self.work.as_ref().filter(|_| room || self.attachment.is_disconnected());
        work.map(|work| PollFd::new(work, PollFlags::IN))
    }
}
