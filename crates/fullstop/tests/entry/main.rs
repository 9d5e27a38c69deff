//! A program that links the library is its own keeper, without a call in its `main`: this one
//! is a test harness, which has threads. Who is not meant to be a keeper runs its own `main`.

mod program;

use fullstop::blocking;
use fullstop_protocol::{Launch, Output, PROTOCOL_VERSION, Placement, Spec, Start, Stdin, Text};
use program::{MAIN, Program, Scratch, start_and_stop};
use serde_json::{Value, json};
use std::error::Error;
use std::fs::{self, Permissions};
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Stdio;

type Tried = Result<(), Box<dyn Error>>;

/// The name under which a program is executed to be a keeper.
const GUARD: &str = "fullstop-guard";
const NOBODY: u32 = 65534;
const OTHER_VERSION: &str = "unsupported-protocol";
/// fullstop itself has failed.
const FAILED: i32 = 125;

/// Runs are started and stopped in several tests at once.
mod parallel {
    use super::{Scratch, Tried, start_and_stop};

    fn several(name: &str) -> Tried {
        let scratch = Scratch::new(name)?;
        (0..3).try_for_each(|_| start_and_stop(&scratch.runs()?))
    }

    #[test]
    fn one() -> Tried {
        several("parallel-1")
    }

    #[test]
    fn two() -> Tried {
        several("parallel-2")
    }

    #[test]
    fn three() -> Tried {
        several("parallel-3")
    }

    #[test]
    fn four() -> Tried {
        several("parallel-4")
    }
}

#[test]
fn a_program_that_was_replaced_keeps_its_runs() -> Tried {
    let scratch = Scratch::new("replaced")?;
    let copy = scratch.copy_of_this_program()?;
    let mut program = Program::of(&copy, "starts_when_told").command(&scratch);
    let mut running = program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let other = scratch.path().join("other");
    fs::write(&other, "#!/bin/false\n")?;
    fs::set_permissions(&other, Permissions::from_mode(0o755))?;
    fs::rename(&other, &copy)?;
    running.stdin.take().ok_or("no stdin")?.write_all(b"go\n")?;
    let done = running.wait_with_output()?;
    assert!(done.status.success(), "{done:?}");
    Ok(())
}

#[test]
fn a_program_that_was_removed_keeps_its_runs() -> Tried {
    let scratch = Scratch::new("removed")?;
    let copy = scratch.copy_of_this_program()?;
    let mut program = Program::of(&copy, "starts_when_told").command(&scratch);
    let mut running = program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    fs::remove_file(&copy)?;
    running.stdin.take().ok_or("no stdin")?.write_all(b"go\n")?;
    let done = running.wait_with_output()?;
    assert!(done.status.success(), "{done:?}");
    Ok(())
}

#[test]
fn a_name_alone_makes_no_keeper() -> Tried {
    let scratch = Scratch::new("name-alone")?;
    let mut program = Program::own("writes_that_main_has_run")?.command(&scratch);
    let done = program.arg0(GUARD).stdin(Stdio::null()).output()?;
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success() && said.contains(MAIN), "{done:?}");
    Ok(())
}

#[test]
fn a_socket_alone_makes_no_keeper() -> Tried {
    let scratch = Scratch::new("socket-alone")?;
    let (_ours, theirs) = UnixStream::pair()?;
    let mut program = Program::own("writes_that_main_has_run")?.command(&scratch);
    program.arg0(format!("{GUARD}s")).stdin(Stdio::from(OwnedFd::from(theirs)));
    let done = program.output()?;
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success() && said.contains(MAIN), "{done:?}");
    Ok(())
}

/// The counterpart of the two above: with both, it is one.
#[test]
fn a_program_with_name_and_socket_is_a_keeper_and_nothing_else() -> Tried {
    let scratch = Scratch::new("both")?;
    let (mut ours, theirs) = UnixStream::pair()?;
    let mut program = Program::own("writes_that_main_has_run")?.command(&scratch);
    program.arg0(GUARD).stdin(Stdio::from(OwnedFd::from(theirs)));
    ours.write_all(b"{}\n")?;
    let done = program.output()?;
    assert_eq!((done.status.code(), done.stdout), (Some(FAILED), Vec::new()));
    Ok(())
}

