//! Shells that save their work within 0.3 s of TERM.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::fifo::Fifo;
use crate::proc;

/// Tells its pid once its trap is set, then sleeps in a read that nobody answers. The
/// napping `sleep` is one more fork, when everybody else is stopped as well.
const SCRIPT: &str = "\
trap 'sleep 0.3; echo saved > \"$1\"; exit 0' TERM
exec 3<>\"$3\"
echo $$ > \"$2\"
while :; do read -r _ <&3; done";

/// How long the last of them may take to be there, beside busy loops.
pub const PATIENCE: Duration = Duration::from_mins(1);
const LOOK_EVERY: Duration = Duration::from_millis(5);

pub struct Agents {
    dir: PathBuf,
    /// Each says its pid here.
    up: Fifo,
    /// Each reads from here, for ever.
    silence: Fifo,
}

impl Agents {
    pub fn new(dir: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(dir.join("saved"))?;
        let up = Fifo::make(&dir.join("up"))?;
        let silence = Fifo::make(&dir.join("silence"))?;
        Ok(Self { dir: dir.to_owned(), up, silence })
    }

    /// The words of one agent, which is known by this number.
    pub fn words(&self, number: &str) -> Vec<String> {
        let saved = self.dir.join("saved").join(number).display().to_string();
        ["sh", "-c", SCRIPT, "agent", &saved, self.up.path(), self.silence.path()]
            .map(ToOwned::to_owned)
            .into()
    }

    /// Waits until so many have set their trap and sleep. One that is asked between the
    /// two may miss it: the shell looks for signals, and sleeps only then.
    pub fn settled(&mut self, count: usize) -> io::Result<usize> {
        let mut pids = Vec::with_capacity(count);
        while pids.len() < count {
            match self.up.read_line(PATIENCE) {
                Ok(pid) => pids.push(pid.parse().map_err(io::Error::other)?),
                Err(error) if error.kind() == io::ErrorKind::TimedOut => break,
                Err(error) => return Err(error),
            }
        }
        let until = Instant::now() + PATIENCE;
        let asleep = |pid: &u32| proc::state(*pid) == Some('S');
        while !pids.iter().all(asleep) && Instant::now() < until {
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(pids.iter().filter(|pid| asleep(pid)).count())
    }

    /// How many have saved their work.
    pub fn saved(&self) -> io::Result<usize> {
        let entries = std::fs::read_dir(self.dir.join("saved"))?;
        let whole = |path: PathBuf| std::fs::read(path).is_ok_and(|text| text == b"saved\n");
        Ok(entries.flatten().filter(|entry| whole(entry.path())).count())
    }
}
