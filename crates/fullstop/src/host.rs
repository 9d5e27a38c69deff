//! Starting a keeper from any program: a plain spawn, then forks in that process.

use crate::error::{Error, Result};
use crate::line::Line;
use crate::offload::on_thread;
use crate::readable::readable;
use crate::stop::Silence;
use crate::unanswered::Unanswered;
use fullstop_cage::linux::{Mask, PinnedProcess, is_privileged};
use fullstop_keeper::{entry, name};
use fullstop_protocol::{Start, wipe};
use fullstop_store::Tag;
use rustix::fs::{Access, access};
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tokio::time::sleep;

/// The executable that is a keeper wherever it is installed.
const INSTALLED: &str = "fullstop";

/// Does nothing, and need not be called: a program that links this library becomes the keeper
/// of its runs before its `main`.
///
/// A program that was started as a keeper and has not become one becomes it here, if this is
/// called while there is one thread. With more threads the process says so and ends with
/// status 125.
///
/// ```
/// fullstop::init();
/// ```
pub fn init() {
    entry::become_keeper_if_asked();
}

/// Which executable keeps runs, where none was named: this program, or an installed `fullstop`.
///
/// Looks for files: not to be called in a poll.
pub(crate) fn default_keeper() -> Result<PathBuf> {
    if entry::is_armed() {
        // Not its path: that may have been replaced since.
        return Ok(PathBuf::from("/proc/self/exe"));
    }
    // Whoever has called a setuid program has chosen its PATH.
    let path = if is_privileged() { None } else { std::env::var_os("PATH") };
    path.and_then(|path| installed(&path)).ok_or(Error::NoKeeper)
}

/// The first that PATH names. What it names relative to the working directory may be anybody's.
fn installed(path: &OsStr) -> Option<PathBuf> {
    let places = std::env::split_paths(path).filter(|place| place.is_absolute());
    let mut files = places.map(|place| place.join(INSTALLED));
    files.find(|file| file.is_file() && access(file, Access::EXEC_OK).is_ok())
}

/// A process of the keeper executable that waits to be told what to run.
///
/// It exits as soon as the guard that it forks is on its own. If it was told nothing, it is
/// killed when this is dropped.
pub(crate) struct Recruit {
    line: Option<UnixStream>,
    /// Until it is waited for elsewhere.
    process: Option<Child>,
}

impl Recruit {
    /// Its command line tells the run, and no more; it is as long as a keeper's, which
    /// this process's child will show there.
    ///
    /// The mask is that of the thread that asked for the command, which inherits it, and not that
    /// of a thread of this library.
    pub fn spawn(executable: &Path, run: &Tag, mask: &Mask) -> Result<Recruit> {
        let spawned = || -> io::Result<Recruit> {
            let (ours, theirs) = UnixStream::pair()?;
            let process = Command::new(executable)
                .arg0(name::GUARD)
                .args([&run.to_string(), ""])
                .stdin(Stdio::from(OwnedFd::from(theirs)))
                .spawn()?;
            Ok(Recruit { line: Some(ours), process: Some(process) })
        };
        mask.during(spawned).map_err(Error::io("start a keeper"))
    }

    /// Tells it what to run, and on whose behalf. Returns the line to the keeper.
    ///
    /// A process that does not exit, though it has had the processor time, is no keeper. A process
    /// that waits for a processor is waited for.
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn an_installed_keeper_is_an_executable_in_a_place_that_does_not_move() {
        let dir = std::env::temp_dir().join(format!("fullstop-installed-{}", std::process::id()));
        let [plain, good] = ["plain", "good"].map(|name| dir.join(name));
        for (place, mode) in [(&plain, 0o644), (&good, 0o755)] {
            fs::create_dir_all(place).expect("a directory");
            fs::write(place.join(INSTALLED), "").expect("a file");
            let permissions = Permissions::from_mode(mode);
            fs::set_permissions(place.join(INSTALLED), permissions).expect("permissions");
        }
        let find = |places: &[&Path]| installed(&std::env::join_paths(places).expect("a PATH"));
        assert_eq!(find(&[&dir, &plain, &good]), Some(good.join(INSTALLED)));
        assert_eq!(find(&[&dir, &plain]), None);
        let here = std::env::current_dir().expect("a directory");
        let up = "../".repeat(here.components().count());
        let moves = Path::new(&up).join(good.strip_prefix("/").expect("it is absolute"));
        assert!(moves.join(INSTALLED).is_file() && find(&[&moves]).is_none());
        fs::remove_dir_all(&dir).expect("removed");
    }
}
