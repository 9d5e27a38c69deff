//! The files that a stream's log is made of.

use crate::error::{Result, StoreError};
use crate::files::Dir;
use fullstop_core::words::Stream;
use rustix::fs::{AtFlags, statat};
use rustix::io::Errno;

/// A file of a log: that part of the stream which begins at `start`. The head begins
/// at the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    pub start: u64,
    pub len: u64,
}

impl Part {
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.len)
    }

    /// How much of it lies at or behind an offset of the stream.
    pub fn behind(&self, offset: u64) -> u64 {
        self.end().saturating_sub(self.start.max(offset))
    }
}

/// The file with the bytes from `start` on.
pub fn data_name(stream: Stream, start: u64) -> String {
    name(stream, "log", start)
}

/// The file with their times.
pub fn index_name(stream: Stream, start: u64) -> String {
    name(stream, "idx", start)
}

fn name(stream: Stream, kind: &str, start: u64) -> String {
    if start == 0 { format!("{stream}.{kind}") } else { format!("{stream}.{kind}.{start:020}") }
}

/// Where a file of this log begins in the stream; nothing, if it is another file.
fn start_of(stream: Stream, name: &str) -> Option<u64> {
    let rest = name.strip_prefix(&data_name(stream, 0))?;
    let start = match rest.strip_prefix('.') {
        None => 0,
        Some(digits) => digits.parse().ok()?,
    };
    (data_name(stream, start) == name).then_some(start)
}

/// What there is of a stream, in its order.
pub fn list(dir: &Dir, stream: Stream) -> Result<Vec<Part>> {
    let mut parts = Vec::new();
    for name in dir.names()? {
        let Some(start) = start_of(stream, &name) else { continue };
        match statat(&dir.fd, name.as_str(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => parts.push(Part { start, len: u64::try_from(stat.st_size).unwrap_or(0) }),
            // Rotated away since it was listed.
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(StoreError::io("look at", &dir.path.join(name), errno)),
        }
    }
    parts.sort_unstable_by_key(|part| part.start);
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_where_it_begins() {
        for start in [0, 1, 33_554_432, u64::MAX] {
            assert_eq!(start_of(Stream::Err, &data_name(Stream::Err, start)), Some(start));
        }
        let strange = ["err.log", "out.idx", "out.log.", "out.log.12", "out.log.x", "out.logs"];
        for name in strange {
            assert_eq!(start_of(Stream::Out, name), None, "{name}");
        }
    }
}
