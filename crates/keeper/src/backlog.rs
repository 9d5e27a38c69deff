//! Bytes that wait until whoever reads them has room.

use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use std::os::fd::AsFd;

/// Written to a descriptor that does not block, in order, as room comes.
#[derive(Debug, Default)]
pub struct Backlog {
    bytes: Vec<u8>,
    /// How many of them are written already.
    done: usize,
}

/// The other side will never read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

/// What waited was refused, and is thrown away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    pub why: Errno,
    /// How much of it was not written.
    pub unwritten: usize,
}

impl Backlog {
    pub fn len(&self) -> usize {
        self.bytes.len() - self.done
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub fn clear(&mut self) {
        *self = Backlog::default();
    }

    /// Writes as much as there is room for, at most `step` bytes at a time.
    pub fn write(&mut self, to: impl AsFd, step: usize) -> Result<(), Refused> {
        self.write_by(step, |bytes| rustix::io::write(&to, bytes))
    }

    /// The same to a socket, which need not be told not to block.
    pub fn send(&mut self, to: impl AsFd) -> Result<(), Gone> {
        self.try_send(to).map_err(|_| Gone)
    }

    /// The same, where it matters why.
    pub fn try_send(&mut self, to: impl AsFd) -> Result<(), Refused> {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        self.write_by(usize::MAX, |bytes| send(&to, bytes, flags))
    }

    /// The same, through any call that says EAGAIN where there is no room.
    pub fn write_by(
        &mut self,
        step: usize,
        mut write: impl FnMut(&[u8]) -> Result<usize, Errno>,
    ) -> Result<(), Refused> {
        while !self.is_empty() {
            let end = self.bytes.len().min(self.done.saturating_add(step));
            match write(&self.bytes[self.done..end]) {
                Ok(0) | Err(Errno::AGAIN) => break,
                Ok(written) => self.done += written,
                Err(Errno::INTR) => {}
                Err(why) => {
                    let unwritten = self.len();
                    self.clear();
                    return Err(Refused { why, unwritten });
                }
            }
        }
        self.tidy();
        Ok(())
    }

    /// Gives room back that is not needed any more.
    fn tidy(&mut self) {
        /// Less than this is not worth to be given back, or moved.
        const SMALL: usize = 64 * 1024;
        if self.is_empty() {
            self.bytes.clear();
            self.bytes.shrink_to(SMALL);
            self.done = 0;
        } else if self.done > SMALL && self.done > self.bytes.len() / 2 {
            self.bytes.drain(..self.done);
            self.done = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_and_the_order_is_kept() {
        let mut backlog = Backlog::default();
        let all: Vec<u8> = (0..=255).cycle().take(300_000).collect();
        let mut seen = Vec::new();
        for piece in all.chunks(1000) {
            backlog.push(piece);
            let mut room = 700;
            let written = backlog.write_by(usize::MAX, |bytes| {
                let some = bytes.len().min(room);
                room -= some;
                seen.extend_from_slice(&bytes[..some]);
                if some == 0 { Err(Errno::AGAIN) } else { Ok(some) }
            });
            assert_eq!(written, Ok(()));
        }
        assert!(!backlog.is_empty());
        let rest = backlog.write_by(10, |bytes| {
            seen.extend_from_slice(bytes);
            Ok(bytes.len())
        });
        assert_eq!((rest, backlog.len()), (Ok(()), 0));
        assert_eq!(seen, all);
    }

    #[test]
    fn who_is_gone_is_owed_nothing() {
        let mut backlog = Backlog::default();
        backlog.push(b"anything");
        let mut room = [Ok(3), Err(Errno::PIPE)].into_iter();
        let refused = backlog.write_by(4, |_| room.next().unwrap_or(Ok(0)));
        assert_eq!(refused, Err(Refused { why: Errno::PIPE, unwritten: 5 }));
        assert!(backlog.is_empty());
    }
}
