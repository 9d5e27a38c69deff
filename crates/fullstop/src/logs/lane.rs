//! One stream of a run, cut into whole lines.

use super::LogEntry;
use crate::error::Result;
use fullstop_store::{LogReader, Piece};
use std::collections::VecDeque;

/// A line that grows longer than this is passed on before its end.
pub(super) const LONG: usize = 64 * 1024;

#[derive(Debug)]
pub(super) struct Lane {
    pub reader: LogReader,
    pub ready: VecDeque<LogEntry>,
    /// The beginning of a line, and when it came.
    pub partial: Vec<u8>,
    pub at: u64,
    /// It had nothing more when others were last read: what they have is not younger than
    /// what may come here.
    pub is_at_end: bool,
}

impl Lane {
    pub fn new(reader: LogReader) -> Lane {
        let (ready, partial) = (VecDeque::new(), Vec::new());
        Lane { reader, ready, partial, at: 0, is_at_end: false }
    }

    pub fn is_to_be_read(&self) -> bool {
        self.ready.is_empty() && !self.is_at_end
    }

    /// Reads until something can be passed on; whether anything came.
    pub fn fill(&mut self) -> Result<bool> {
        let mut grown = false;
        while self.ready.is_empty() {
            let Some(piece) = self.reader.next()? else {
                self.is_at_end = true;
                break;
            };
            grown = true;
            let end = self.reader.offset();
            match piece {
                Piece::Cut { bytes } => {
                    self.pass_on(end.saturating_sub(bytes));
                    let (stream, at) = (self.reader.stream(), self.at);
                    self.ready.push_back(LogEntry::Cut { stream, at, end, bytes });
                }
                Piece::Bytes { at, bytes } => self.add(at, end, bytes),
            }
        }
        Ok(grown)
    }

    /// Takes what came at that time, up to that end.
    fn add(&mut self, at: u64, end: u64, mut bytes: Vec<u8>) {
        let stream = self.reader.stream();
        if !self.partial.is_empty() {
            // A line has the time of its beginning.
            let rest =
                bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1);
            self.partial.extend(bytes.drain(..rest));
            if self.partial.last() == Some(&b'\n') || self.partial.len() >= LONG {
                self.pass_on(end - bytes.len() as u64);
            }
        }
        if bytes.is_empty() {
            return;
        }
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        self.partial = bytes.split_off(whole);
        self.at = at;
        if !bytes.is_empty() {
            let end = end - self.partial.len() as u64;
            self.ready.push_back(LogEntry::Text { stream, at, end, bytes });
        }
        if self.partial.len() >= LONG {
            self.pass_on(end);
        }
    }

    /// The beginning of a line, as it is.
    pub fn flush(&mut self, end: u64) -> LogEntry {
        let bytes = std::mem::take(&mut self.partial);
        LogEntry::Text { stream: self.reader.stream(), at: self.at, end, bytes }
    }

    fn pass_on(&mut self, end: u64) {
        if !self.partial.is_empty() {
            let entry = self.flush(end);
            self.ready.push_back(entry);
        }
    }

    pub fn next_at(&self) -> u64 {
        self.ready.front().map_or(u64::MAX, LogEntry::at)
    }
}
