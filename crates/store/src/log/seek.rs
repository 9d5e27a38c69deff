//! Where to begin in a log: with its last lines, or at a time.

use super::parts::{self, Part, data_name, index_name};
use super::reader::{BLOCK, LogReader, changed};
use super::times::Times;
use crate::error::{Result, StoreError};
use rustix::fs::OFlags;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

impl LogReader {
    /// Goes forward to what came at `at` or later, in microseconds since 1970.
    pub fn seek_time(&mut self, at: u64) -> Result<()> {
        let mut before = 0;
        for part in parts::list(&self.dir, self.stream)? {
            if let Some(offset) = self.first_since(part, at)? {
                // What is missing right before it may belong to it.
                let is_first = offset == part.start;
                self.go_to(if is_first { before } else { offset });
                return Ok(());
            }
            before = part.end();
        }
        self.go_to(before);
        Ok(())
    }

    fn first_since(&self, part: Part, at: u64) -> Result<Option<u64>> {
        if part.len == 0 {
            return Ok(None);
        }
        let mut times = Times::new(index_name(self.stream, part.start));
        let earliest = match times.earliest(&self.dir) {
            Some(earliest) => earliest,
            None => match self.file(part)? {
                Some(file) => changed(&file)
                    .map_err(|error| StoreError::io("look at", &self.dir.path, error))?,
                None => return Ok(None),
            },
        };
        if earliest >= at {
            return Ok(Some(part.start));
        }
        Ok(times.first_since(&self.dir, at, part.end()))
    }

    /// Goes forward to the last `count` lines, and says how many there are. What has no
    /// newline yet is a line as well. It is read backwards, and only so much as that takes.
    pub fn seek_lines(&mut self, count: u64) -> Result<u64> {
        let parts = parts::list(&self.dir, self.stream)?;
        let end = parts.last().map_or(0, Part::end);
        if count == 0 {
            self.go_to(end);
            return Ok(0);
        }
        let (mut lines, mut begin) = (0, end);
        let mut block = vec![0; BLOCK];
        'all: for part in parts.iter().rev() {
            let Some(file) = self.file(*part)? else { break };
            let low = part.start.max(self.offset);
            let mut high = part.end();
            while high > low {
                let from = low.max(high.saturating_sub(BLOCK as u64));
                let bytes = &mut block[..usize::try_from(high - from).unwrap_or(BLOCK)];
                if file.read_exact_at(bytes, from - part.start).is_err() {
                    break 'all;
                }
                for (place, byte) in bytes.iter().enumerate().rev() {
                    let behind = from + place as u64 + 1;
                    // The last newline ends a line, every other one begins one.
                    if *byte == b'\n' && behind < end {
                        lines += 1;
                        if lines == count {
                            self.go_to(behind);
                            return Ok(lines);
                        }
                    }
                }
                begin = from;
                high = from;
            }
        }
        let rest = u64::from(begin < end);
        self.go_to(if parts.first().is_some_and(|first| begin == first.start) { 0 } else { begin });
        Ok(lines + rest)
    }

    /// Nothing, if it was rotated away.
    fn file(&self, part: Part) -> Result<Option<File>> {
        let name = data_name(self.stream, part.start);
        match self.dir.open_file(&name, OFlags::RDONLY | OFlags::NOFOLLOW) {
            Err(error) if error.is_missing() => Ok(None),
            other => other.map(Some),
        }
    }

    /// Goes forward to this offset of the stream, and never backwards.
    pub fn go_to(&mut self, offset: u64) {
        self.seek(self.offset.max(offset));
    }
}
