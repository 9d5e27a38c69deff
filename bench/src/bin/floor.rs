//! `bench-floor CGROUP CMD…`: the least a stopping program can be. It starts CMD,
//! which enters CGROUP on its own; on SIGTERM it writes `cgroup.kill`, waits for
//! `populated 0` and exits. It guards nothing, reaps nothing and proves nothing.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    let (Some(cgroup), Some(program)) = (args.next().map(PathBuf::from), args.next()) else {
        eprintln!("usage: bench-floor CGROUP CMD…");
        return ExitCode::from(2);
    };
    match run(&cgroup, Command::new(program).args(args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-floor: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(cgroup: &Path, command: &mut Command) -> io::Result<()> {
    // Blocked before there is anybody to wait for; std unblocks it in the child.
    let term = blocked_term();
    let mut leader = command.spawn()?;
    wait_for(&term)?;
    File::options().write(true).open(cgroup.join("cgroup.kill"))?.write_at(b"1", 0)?;
    // Asleep while most of them die; a spin would take a processor from them.
    leader.wait()?;
    let events = File::open(cgroup.join("cgroup.events"))?;
    while populated(&events)? {
        std::thread::sleep(Duration::from_micros(1));
    }
    Ok(())
}

fn populated(events: &File) -> io::Result<bool> {
    let mut buffer = [0; 128];
    let length = events.read_at(&mut buffer, 0)?;
    Ok(!buffer[..length].split(|&byte| byte == b'\n').any(|line| line == b"populated 0"))
}

fn blocked_term() -> libc::sigset_t {
    // SAFETY: a zeroed set is made valid by sigemptyset before it is used; this
    // process has one thread.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGTERM);
        libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
        set
    }
}

fn wait_for(signals: &libc::sigset_t) -> io::Result<()> {
    let mut received = 0;
    // SAFETY: both pointers are to valid values for the time of the call.
    let failed = unsafe { libc::sigwait(signals, &raw mut received) };
    if failed == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(failed)) }
}
