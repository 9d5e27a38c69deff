//! Births as the keeper does them, without a cage around.

use super::super::program::candidates;
use super::super::signals::{hold, set_ignored};
use super::super::testing::{alone, is_alone, is_ready, read_all, terminal};
use super::super::wait::{Change, Waited, wait_for};
use super::*;
use fullstop_core::words::Exit;
use rustix::io::{FdFlags, fcntl_setfd};
use std::ffi::CString;
use std::fs;
use std::io::Write;
use std::os::fd::FromRawFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

fn shell(script: &str) -> Command {
    let text = |text: &str| CString::new(text).expect("no zero inside");
    Command {
        program: "sh".into(),
        candidates: vec![text("/bin/sh")],
        argv: ["sh", "-c", script].map(text).into(),
        env: vec![text("PATH=/usr/bin:/bin")],
        cwd: None,
        own_session: true,
        stdin: Source::Inherit,
        stdout: None,
        stderr: None,
        terminal: None,
    }
}

fn born(command: Command, mask: Mask) -> Birth {
    bear(command, &mask, None, false).expect("a leader").0
}

/// How it became the command, and how that ended.
fn ended(birth: &Birth) -> (Result<(), String>, Exit) {
    if !is_ready(birth.news()) {
        let _ = birth.leader.send(Signal::KILL);
        panic!("it never executed anything");
    }
    let outcome = birth.outcome().expect("news").map_err(|error| error.to_string());
    assert!(is_ready(birth.leader.pidfd().expect("a pidfd")), "it never ended");
    match wait_for(birth.leader.pid()) {
        Waited::Changed { change: Change::Exited(exit), .. } => (outcome, exit),
        other => panic!("{other:?}"),
    }
}

fn pipe() -> (OwnedFd, OwnedFd) {
    pipe_with(PipeFlags::CLOEXEC).expect("a pipe")
}

/// A place of this test's own.
fn scratch(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("fullstop-{name}-{}", std::process::id()));
    fs::create_dir(&path).expect("a directory");
    path
}

/// What /proc calls it.
fn link(fd: &OwnedFd) -> String {
    let link = fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).expect("a link");
    link.into_os_string().into_string().expect("text")
}

/// For a shell: how often it has that open.
fn count_of(link: &str) -> String {
    format!("ls -l /proc/$$/fd | grep -cF '{link}'")
}

fn file(path: &std::path::Path) -> Source {
    Source::File(CString::new(path.to_str().expect("text")).expect("no zero inside"))
}

#[test]
fn stdout_and_stderr_go_apart_and_reach_their_ends() {
    let ((out, to_out), (err, to_err)) = (pipe(), pipe());
    // One that exec would not close must not come along under a second number.
    fcntl_setfd(&to_out, FdFlags::empty()).expect("flags");
    let script = format!("echo told; echo warned >&2; {}", count_of(&link(&to_out)));
    let command = Command { stdout: Some(to_out), stderr: Some(to_err), ..shell(&script) };
    let birth = born(command, Mask::empty());
    assert_eq!(read_all(out), "told\n1\n");
    assert_eq!(read_all(err), "warned\n");
    assert_eq!(ended(&birth), (Ok(()), Exit::Code(0)));
}

#[test]
fn stdin_from_a_file_and_from_a_descriptor() {
    let scratch = scratch("stdin");
    let path = scratch.join("asked");
    fs::write(&path, "from a file").expect("a file");
    let (asked, mut asker) = UnixStream::pair().expect("a pair");
    asker.write_all(b"from a descriptor").expect("room");
    drop(asker);
    for stdin in [file(&path), Source::Descriptor(asked.into())] {
        let expected = if matches!(stdin, Source::File(_)) { "file" } else { "descriptor" };
        let (out, to_out) = pipe();
        let cwd = Some(c"/".to_owned());
        let birth =
            born(Command { stdin, cwd, stdout: Some(to_out), ..shell("cat") }, Mask::empty());
        assert_eq!(read_all(out), format!("from a {expected}"));
        assert_eq!(ended(&birth), (Ok(()), Exit::Code(0)));
    }
    fs::remove_dir_all(scratch).expect("removed");
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let stdin = Source::File(c"/no/such/file".to_owned());
    let birth = born(Command { stdin, ..shell("true") }, Mask::empty());
    assert!(is_ready(birth.news()));
    let error = birth.outcome().expect("news").expect_err("no such file");
    let said = "cannot read stdin from /no/such/file: no such file or directory";
    assert_eq!((error.to_string().as_str(), error.status()), (said, 125));
    assert!(is_ready(birth.leader.pidfd().expect("a pidfd")));
    assert!(wait_for(birth.leader.pid()).is_gone());
}

