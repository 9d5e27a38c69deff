//! Compiled twice: as a program that links fullstop, and as a library that a program in another
//! language loads.

use fullstop::{Result, Runs, blocking};

#[allow(dead_code, reason = "the library has none")]
fn main() {
    println!("main has run");
    start_and_stop();
}

/// Writes what becomes of a run: the word for its proof, or the code of an error.
// SAFETY: neither fullstop nor the program that loads this has another function of this name.
#[unsafe(no_mangle)]
pub extern "C" fn start_and_stop() {
    let done = Runs::open().and_then(|runs| run(&runs));
    println!("start: {}", done.unwrap_or_else(|error| error.code().to_owned()));
}

fn run(runs: &Runs) -> Result<String> {
    let command = runs.command("/bin/sh").args(["-c", "/usr/bin/setsid sleep 60 & exec sleep 60"]);
    let run = blocking::spawn(command)?;
    let report = blocking::wait(run.stop())?;
    Ok(if report.proof.is_some() { "proven" } else { "unproven" }.to_owned())
}
