//! What guard and keeper say to each other, over a pair of sockets that only they
//! hold. Its closing is itself a message: the other side is dead.

use fullstop_cage::os::Bell;
use fullstop_core::cage::{CageKind, Member};
use fullstop_core::machine::{Ask, State};
use fullstop_core::signal::Signal;
use fullstop_core::words::Stream;
use fullstop_protocol::{Asker, CapturedStream, Host, KernelAnswers, StepRecord};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recv, recvmsg, sendmsg, socketpair,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

/// From the guard to the keeper.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ToKeeper {
    /// With the process that has sent the signal that asks.
    Ask(Ask, Option<Asker>),
    Forward(Signal),
    /// The terminal has told the whole job to stop.
    StoppedByHand,
}

/// From the keeper to the guard: whatever it needs to take over, to show a stop
/// under way, and to end as the command did.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ToGuard {
    /// The leader's pid; its pidfd comes along.
    Born {
        pid: i32,
        cage: CageKind,
    },
    State {
        state: State,
        alive: usize,
    },
    Step(StepRecord),
    Leftovers(Vec<Member>),
    LeaderStopped(Signal),
    /// That stream has come to its end, or is not wanted any more.
    StreamOver(Stream),
    /// The host that the run has from now on.
    Hosted(Option<Host>),
    /// An owner of the output cannot be written. Said when that is found, and again once
    /// it is known how much was not shown.
    Unshown(Vec<CapturedStream>),
    /// Said before the report is written, so that no death in between can turn a
    /// run that is over into one that has to be ended.
    Outcome(Outcome),
    /// The report is written, or could not be.
    Reported {
        warning: Option<String>,
    },
}

/// How the run stands at its end, as the guard must tell it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    pub state: State,
    /// What the kernel answered, if it was asked for a proof.
    pub kernel: Option<KernelAnswers>,
    /// What went wrong, with the exit status that says so.
    pub error: Option<(u8, String)>,
    /// The first few survivors or released ones, and how many there are in all.
    pub named: Vec<Member>,
    pub count: usize,
}

/// How many members go into one message, at a kilobyte or less each:
/// well below what a socket holds.
pub const MEMBERS_AT_ONCE: usize = 100;

#[derive(Debug)]
pub struct Lifeline(OwnedFd);

/// What came in.
pub enum Received<M> {
    Message(M, Option<OwnedFd>),
    Nothing,
    /// The other side is dead.
    Closed,
}

impl Lifeline {
    pub fn pair() -> io::Result<(Lifeline, Lifeline)> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (one, other) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        Ok((Lifeline(one), Lifeline(other)))
    }

    /// Never blocks: a stopped guard must not stop its keeper. A message that does
    /// not fit any more is lost: a guard stopped for long needs no progress.
    pub fn send(&self, message: &impl Serialize, fd: Option<BorrowedFd<'_>>) -> bool {
        let Ok(text) = serde_json::to_vec(message) else { return false };
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let fds = fd.map(|fd| [fd]);
        if let Some(fds) = &fds {
            ancillary.push(SendAncillaryMessage::ScmRights(fds));
        }
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        sendmsg(&self.0, &[IoSlice::new(&text)], &mut ancillary, flags).is_ok()
    }

    /// For what must arrive: wakes the other side and waits for room, within reason.
    /// Returns whether it did.
    pub fn send_surely(&self, message: &impl Serialize, bell: &Bell) -> bool {
        // A guard that is awake needs a millisecond; one that is stopped, for ever.
        const TRIES: usize = 10;
        const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
        for _ in 0..TRIES {
            if self.send(message, None) {
                return true;
            }
            bell.ring();
            let mut fds = [PollFd::new(&self.0, PollFlags::OUT)];
            let _ = poll(&mut fds, Some(&PAUSE));
            if fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR) {
                return false;
            }
        }
        false
    }

    pub fn receive<M: DeserializeOwned>(&self) -> Received<M> {
        let waiting = match self.waiting() {
            Ok(waiting) => waiting,
            Err(Errno::AGAIN) => return Received::Nothing,
            Err(_) => return Received::Closed,
        };
        if waiting == 0 {
            return Received::Closed;
        }
        let mut buffer = vec![0; waiting];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        let came = retry_on_intr(|| {
            recvmsg(&self.0, &mut [IoSliceMut::new(&mut buffer)], &mut ancillary, flags)
        });
        let Ok(message) = came else { return Received::Nothing };
        let fd = ancillary.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
            _ => None,
        });
        match serde_json::from_slice(&buffer[..message.bytes]) {
            Ok(message) => Received::Message(message, fd),
            // Both sides are one program, so this cannot be; and nothing is lost by
            // going on without it.
            Err(_) => Received::Nothing,
        }
    }

    /// The length of the next message, without taking it; 0 at the end.
    fn waiting(&self) -> Result<usize, Errno> {
        let flags = RecvFlags::PEEK | RecvFlags::TRUNC | RecvFlags::DONTWAIT;
        retry_on_intr(|| recv(&self.0, &mut [0; 1], flags)).map(|(_, whole)| whole)
    }

    pub fn descriptor(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl AsFd for Lifeline {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
