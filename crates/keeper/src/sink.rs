//! Where the report goes.

use crate::say::patiently;
use fullstop_protocol::Report;
use rustix::fs::{FileType, fstat, ftruncate};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::fs::FileExt;

/// Opened before the run, so that a bad path is an early
/// error, and held by guard and keeper alike.
///
/// ```
/// use fullstop_keeper::Sink;
///
/// let null = std::fs::File::options().write(true).open("/dev/null")?;
/// assert!(!Sink::new(null).is_replaceable(), "only a file can be replaced");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Sink {
    file: File,
    /// A report that can be replaced when a stuck run is confirmed after all.
    replaceable: bool,
}

impl Sink {
    pub fn new(file: File) -> Sink {
        let regular = fstat(&file)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
        Sink { file, replaceable: regular }
    }

    /// A standard output that happens to be a file is appended to, not replaced.
    pub fn stream(file: File) -> Sink {
        Sink { file, replaceable: false }
    }

    pub fn is_replaceable(&self) -> bool {
        self.replaceable
    }

    pub fn write(&self, report: &Report) -> io::Result<()> {
        let mut text = serde_json::to_vec(report)?;
        text.push(b'\n');
        if !self.replaceable {
            return patiently(self.file.as_fd(), &text);
        }
        // Never empty in between: whoever reads it meanwhile reads the old or the new.
        self.file.write_all_at(&text, 0)?;
        Ok(ftruncate(&self.file, text.len() as u64)?)
    }

    pub fn descriptor(&self) -> RawFd {
        self.file.as_raw_fd()
    }
}
