//! What wakes whoever follows a log.

use fullstop_cage::linux::FileChanges;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Keeper and guard may be killed without a word on the disk.
const PROBE_EVERY: Duration = Duration::from_secs(2);
/// In a flood it is looked no more often than this, however often it is told.
const NAP: Duration = Duration::from_millis(10);
/// Where nobody tells.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// The changes in a run's directory.
#[derive(Debug)]
pub struct Changes {
    dir: PathBuf,
    told: io::Result<FileChanges>,
    /// When it was last looked, told or not; never yet.
    looked: Option<Instant>,
}

impl Changes {
    pub fn new(dir: &Path) -> Changes {
        let told = FileChanges::new().and_then(|told| told.watch(dir).map(|()| told));
        Changes { dir: dir.to_owned(), told, looked: None }
    }

    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.told.as_ref().ok().filter(|_| !self.naps()).map(FileChanges::as_fd)
    }

    fn naps(&self) -> bool {
        self.looked.is_some_and(|at| at.elapsed() < NAP)
    }

    pub fn problem(&self) -> Option<&io::Error> {
        self.told.as_ref().err()
    }

    /// Whether something may have changed since it was last asked.
    pub fn told(&mut self) -> bool {
        let told = match &self.told {
            Err(_) => self.is_due(),
            Ok(told) => {
                let any = told.drain() || self.looked.is_none();
                if any {
                    // Its end takes the lock's name away, and a restart makes another lock.
                    let _ = told.watch(&self.dir.join("lock"));
                }
                any
            }
        };
        if told {
            self.looked = Some(Instant::now());
        }
        told
    }

    /// Whether it is time to look without having been told. That counts as a look.
    pub fn is_due(&mut self) -> bool {
        let due = self.patience().is_zero();
        if due {
            self.looked = Some(Instant::now());
        }
        due
    }

    pub fn patience(&self) -> Duration {
        let every = match &self.told {
            Ok(_) if self.naps() => NAP,
            Ok(_) => PROBE_EVERY,
            Err(_) => LOOK_EVERY,
        };
        self.looked.map_or(Duration::ZERO, |at| every.saturating_sub(at.elapsed()))
    }

    /// Something has changed, and nobody told. Kernels before 6.6 say nothing of what was
    /// spliced into a file, and some file systems nothing at all.
    pub fn missed(&mut self) {
        let Ok(told) = &self.told else { return };
        if told.drain() {
            // It was told just now.
            self.looked = None;
        } else {
            let why = "nobody tells of changes in its directory";
            self.told = Err(io::Error::new(io::ErrorKind::Unsupported, why));
        }
    }
}
