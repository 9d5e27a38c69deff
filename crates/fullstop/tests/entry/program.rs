//! This test executable as a program of another process: each ignored test here is one.

use fullstop::{Runs, blocking};
use std::error::Error;
use std::fs::{self, Permissions};
use std::io::{Write as _, stdin};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, id};

/// What a program writes that runs its own `main`.
pub const MAIN: &str = "main has run";
/// Tells a program its scratch directory.
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
        let copy = self.0.join("program");
        fs::copy(std::env::current_exe()?, &copy)?;
        fs::set_permissions(&copy, Permissions::from_mode(0o755))?;
        Ok(copy)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// One of the ignored tests below, in a process of its own.
pub struct Program {
    executable: PathBuf,
    name: &'static str,
}

impl Program {
    pub fn own(name: &'static str) -> Result<Program, Box<dyn Error>> {
        Ok(Program { executable: std::env::current_exe()?, name })
    }

    pub fn of(executable: &Path, name: &'static str) -> Program {
        Program { executable: executable.to_owned(), name }
    }

    pub fn command(&self, scratch: &Scratch) -> Command {
        let mut command = Command::new(&self.executable);
        let name = format!("program::{}", self.name);
        command.args(["--exact", &name, "--ignored", "--nocapture"]).env(SCRATCH, scratch.path());
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

fn runs() -> Result<Runs, Box<dyn Error>> {
    let scratch = std::env::var_os(SCRATCH).ok_or("this is the program of another test")?;
    Ok(Runs::at(&Path::new(&scratch).join("state"))?)
}

#[test]
#[ignore = "a program of other tests"]
fn writes_that_main_has_run() {
    println!("{MAIN}, for {}", rustix::process::geteuid().as_raw());
}

#[test]
#[ignore = "a program of other tests"]
fn writes_what_a_start_comes_to() -> Result<(), Box<dyn Error>> {
    let run = blocking::spawn(runs()?.command("true"));
    println!("start: {}", run.as_ref().map_or_else(fullstop::Error::code, |_| "ok"));
    Ok(())
}

#[test]
#[ignore = "a program of other tests"]
fn starts_when_told() -> Result<(), Box<dyn Error>> {
    stdin().read_line(&mut String::new())?;
    start_and_stop(&runs()?)
}

/// As a program whose entry was dropped by its linker: what makes it a keeper is there only
/// when it calls [`fullstop::init`], in a thread of the harness.
#[test]
#[ignore = "a program of other tests"]
fn is_initialised_late() -> Result<(), Box<dyn Error>> {
    let (mut host, keeper) = UnixStream::pair()?;
    host.write_all(b"{}\n")?;
    rustix::stdio::dup2_stdin(&keeper)?;
    fullstop::init();
    println!("{MAIN}");
    Ok(())
}
