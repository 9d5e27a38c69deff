//! Starting a keeper from any program: a plain spawn, then forks in that process.

use crate::error::{Error, Result};
use fullstop_keeper::commission::{self, Commission};
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tokio::task::spawn_blocking;

static INITIALISED: AtomicBool = AtomicBool::new(false);

/// To be called first in `main`, while there is one thread: this program may have
/// been started anew as the keeper of a run, and then this does not return.
///
/// ```no_run
/// fullstop::init();
/// // … the program as it was.
/// ```
pub fn init() {
    if std::env::args_os().next().is_some_and(|name| name == commission::NAME) {
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

/// Starts a keeper and tells it what to run. Returns the line to it. It waits for the
/// new process to read, which is no async task's business.
pub(crate) async fn hand_over(executable: &Path, commission: Commission) -> Result<UnixStream> {
    let executable = executable.to_owned();
    let handed = spawn_blocking(move || hand_over_now(&executable, &commission)).await;
    handed.map_err(|error| Error::Unfit(error.to_string()))?
}

fn hand_over_now(executable: &Path, commission: &Commission) -> Result<UnixStream> {
    let failed = Error::io("start a keeper");
    let spawned = spawn(executable).map_err(failed)?;
    let mut text =
        serde_json::to_vec(commission).map_err(|error| Error::Unfit(error.to_string()))?;
    text.push(b'\n');
    let (mut line, mut first) = spawned;
    let told = line.write_all(&text);
    // It exits as soon as the guard is on its own.
    let _ = first.wait();
    told.map_err(Error::io("tell the keeper what to run"))?;
    Ok(line)
}

fn spawn(executable: &Path) -> std::io::Result<(UnixStream, std::process::Child)> {
    let (ours, theirs) = UnixStream::pair()?;
    let first = Command::new(executable)
        .arg0(commission::NAME)
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .spawn()?;
    Ok((ours, first))
}
