//! Starting a keeper from any program: a plain spawn, then forks in that process.

use crate::error::{Error, Result};
use crate::line::Line;
use crate::offload::on_thread;
use crate::readable::readable;
use crate::stop::Silence;
use crate::unanswered::Unanswered;
use fullstop_cage::linux::{Mask, PinnedProcess, hold};
use fullstop_keeper::{commission, name};
use fullstop_protocol::{Start, wipe};
use fullstop_store::Tag;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tokio::time::sleep;

static INITIALISED: AtomicBool = AtomicBool::new(false);

/// To be called first in `main`, while there is one thread: this program may have
/// been started anew as the keeper of a run, and then this does not return.
///
/// ```no_run
/// fullstop::init();
/// // … the program as it was.
/// ```
pub fn init() {
    if std::env::args_os().next().is_some_and(|name| name == name::GUARD) {
        commission::carry_out();
    }
    INITIALISED.store(true, Relaxed);
}

/// This program, if it knows how to be a keeper.
pub(crate) fn own_executable() -> Result<PathBuf> {
    if !INITIALISED.load(Relaxed) {
        return Err(Error::NotInitialised);
    }
    // Not its path: that may have been replaced since.
    Ok(PathBuf::from("/proc/self/exe"))
}

/// A process of the keeper executable that waits to be told what to run.
///
/// It exits as soon as the guard that it forks is on its own. One that is told nothing is
/// killed when this is dropped.
pub(crate) struct Recruit {
    line: Option<UnixStream>,
    /// Until it is waited for elsewhere.
    process: Option<Child>,
}

impl Recruit {
    /// Its command line tells the run, and no more; it is as long as a keeper's, which
    /// this process's child will show there. The command inherits the signal mask from it, and
    /// is to have the caller's, and not that of a thread of ours.
    pub fn spawn(executable: &Path, run: &Tag, mask: &Mask) -> Result<Recruit> {
        let own = hold(&[]);
        mask.restore();
        let spawned = Recruit::spawn_here(executable, run);
        own.restore();
        spawned
    }

    fn spawn_here(executable: &Path, run: &Tag) -> Result<Recruit> {
        let spawned = || -> io::Result<Recruit> {
            let (ours, theirs) = UnixStream::pair()?;
            let process = Command::new(executable)
                .arg0(name::GUARD)
                .args([&run.to_string(), ""])
                .stdin(Stdio::from(OwnedFd::from(theirs)))
                .spawn()?;
            Ok(Recruit { line: Some(ours), process: Some(process) })
        };
        spawned().map_err(Error::io("start a keeper"))
    }

    /// Tells it what to run, and on whose behalf. Returns the line to the keeper.
    ///
    /// A process that does not exit, though it has had the time, is no keeper; one that
    /// waits for a processor is waited for.
    pub async fn hand_over(mut self, start: Start, by: Option<&str>) -> Result<Unanswered> {
        const PATIENCE: Duration = Duration::from_secs(5);
        let deaf = || Error::not_started("what was started is no keeper");
        let line = self.line.take().ok_or_else(deaf)?;
        let process = self.process.as_mut().ok_or_else(deaf)?;
        let pid = i32::try_from(process.id()).ok();
        let mut silence = Silence::of(|| pid);
        let told = silence.wait_for(PATIENCE, tell(line, &start, by)).await;
        silence.wait_for(PATIENCE, exit(process)).await;
        told.ok_or_else(deaf)?
    }
}

impl Drop for Recruit {
    fn drop(&mut self) {
        let Some(mut process) = self.process.take() else { return };
        if matches!(process.try_wait(), Ok(None)) {
            let _ = process.kill();
            // One that cannot die yet holds up nobody but a thread of its own.
            on_thread(move || drop(process.wait()));
        }
    }
}

async fn tell(line: UnixStream, start: &Start, by: Option<&str>) -> Result<Unanswered> {
    let mut text =
        serde_json::to_vec(start).map_err(|error| Error::io("write a spec")(error.into()))?;
    text.push(b'\n');
    let mut line = Line::new(line)?;
    let written = line.write(&text).await;
    // There may be secrets in it.
    wipe(&mut text);
    written.map_err(Error::io("tell the keeper what to run"))?;
    Ok(Unanswered::new(line, by))
}

/// Waits for a child of ours to exit.
async fn exit(child: &mut Child) {
    /// How often it is asked for where the kernel cannot wake us.
    const LOOK_EVERY: Duration = Duration::from_millis(5);
    let pid = i32::try_from(child.id()).unwrap_or_default();
    let pidfd = PinnedProcess::child(pid).and_then(|held| held.with_pidfd()?.into_pidfd());
    if let Some(pidfd) = pidfd {
        let _ = readable(pidfd).await;
    }
    while matches!(child.try_wait(), Ok(None)) {
        sleep(LOOK_EVERY).await;
    }
}
