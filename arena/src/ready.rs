//! The FIFO through which a zoo member says that its tree stands.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};

use crate::{Context, Deadline, Outcome, ensure};

/// The reading end of `DIR/ready`. It is opened for reading *and* writing, so
/// that opening blocks on neither side and no end of file is ever seen.
pub struct Ready {
    fifo: File,
    text: String,
}

impl Ready {
    /// Makes the FIFO in `dir`, writable for every user of this world.
    pub fn create(dir: &Path) -> Outcome<Self> {
        let path = dir.join("ready");
        let everyone = Mode::from_raw_mode(0o666);
        mknodat(CWD, &path, FileType::Fifo, everyone, 0).context("cannot make the ready fifo")?;
        // The mode given to mknod is cut by the umask.
        rustix::fs::chmod(&path, everyone).context("cannot open up the ready fifo")?;
        let fifo = File::options()
            .read(true)
            .write(true)
            .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
            .open(&path)
            .context("cannot open the ready fifo")?;
        Ok(Self { fifo, text: String::new() })
    }

    /// Waits for the line `ready COUNT` and returns the count.
    pub fn wait(&mut self, patience: Duration) -> Outcome<usize> {
        let deadline = Deadline::after(patience);
        loop {
            self.read_what_is_there()?;
            if let Some((line, _)) = self.text.split_once('\n') {
                let count = line.strip_prefix("ready ").and_then(|n| n.trim().parse().ok());
                return count.context(format!("not a ready line: {line:?}"));
            }
            ensure!(deadline.stands(), "it is not ready after {patience:?}");
            let mut fds = [PollFd::new(&self.fifo, PollFlags::IN)];
            match poll(&mut fds, Some(&deadline.timespec())) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error).context("poll on the ready fifo"),
            }
        }
    }

    /// All that was ever written into the FIFO: exactly one line is right.
    pub fn text(&mut self) -> Outcome<&str> {
        self.read_what_is_there()?;
        Ok(&self.text)
    }

    fn read_what_is_there(&mut self) -> Outcome {
        let mut chunk = [0; 256];
        loop {
            match self.fifo.read(&mut chunk) {
                Ok(n) => self.text.push_str(&String::from_utf8_lossy(&chunk[..n])),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error).context("reading the ready fifo"),
            }
        }
    }
}
