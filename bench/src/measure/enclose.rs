//! A closed world for bench and soak: whatever goes wrong in it can reach nothing
//! outside, and ends with it.

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use rustix::io::Errno;
use rustix::process::{WaitOptions, wait};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Outcome, cgroup};

/// The words that put a command into a pid namespace of its own, which dies
/// with them.
const NAMESPACE: [&str; 5] = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"];

/// Makes the cgroup and the namespace, runs a job of ours inside, and cleans up.
pub fn enclose(job: &[&str]) -> Outcome<ExitCode> {
    // Without a terminal, so that Ctrl-C ends the caller, whose end closes our
    // stdin, which ends the namespace in an orderly way. It fails harmlessly if
    // we lead a session already.
    let _ = rustix::process::setsid();
    let outside = cgroup::own();
    let inside = outside.as_ref().map(|dir| {
        let inside = dir.join(format!("fullstop-bench-{}", std::process::id()));
        std::fs::create_dir(&inside).and_then(|()| cgroup::enter(&inside)).map(|()| inside)
    });
    let inside = inside.transpose()?;
    let status = in_namespace(&["init-with-lifeline"], job).status();
    if let (Some(outside), Some(inside)) = (outside, inside) {
        cgroup::enter(&outside)?;
        cgroup::remove(&inside);
    }
    Ok(if status?.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// This program's own `job`, in a new pid namespace, below an `init`.
pub fn in_namespace(init: &[&str], job: &[&str]) -> Command {
    let this = std::env::current_exe().unwrap_or_else(|_| "/proc/self/exe".into());
    let mut command = Command::new(NAMESPACE[0]);
    command.args(&NAMESPACE[1..]).arg(&this).args(init).arg(&this).args(job);
    command
}

/// One job in a pid namespace of its own, and its answer.
pub fn send<T: DeserializeOwned>(
    name: &str,
    job: &impl Serialize,
    answer: &Path,
    scratch: &Path,
) -> Outcome<T> {
    let file = scratch.join(format!("{name}.json"));
    std::fs::write(&file, serde_json::to_vec(job)?)?;
    // An answer that is here already is the answer to another question.
    let _ = std::fs::remove_file(answer);
    let output = in_namespace(&["init"], &[name, &file.display().to_string()]).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().into());
    }
    Ok(serde_json::from_slice(&std::fs::read(answer)?)?)
}

/// Process 1: starts the command, reaps whatever ends, ends with the command.
pub fn init(command: &[&str], lifeline: bool) -> Outcome<ExitCode> {
    let [program, args @ ..] = command else {
        return Err("init needs a command".into());
    };
    if lifeline {
        std::thread::spawn(|| {
            // Nobody writes; the end of the stream is the end of the caller.
            let _ = std::io::stdin().read(&mut [0]);
            std::process::exit(1);
        });
    }
    let main = Command::new(program).args(args).stdin(Stdio::null()).spawn()?;
    let main = i32::try_from(main.id())?;
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid.as_raw_pid() == main => {
                let code = std::process::ExitStatus::from_raw(status.as_raw()).code();
                return Ok(code
                    .and_then(|code| u8::try_from(code).ok())
                    .map_or(ExitCode::FAILURE, ExitCode::from));
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
