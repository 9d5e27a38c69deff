//! `events.jsonl`: what happened to a run, a line each.

use super::{EVENTS, RunDir};
use crate::error::{Result, StoreError};
use crate::files::Dir;
use crate::format;
use fullstop_protocol::Event;
use rustix::fs::OFlags;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};

impl RunDir {
    /// One write, whole or not at all: what could not be written is tried again, and
    /// would be there twice. A line that a killed writer has torn is ended first.
    pub fn append(&self, events: &[Event]) -> Result<()> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::APPEND;
        let why = |error| StoreError::io("write", &self.dir.path.join(EVENTS), error);
        let open = || {
            let file = self.dir.open_file(EVENTS, flags)?;
            let found = file.metadata().map_err(why)?;
            Ok((file, found))
        };
        let (mut file, found) = match open() {
            Ok((file, found)) if found.is_file() => (file, found),
            Err(error) if self.dir.strange(EVENTS).is_none() => return Err(error),
            // Whoever put it there has removed the events before it.
            _ => {
                self.dir.clear(EVENTS)?;
                open()?
            }
        };
        let size = found.len();
        let mut text = Vec::new();
        if is_torn(&file, size) {
            text.push(b'\n');
        }
        for event in events {
            text.extend(serde_json::to_vec(event).unwrap_or_default());
            text.push(b'\n');
        }
        file.write_all(&text).map_err(|error| {
            let _ = file.set_len(size);
            why(error)
        })?;
        self.has_unnoticed_events.set(true);
        Ok(())
    }

    /// How many events there were: what was removed of them, or cannot be read, had its number.
    pub fn count_events(&self) -> u64 {
        let events = self.events();
        let last = events.iter().map(|event| event.number).max().unwrap_or_default();
        // Those of version 1 have no numbers.
        last.max(events.len() as u64)
    }

    /// What was told until now, as far as it can be read.
    pub fn events(&self) -> Vec<Event> {
        read_events(&self.dir, 0).map(|(events, _)| events).unwrap_or_default()
    }
}

/// From an offset on, or from the beginning if that is none of this file; a torn last line
/// waits for its end.
pub(crate) fn read_events(dir: &Dir, from: u64) -> Result<(Vec<Event>, u64)> {
    let mut file = match dir.open_regular(EVENTS, OFlags::RDONLY) {
        Err(error) if error.is_missing() => return Ok((Vec::new(), from)),
        other => other?,
    };
    let why = |error| StoreError::io("read", &dir.path.join(EVENTS), error);
    let mut text = Vec::new();
    let from = if is_between_lines(&file, from).map_err(why)? { from } else { 0 };
    file.seek(SeekFrom::Start(from)).map_err(why)?;
    file.read_to_end(&mut text).map_err(why)?;
    let whole = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    let lines = text[..whole].split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    // A line that cannot be read is one line less, and hides no other.
    let events = lines.filter_map(format::event).collect();
    Ok((events, from + whole as u64))
}

/// Whether a line of this file ends there. A keeper that restores its run begins the file
/// anew: an offset into the old one leads nowhere then.
fn is_between_lines(file: &File, offset: u64) -> std::io::Result<bool> {
    use std::os::unix::fs::FileExt as _;
    let Some(last) = offset.checked_sub(1) else { return Ok(true) };
    let mut byte = [0];
    Ok(file.read_at(&mut byte, last)? == 1 && byte == *b"\n")
}

fn is_torn(file: &File, size: u64) -> bool {
    use std::os::unix::fs::FileExt as _;
    let mut last = [0];
    size > 0 && file.read_exact_at(&mut last, size - 1).is_ok() && last != *b"\n"
}
