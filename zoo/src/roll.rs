//! The roll call: how a leader knows that its whole tree stands.
//!
//! One pipe. Every process writes a byte into it once it is what it is meant to be,
//! and the leader counts. A process that fell before it stood shows as an end of file.

use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd, RawFd};

use rustix::io::{Errno, FdFlags, fcntl_setfd, read, retry_on_intr, write};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::raw;
use crate::trouble::{Doing, Trouble};

const HERE: &[u8] = b".";
const DECLINED: &[u8] = b"!";

pub struct Roll {
    read: OwnedFd,
    place: Place,
}

/// One process's way to answer the roll call.
pub struct Place(OwnedFd);

impl Roll {
    pub fn call() -> Result<Self, Trouble> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC).doing("pipe")?;
        Ok(Self { read, place: Place(write) })
    }

    /// What a child keeps of the roll.
    pub fn place(self) -> Place {
        self.place
    }

    /// Said by each process of the tree but the leader.
    pub fn stand(self) {
        self.place().stand();
    }

    /// The leader waits here until `count` others stand.
    pub fn all(self, count: usize) -> Result<(), Trouble> {
        let Self { read: pipe, place } = self;
        drop(place);
        let mut standing = 0;
        let mut answers = [0; 512];
        while standing < count {
            let got = retry_on_intr(|| read(&pipe, &mut answers)).doing("reading the roll")?;
            if answers[..got].contains(&DECLINED[0]) {
                return Err(Trouble::Declined);
            }
            if got == 0 {
                return Err::<(), _>(Errno::CHILD)
                    .doing(format!("{standing} of {count} stood, then one fell"));
            }
            standing += got;
        }
        Ok(())
    }
}

impl Place {
    /// A leader that is gone already is no reason to fall over.
    pub fn stand(self) {
        let _ = write(&self.0, HERE);
    }

    /// Tells the leader that this member cannot exist here, once the reason is on stderr.
    pub fn decline(self, why: &str) -> Trouble {
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), "zoo: {why}");
        let _ = write(&self.0, DECLINED);
        Trouble::Declined
    }

    pub fn number(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Makes the place outlive an exec; its number goes to the new program as an argument.
    pub fn carry(self) -> Result<RawFd, Trouble> {
        fcntl_setfd(&self.0, FdFlags::empty()).doing("keeping the roll open over exec")?;
        Ok(self.0.into_raw_fd())
    }

    /// The other side of [`Place::carry`].
    pub fn carried(number: RawFd) -> Result<Self, Trouble> {
        let fd = raw::inherited(number).doing(format!("descriptor {number}"))?;
        fcntl_setfd(&fd, FdFlags::CLOEXEC).doing("taking the roll over")?;
        Ok(Self(fd))
    }
}
