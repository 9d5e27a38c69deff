//! This test executable as another process, in which one test plays a part.

use fullstop::{Runs, blocking};
use std::error::Error;
use std::fs::{self, Permissions};
use std::io::{Write as _, stdin};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, id};
use std::time::{Duration, Instant};

/// What a program writes that runs its own `main`.
pub const MAIN: &str = "main has run";
/// Longer than anything that is meant to happen at once takes on a busy machine.
const SOON: Duration = Duration::from_mins(1);
/// Tell a program its part and its scratch directory.
const PART: &str = "FULLSTOP_TEST_PART";
const SCRATCH: &str = "FULLSTOP_TEST_SCRATCH";

/// A directory that is gone after the test.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Result<Scratch, Box<dyn Error>> {
        // It would start programs that run all tests as well, and so on without end.
        let executed_as = std::env::args().next();
        assert_ne!(executed_as.as_deref(), Some(super::GUARD), "a keeper runs the tests again");
        let path = std::env::temp_dir().join(format!("fullstop-entry-{name}-{}", id()));
        // Another pid namespace may have left one of the same name.
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path)?;
        // Others are to execute what is in it.
        fs::set_permissions(&path, Permissions::from_mode(0o755))?;
        Ok(Scratch(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn runs(&self) -> fullstop::Result<Runs> {
        Runs::at(&self.0.join("state"))
    }

    pub fn copy_of_this_program(&self) -> Result<PathBuf, Box<dyn Error>> {
        self.copy(&std::env::current_exe()?, "program")
    }

    /// By another process: what this one has open for writing is, for a moment, open in
    /// whatever another test starts, and nobody may execute it.
    pub fn copy(&self, file: &Path, name: &str) -> Result<PathBuf, Box<dyn Error>> {
        let copy = self.0.join(name);
        let done = Command::new("cp").args([file, &copy]).status()?;
        assert!(done.success(), "cp: {done}");
        fs::set_permissions(&copy, Permissions::from_mode(0o755))?;
        Ok(copy)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let until = Instant::now() + SOON;
        // A keeper whose run has ended may still be tidying.
        while fs::remove_dir_all(&self.0).is_err() && self.0.exists() && Instant::now() < until {}
    }
}

/// A part, and the copy of this program that plays it.
pub struct Program {
    executable: PathBuf,
    part: &'static str,
}

impl Program {
    pub fn own(part: &'static str) -> Result<Program, Box<dyn Error>> {
        Ok(Program { executable: std::env::current_exe()?, part })
    }

    pub fn of(executable: &Path, part: &'static str) -> Program {
        Program { executable: executable.to_owned(), part }
    }

    pub fn command(&self, scratch: &Scratch) -> Command {
        let mut command = Command::new(&self.executable);
        let name = "program::plays_the_part_that_another_test_gives_it";
        command.args(["--exact", name, "--nocapture"]).env(PART, self.part);
        command.env(SCRATCH, scratch.path());
        command
    }
}

/// Starts a run that leaves something behind, and stops it.
pub fn start_and_stop(runs: &Runs) -> Result<(), Box<dyn Error>> {
    let command = runs.command("sh").args(["-c", "setsid sleep 60 & exec sleep 60"]);
    let run = blocking::spawn(command)?;
    let report = blocking::wait(run.stop())?;
    assert!(report.proof.is_some(), "{report:?}");
    Ok(())
}

/// Plays the part that a test has given to this process, if one has.
#[test]
fn plays_the_part_that_another_test_gives_it() -> Result<(), Box<dyn Error>> {
    let (Ok(part), Some(scratch)) = (std::env::var(PART), std::env::var_os(SCRATCH)) else {
        return Ok(());
    };
    let state = Path::new(&scratch).join("state");
    match part.as_str() {
        "writes_that_main_has_run" => {
            println!("{MAIN}, for {}", rustix::process::geteuid().as_raw());
        }
        "writes_what_a_start_comes_to" => {
            let run = blocking::spawn(Runs::at(&state)?.command("true"));
            println!("start: {}", run.as_ref().map_or_else(fullstop::Error::code, |_| "ok"));
        }
        "starts_when_told" => {
            stdin().read_line(&mut String::new())?;
            start_and_stop(&Runs::at(&state)?)?;
        }
        "is_initialised_late" => is_initialised_late()?,
        other => return Err(format!("there is no part {other}").into()),
    }
    Ok(())
}

/// As a program whose entry was dropped by its linker: what makes it a keeper is there only
/// when it calls [`fullstop::init`], in a thread of the harness.
fn is_initialised_late() -> Result<(), Box<dyn Error>> {
    let (mut host, keeper) = UnixStream::pair()?;
    host.write_all(b"{}\n")?;
    rustix::stdio::dup2_stdin(&keeper)?;
    fullstop::init();
    println!("{MAIN}");
    Ok(())
}
