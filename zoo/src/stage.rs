//! What a member is given, what it says to the test, and how it passes its time.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::event::pause;
use rustix::io::Errno;
use rustix::process::{WaitOptions, wait};

use crate::trouble::{Doing, Trouble};

pub struct Stage {
    pub dir: Option<PathBuf>,
    pub argument: Option<OsString>,
}

impl Stage {
    /// Says that the whole tree stands: `count` living processes, the leader among them.
    pub fn announce(&self, count: usize) -> Result<(), Trouble> {
        self.tell("ready", &format!("ready {count}\n"))
    }

    /// Writes one line into the FIFO of that name, if whoever started us made one.
    pub fn tell(&self, fifo: &str, line: &str) -> Result<(), Trouble> {
        let Some(dir) = &self.dir else { return Ok(()) };
        let path = dir.join(fifo);
        match open_fifo(&path) {
            Ok(mut fifo) => fifo.write_all(line.as_bytes()).doing(describe(&path)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error).doing(describe(&path)),
        }
    }

    /// Writes `DIR/saved`: whole or not at all, so that a test never sees half of it.
    pub fn save(&self) -> Result<(), Trouble> {
        let path = self.path("saved")?;
        let draft = path.with_extension("draft");
        fs::write(&draft, "saved\n").doing(describe(&draft))?;
        fs::rename(&draft, &path).doing(describe(&path))
    }

    pub fn path(&self, name: &str) -> Result<PathBuf, Trouble> {
        let dir = self.dir.as_ref();
        dir.map(|dir| dir.join(name))
            .ok_or_else(|| Trouble::Usage("this member needs --dir DIR".into()))
    }

    pub fn number(&self, default: usize) -> Result<usize, Trouble> {
        let Some(word) = &self.argument else {
            return Ok(default);
        };
        let number = word.to_str().and_then(|word| word.parse().ok());
        number.ok_or_else(|| Trouble::Usage(format!("{} is not a number", word.display())))
    }

    pub fn file(&self) -> Result<&Path, Trouble> {
        let word = self.argument.as_ref();
        word.map(Path::new)
            .ok_or_else(|| Trouble::Usage("this member needs a path after its name".into()))
    }
}

/// Waits for a reader. std retries what a signal interrupts, but not an open.
fn open_fifo(path: &Path) -> io::Result<File> {
    loop {
        match OpenOptions::new().write(true).open(path) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

fn describe(path: &Path) -> String {
    path.display().to_string()
}

/// Does nothing until a signal ends it, its own alarm at the latest.
pub fn live() -> ! {
    loop {
        pause();
    }
}

/// Lives, and buries its children.
pub fn tend() -> ! {
    loop {
        if let Err(Errno::CHILD) = wait(WaitOptions::empty()) {
            pause();
        }
    }
}

/// Buries the children that are dead by now.
pub fn bury() {
    while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
}
