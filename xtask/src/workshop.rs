//! Where bench and soak work: their programs, their directories, their closed world.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fullstop_bench::disk;

use crate::Outcome;

/// Where records go if the build directory is only memory.
const OTHER_DISK: &str = "/var/tmp";

pub fn program(programs: &HashMap<String, PathBuf>, name: &str) -> Outcome<PathBuf> {
    let program =
        programs.get(name).ok_or_else(|| format!("cargo built no program called {name}"))?;
    // Processes are told apart by the program they run, which the kernel names
    // without symbolic links.
    Ok(program.canonicalize()?)
}

/// A copy, as an installed program is, and as its peers are: a linker leaves its file in
/// scattered pages, which cost every start a tenth.
pub fn installed(program: &Path, workshop: &Path) -> Outcome<PathBuf> {
    let copy = fresh_dir(&workshop.join("installed"))?.join("fullstop");
    std::fs::copy(program, &copy)?;
    Ok(copy.canonicalize()?)
}

/// A directory for FIFOs and jobs, emptied of what an interrupted bench left.
pub fn fresh_dir(dir: &Path) -> Outcome<PathBuf> {
    if dir.exists() {
        std::fs::remove_dir_all(dir)?;
    }
    std::fs::create_dir_all(dir)?;
    Ok(dir.canonicalize()?)
}

/// A directory for records, on a disk if there is one.
pub fn state_dir(scratch: &Path) -> Outcome<PathBuf> {
    if !disk::is_memory(scratch) || disk::is_memory(Path::new(OTHER_DISK)) {
        return fresh_dir(&scratch.join("state"));
    }
    let dir = Path::new(OTHER_DISK).join(format!("fullstop-bench-{}", std::process::id()));
    std::fs::create_dir(&dir)?;
    Ok(dir.canonicalize()?)
}

/// Runs a job of the measuring program, in a cgroup and a pid namespace that are
/// thrown away.
pub fn enclosed(measurer: &Path, name: &str, files: &[&Path]) -> Outcome<()> {
    // Its stdin is its lifeline: it ends when we do.
    let mut child =
        Command::new(measurer).args(["enclose", name]).args(files).stdin(Stdio::piped()).spawn()?;
    let lifeline = child.stdin.take();
    let status = child.wait()?;
    drop(lifeline);
    if !status.success() {
        return Err(format!("measuring ended with {status}").into());
    }
    Ok(())
}
