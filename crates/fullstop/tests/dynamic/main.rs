//! Programs that are linked dynamically, as most that embed the library are: they are their own
//! keepers. A library inside another program is none, and finds an installed one.
//!
//! This workspace links all it makes statically, so the library is compiled once more.

mod workshop;

use std::error::Error;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio, id};
use std::time::{Duration, Instant};
use workshop::Made;

type Tried = Result<(), Box<dyn Error>>;

const GUARD: &str = "fullstop-guard";
/// Longer than anything that is meant to happen at once takes on a busy machine.
const SOON: Duration = Duration::from_mins(1);
const MAIN: &str = "main has run\n";

#[test]
fn a_dynamic_program_is_its_own_keeper() -> Tried {
    let scratch = Scratch::new("own")?;
    let done = scratch.command(&Made::get()?.program).output()?;
    assert_eq!(said(&done), format!("{MAIN}start: proven\n"), "{done:?}");
    Ok(())
}

/// Even where that program is called as a keeper is.
#[test]
fn a_library_leaves_the_program_alone_that_loads_it() -> Tried {
    let scratch = Scratch::new("alone")?;
    let made = Made::get()?;
    let (ours, theirs) = UnixStream::pair()?;
    // A keeper would give up.
    drop(ours);
    let mut loader = scratch.command(&made.loader);
    loader.env("EMBEDDER", &made.library).arg0(GUARD).stdin(Stdio::from(OwnedFd::from(theirs)));
    let done = loader.output()?;
    assert_eq!(said(&done), format!("{MAIN}start: no-keeper\n"), "{done:?}");
    Ok(())
}

#[test]
fn a_library_has_its_runs_kept_by_an_installed_fullstop() -> Tried {
    let scratch = Scratch::new("installed")?;
    let made = Made::get()?;
    // Whatever links the library can keep runs.
    symlink(&made.program, scratch.bin().join("fullstop"))?;
    let done = scratch.command(&made.loader).env("EMBEDDER", &made.library).output()?;
    assert_eq!(said(&done), format!("{MAIN}start: proven\n"), "{done:?}");
    Ok(())
}

/// The threads that carry out orders and read files are not in the copy, whatever is written
/// down of them there.
#[test]
fn a_copy_of_a_program_that_has_forked_gives_orders_of_its_own() -> Tried {
    let scratch = Scratch::new("copy")?;
    let made = Made::get()?;
    symlink(&made.program, scratch.bin().join("fullstop"))?;
    let mut loader = scratch.command(&made.loader);
    let done = loader.env("EMBEDDER", &made.library).env("FORKS", "yes").output()?;
    assert_eq!(said(&done), format!("{MAIN}start: proven\nstart: proven\n"), "{done:?}");
    Ok(())
}

/// `/proc/self/exe` is the dynamic linker there, which knows nothing of keepers.
#[test]
fn a_program_that_the_dynamic_linker_was_told_to_load_is_no_keeper() -> Tried {
    let linkers = ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"];
    let Some(linker) = linkers.into_iter().map(Path::new).find(|linker| linker.exists()) else {
        println!("skipped: this machine's dynamic linker is not known by name");
        return Ok(());
    };
    let scratch = Scratch::new("linker")?;
    let done = scratch.command(linker).arg(&Made::get()?.program).output()?;
    assert_eq!(said(&done), format!("{MAIN}start: no-keeper\n"), "{done:?}");
    Ok(())
}

#[test]
fn a_program_with_a_thread_before_main_does_not_run_again_as_a_keeper() -> Tried {
    let scratch = Scratch::new("thread")?;
    let made = Made::get()?;
    let done = scratch.command(&made.program).env("LD_PRELOAD", &made.early_thread).output()?;
    assert_eq!(said(&done), format!("{MAIN}start: no-keeper\n"), "{done:?}");
    let complaint = String::from_utf8_lossy(&done.stderr);
    assert!(complaint.starts_with("fullstop: ") && complaint.lines().count() == 1, "{done:?}");
    Ok(())
}

fn said(done: &Output) -> String {
    String::from_utf8_lossy(&done.stdout).into_owned()
}

/// A state directory, and a PATH in which nothing is installed yet.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Result<Scratch, Box<dyn Error>> {
        let scratch =
            Scratch(std::env::temp_dir().join(format!("fullstop-dynamic-{name}-{}", id())));
        // Another pid namespace may have left one of the same name.
        let _ = fs::remove_dir_all(&scratch.0);
        fs::create_dir_all(scratch.bin())?;
        Ok(scratch)
    }

    fn bin(&self) -> PathBuf {
        self.0.join("bin")
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env("FULLSTOP_DIR", self.0.join("state")).env("PATH", self.bin());
        command.stdin(Stdio::null());
        command
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let until = Instant::now() + SOON;
        // A keeper whose run has ended may still be tidying.
        while fs::remove_dir_all(&self.0).is_err() && self.0.exists() && Instant::now() < until {}
    }
}
