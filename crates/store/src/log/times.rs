//! Reading an index. Whatever stands in it, the worst that comes of it is a wrong time.

use super::index::{HEADER, Header, Mark, RECORD, read_header};
use crate::files::Dir;
use rustix::fs::OFlags;
use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

/// How many records are read at once.
const BLOCK: usize = 4096;

/// When the bytes of one file came, asked for in their order.
#[derive(Debug)]
pub struct Times {
    name: String,
    file: Option<File>,
    /// Where the next record is read.
    place: u64,
    /// The time of what is asked for now; of nothing yet.
    current: Option<Mark>,
    ahead: VecDeque<Mark>,
}

impl Times {
    pub fn new(name: String) -> Times {
        Times { name, file: None, place: HEADER, current: None, ahead: VecDeque::new() }
    }

    /// To be asked from this offset on: what stands before it is not read.
    pub fn from(dir: &Dir, name: String, offset: u64) -> Times {
        let mut times = Times::new(name);
        // The last record that is not behind it; the first one, if all are.
        times.place = times.first(dir, |mark| mark.start > offset) - RECORD;
        times.place = times.place.max(HEADER);
        times
    }

    /// When the byte at `offset` came, and up to where they came then; nothing, if that
    /// was not written down. `seen` is how far the data was read: what is written of
    /// those behind it may change.
    pub fn of(&mut self, dir: &Dir, offset: u64, seen: u64) -> (Option<u64>, u64) {
        while let Some(next) = self.peek(dir, seen) {
            // What came before the first record came no later.
            if next.start > offset && self.current.is_some() {
                return (self.at(), next.start);
            }
            self.current = self.ahead.pop_front();
        }
        (self.at(), seen)
    }

    fn at(&self) -> Option<u64> {
        self.current.map(|mark| mark.at)
    }

    fn peek(&mut self, dir: &Dir, seen: u64) -> Option<Mark> {
        if self.ahead.is_empty() {
            self.load(dir, seen);
        }
        self.ahead.front().copied()
    }

    fn open(&mut self, dir: &Dir) -> Option<&File> {
        if self.file.is_none() {
            // There may be none: it is made when a log without one is continued.
            let opened = dir.open_file(&self.name, OFlags::RDONLY | OFlags::NOFOLLOW);
            self.file = opened.ok().filter(|file| read_header(file) == Header::Known);
        }
        self.file.as_ref()
    }

    fn load(&mut self, dir: &Dir, seen: u64) {
        self.open(dir);
        let Some(file) = &self.file else { return };
        let mut latest = self.current.map_or(0, |mark| mark.start);
        let mut block = vec![0; BLOCK * 16];
        loop {
            let count = file.read_at(&mut block, self.place).unwrap_or(0);
            let (records, _torn) = block[..count].as_chunks::<16>();
            for (place, record) in records.iter().enumerate() {
                let mark = Mark::from_bytes(*record);
                // The last one is replaced if nothing comes of it.
                if mark.start >= seen && place + 1 == records.len() {
                    return;
                }
                self.place += RECORD;
                // A record that goes back is none.
                if mark.start >= latest {
                    latest = mark.start;
                    self.ahead.push_back(mark);
                }
            }
            if records.is_empty() || !self.ahead.is_empty() {
                return;
            }
        }
    }

    /// The time of the first record, which what came before it has too.
    pub fn earliest(&mut self, dir: &Dir) -> Option<u64> {
        record(self.open(dir)?, HEADER).map(|mark| mark.at)
    }

    /// Where the first byte before `seen` is that came at that time or later.
    pub fn first_since(&mut self, dir: &Dir, at: u64, seen: u64) -> Option<u64> {
        let place = self.first(dir, |mark| mark.at >= at);
        let mark = record(self.open(dir)?, place)?;
        (mark.start < seen).then_some(mark.start)
    }

    /// Where the first record stands for which this holds, if it holds for all behind it
    /// as well: found by halving, whatever the length. The end, if there is none.
    fn first(&mut self, dir: &Dir, is_behind: impl Fn(Mark) -> bool) -> u64 {
        let Some(file) = self.open(dir) else { return HEADER };
        let size = file.metadata().map_or(0, |meta| meta.len());
        let (mut low, mut high) = (0, size.saturating_sub(HEADER) / RECORD);
        while low < high {
            let middle = low.midpoint(high);
            match record(file, HEADER + middle * RECORD) {
                Some(mark) if !is_behind(mark) => low = middle + 1,
                _ => high = middle,
            }
        }
        HEADER + low * RECORD
    }
}

fn record(file: &File, place: u64) -> Option<Mark> {
    let mut bytes = [0; 16];
    file.read_exact_at(&mut bytes, place).ok()?;
    Some(Mark::from_bytes(bytes))
}