/// Nobody ever writes into it. The keeper goes on, and the leader can be stopped,
/// though its keeper holds that signal back.
#[test]
fn a_fifo_without_a_writer_holds_up_nobody() {
    let scratch = scratch("fifo");
    let path = scratch.join("fifo");
    let name = CString::new(path.to_str().expect("text")).expect("no zero inside");
    // SAFETY: the name ends with a zero.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    let before = hold(&[Signal::TERM]);
    let birth = born(Command { stdin: file(&path), ..shell("true") }, before);
    before.restore();
    assert!(birth.outcome().is_none());
    birth.leader.send(Signal::TERM).expect("alive");
    let (_, exit) = ended(&birth);
    assert_eq!(exit, Exit::Signal(Signal::TERM));
    fs::remove_dir_all(scratch).expect("removed");
}

#[test]
fn a_terminal_of_its_own() {
    let (master, slave) = terminal();
    let name = link(&slave);
    let script = format!(": </dev/tty && tty && {}", count_of(&name));
    let birth = born(Command { terminal: Some(slave), ..shell(&script) }, Mask::empty());
    assert_eq!(read_all(master), format!("{name}\r\n3\r\n"));
    assert_eq!(ended(&birth), (Ok(()), Exit::Code(0)));
}

/// Asked without a shell, for some have a mind of their own about signals.
#[test]
fn a_new_terminal_begins_with_signals_as_they_are_by_default() {
    let (master, slave) = terminal();
    let mut command = Command { terminal: Some(slave), ..shell("") };
    command.candidates = candidates("grep".as_ref(), Some("/usr/bin:/bin".as_ref()));
    command.argv = [c"grep", c"-E", c"SigBlk|SigIgn", c"/proc/self/status"].map(Into::into).into();
    let before = hold(&[Signal::TERM]);
    let blocked = hold(&[]);
    set_ignored(Signal::INT, true);
    let birth = born(command, blocked);
    before.restore();
    let shown = read_all(master);
    set_ignored(Signal::INT, false);
    assert_eq!(ended(&birth), (Ok(()), Exit::Code(0)), "{shown}");
    let sets: Vec<u64> = shown
        .split_ascii_whitespace()
        .filter_map(|word| u64::from_str_radix(word, 16).ok())
        .collect();
    let [blocked, ignored] = sets[..] else { panic!("{shown}") };
    assert_eq!((blocked, ignored & 1 << (Signal::INT.number() - 1)), (0, 0));
}

#[test]
fn a_terminal_is_for_those_with_a_session() {
    let (_master, slave) = terminal();
    let command = Command { terminal: Some(slave), own_session: false, ..shell("true") };
    let (outcome, _) = ended(&born(command, Mask::empty()));
    let said = "cannot make the terminal its own: operation not permitted";
    assert_eq!(outcome, Err(said.to_owned()));
}

/// Whoever was started with 0 and 2 closed is given descriptors with these numbers.
#[test]
fn descriptors_may_have_each_others_numbers() {
    if is_alone() {
        // SAFETY: in this process nobody else uses them.
        let [zero, two] = [0, 2].map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
        let stdin = Source::Descriptor(two);
        let birth = born(Command { stdin, stderr: Some(zero), ..shell("cat >&2") }, Mask::empty());
        assert_eq!(ended(&birth), (Ok(()), Exit::Code(0)));
        return;
    }
    let ((given, mut asker), (taken, told)) =
        (UnixStream::pair().expect("a pair"), UnixStream::pair().expect("a pair"));
    asker.write_all(b"crosswise").expect("room");
    drop(asker);
    let status = alone("linux::birth::tests::descriptors_may_have_each_others_numbers")
        .stdin(OwnedFd::from(taken))
        .stderr(OwnedFd::from(given))
        .stdout(std::process::Stdio::null())
        .status();
    assert!(status.expect("a process").success());
    assert_eq!(read_all(told), "crosswise");
}
