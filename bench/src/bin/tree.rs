//! `bench-tree FIFO SIZE [CGROUP]`: a quiet tree of SIZE processes, one leader
//! and its children, that says `ready` into FIFO once every one of them runs.
//!
//! With CGROUP, the leader enters that cgroup before it forks: this is how the
//! raw floor gets the same tree into a cgroup without any supervisor.
//! Every process ends itself after two minutes.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const LIFE_SECONDS: u32 = 120;
const MOST: u32 = 2000;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    let fifo = args.next().map(PathBuf::from);
    let size = args.next().and_then(|s| s.to_str()?.parse::<u32>().ok());
    let (Some(fifo), Some(size @ 1..=MOST)) = (fifo, size) else {
        eprintln!("usage: bench-tree FIFO SIZE [CGROUP], SIZE at most {MOST}");
        return ExitCode::from(2);
    };
    let cgroup = args.next().map(PathBuf::from);
    if let Err(error) = grow(&fifo, size, cgroup.as_deref()) {
        eprintln!("bench-tree: {error}");
        return ExitCode::FAILURE;
    }
    wait_for_the_end();
}

fn grow(fifo: &Path, size: u32, cgroup: Option<&Path>) -> std::io::Result<()> {
    mortal();
    if let Some(cgroup) = cgroup {
        std::fs::write(cgroup.join("cgroup.procs"), "0")?;
    }
    // Each child sends one byte when it runs; a child that was forked but never
    // scheduled would be cheaper to kill than a real one.
    let (mut all_run, mut running) = std::io::pipe()?;
    for _ in 1..size {
        // SAFETY: this process has one thread.
        match unsafe { libc::fork() } {
            -1 => return Err(std::io::Error::last_os_error()),
            0 => {
                mortal();
                let _ = running.write_all(b".");
                drop(running);
                drop(all_run);
                wait_for_the_end();
            }
            _ => {}
        }
    }
    drop(running);
    all_run.read_to_end(&mut Vec::with_capacity(size as usize))?;
    OpenOptions::new().write(true).open(fifo)?.write_all(b"ready\n")
}

/// Alarms are not inherited over a fork, so every process sets its own.
fn mortal() {
    // SAFETY: alarm has no preconditions.
    unsafe { libc::alarm(LIFE_SECONDS) };
}

fn wait_for_the_end() -> ! {
    loop {
        // SAFETY: pause has no preconditions.
        unsafe { libc::pause() };
    }
}