/// Whoever may execute it could have anything run with its rights.
#[test]
fn a_setuid_program_is_no_keeper_with_rights_that_its_caller_has_not() -> Tried {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can make a setuid program of root");
        return Ok(());
    }
    let scratch = Scratch::new("setuid")?;
    let copy = scratch.copy_of_this_program()?;
    fs::set_permissions(&copy, Permissions::from_mode(0o4755))?;
    let (mut ours, theirs) = UnixStream::pair()?;
    let mut program = Program::of(&copy, "writes_that_main_has_run").command(&scratch);
    program.arg0(GUARD).uid(NOBODY).gid(NOBODY).stdin(Stdio::from(OwnedFd::from(theirs)));
    let evidence = scratch.path().join("evidence");
    ours.write_all(&order_to_touch(&evidence, &scratch)?)?;
    let done = program.output()?;
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    if said.contains(&format!("{MAIN}, for {NOBODY}")) {
        println!("skipped: no setuid program is obeyed in {}", scratch.path().display());
        return Ok(());
    }
    assert!(said.contains(&format!("{MAIN}, for 0")), "{done:?}");
    // A keeper would have answered by now, and would have closed its end.
    assert!(!evidence.exists(), "root has run what nobody has asked for");

    // Nor is it executed anew as one: it would run its `main` again, and again. And its caller
    // does not choose what it executes.
    symlink(&copy, scratch.path().join("fullstop"))?;
    let mut program = Program::of(&copy, "writes_what_a_start_comes_to").command(&scratch);
    program.env("PATH", scratch.path()).uid(NOBODY).gid(NOBODY).stdin(Stdio::null());
    let done = program.output()?;
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(said.contains("start: no-keeper\n"), "{done:?}");
    Ok(())
}

#[test]
fn a_would_be_keeper_with_threads_says_so_and_ends() -> Tried {
    let scratch = Scratch::new("threads")?;
    let mut program = Program::own("is_initialised_late")?.command(&scratch);
    let done = program.arg0(GUARD).stdin(Stdio::null()).output()?;
    let said = String::from_utf8(done.stderr)?;
    assert_eq!(done.status.code(), Some(FAILED), "{said}");
    assert!(said.starts_with("fullstop: ") && said.lines().count() == 1, "{said:?}");
    assert!(!String::from_utf8_lossy(&done.stdout).contains(MAIN), "its main goes on");
    Ok(())
}

#[test]
fn a_keeper_refuses_a_host_of_another_version() -> Tried {
    let scratch = Scratch::new("other-host")?;
    let (mut ours, theirs) = UnixStream::pair()?;
    let mut program = Program::own("writes_that_main_has_run")?.command(&scratch);
    program.arg0(GUARD).stdin(Stdio::from(OwnedFd::from(theirs)));
    let evidence = scratch.path().join("evidence");
    let mut start: Value = serde_json::from_slice(&order_to_touch(&evidence, &scratch)?)?;
    start["protocol"] = json!(PROTOCOL_VERSION + 1);
    writeln!(ours, "{start}")?;
    let done = program.output()?;
    drop(program);
    let reply: Value = serde_json::from_reader(ours)?;
    assert_eq!((&reply["type"], &reply["code"]), (&json!("failed"), &json!(OTHER_VERSION)));
    assert_eq!(done.status.code(), Some(FAILED));
    assert!(!evidence.exists(), "it has started what it may have misread");
    Ok(())
}

#[test]
fn a_host_is_told_by_a_code_that_its_keeper_is_of_another_version() -> Tried {
    let scratch = Scratch::new("other-keeper")?;
    let script = scratch.path().join("script");
    let answer = json!({
        "id": 0, "type": "failed", "code": OTHER_VERSION, "status": FAILED, "message": "no",
    });
    fs::write(&script, format!("#!/bin/sh\nread start\necho '{answer}' >&0\n"))?;
    let keeper = scratch.copy(&script, "fullstop")?;
    let runs = scratch.runs()?.with_keeper(&keeper);
    let refused = blocking::spawn(runs.command("true")).map(|_| ()).unwrap_err();
    assert_eq!(refused.code(), OTHER_VERSION, "{refused}");
    Ok(())
}

/// Else the handle would stop a run that this program has not begun.
#[test]
fn a_keeper_that_tells_of_another_run_is_not_believed() -> Tried {
    let scratch = Scratch::new("other-run")?;
    let script = scratch.path().join("script");
    let answer = json!({
        "id": 0, "type": "accepted", "run": "0tgnawd7qf52c", "generation": 1,
        "state": "running", "at": "2027-01-15T08:00:00.000Z",
    });
    fs::write(&script, format!("#!/bin/sh\nread start\necho '{answer}' >&0\n"))?;
    let keeper = scratch.copy(&script, "fullstop")?;
    let runs = scratch.runs()?.with_keeper(&keeper);
    let refused = blocking::spawn(runs.command("true")).map(|_| ()).unwrap_err();
    assert!(matches!(refused, fullstop::Error::NotStarted(_)), "{refused}");
    Ok(())
}

/// A start of `touch`, as a host writes it.
fn order_to_touch(file: &Path, scratch: &Scratch) -> Result<Vec<u8>, Box<dyn Error>> {
    let argv = vec!["/usr/bin/touch".into(), Text(file.as_os_str().to_owned())];
    let spec = Spec { stdin: Stdin::Null, output: Output::Log, ..Spec::new(argv) };
    let state = Some(Text(scratch.path().join("state").into_os_string()));
    let id = "0tgnawd7qf52c".parse().map_err(|_| "no id")?;
    let launch = Launch { state_dir: state, ..Launch::new(id, Placement::Background) };
    let mut line = serde_json::to_vec(&Start::new(spec, launch))?;
    line.push(b'\n');
    Ok(line)
}
