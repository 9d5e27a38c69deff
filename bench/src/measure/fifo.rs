//! A FIFO that is always open at our end, so that writers never wait and its
//! end is never seen. Every contender passes a path on; not every one passes
//! descriptors on.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, FileType, Mode, mknodat};

pub struct Fifo {
    path: PathBuf,
    file: File,
}

impl Fifo {
    pub fn make(path: &Path) -> io::Result<Self> {
        let _ = std::fs::remove_file(path);
        // Contenders may run the command as anybody.
        let mode = Mode::from_raw_mode(0o666);
        mknodat(CWD, path, FileType::Fifo, mode, 0)?;
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        Ok(Self { path: path.to_owned(), file })
    }

    pub fn path(&self) -> &str {
        // The scratch directory is ours and has a plain name.
        self.path.to_str().unwrap_or_default()
    }

    /// The next bytes, all of them, or an error once the patience is over.
    pub fn read_exact(&mut self, buffer: &mut [u8], patience: Duration) -> io::Result<()> {
        let mut filled = 0;
        while filled < buffer.len() {
            self.wait(patience)?;
            filled += self.file.read(&mut buffer[filled..])?;
        }
        Ok(())
    }

    pub fn read_line(&mut self, patience: Duration) -> io::Result<String> {
        let mut line = Vec::new();
        loop {
            let mut byte = [0];
            self.read_exact(&mut byte, patience)?;
            if byte == *b"\n" {
                return Ok(String::from_utf8_lossy(&line).into_owned());
            }
            line.push(byte[0]);
        }
    }

    fn wait(&self, patience: Duration) -> io::Result<()> {
        let timeout = Timespec::try_from(patience).map_err(io::Error::other)?;
        let mut fds = [PollFd::new(&self.file, PollFlags::IN)];
        if poll(&mut fds, Some(&timeout))? == 0 {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!("nothing was said within {} s", patience.as_secs()),
            ));
        }
        Ok(())
    }
}

impl Drop for Fifo {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
