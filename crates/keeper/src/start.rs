//! A start that another program asks for: what becomes of the process that it executes.
//!
//! The host starts this program anew (a large, threaded host must not fork) with a
//! socket for stdin, and writes one line into it: what is to be run. The first
//! process forks the guard and exits, so that the host has no child to wait for; the
//! socket stays as the line between host and keeper.

use crate::assignment::{Assignment, Verbosity};
use crate::ending::FAILED;
use crate::front::{HEAR_SIGNALS, WATCH_HOST, heard_signals};
use crate::guard::{Post, guard};
use crate::name;
use crate::sink::Sink;
use fullstop_cage::linux::{
    Fork, Signals, close_all_but, fork, hold, leave, null_over, peer, set_process_name, shield,
    watch_process,
};
use fullstop_cage::{cannot, plain};
use fullstop_core::signal::Signal;
use fullstop_protocol::{
    Failure, FailureCode, HostPolicy, Placement, Reply, ReplyKind, Spec, Start, Stdin, Text, wipe,
};
use rustix::process::Pid;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Carries out the start that the host writes. Never returns.
pub fn carry_out() -> ! {
    // It was executed by another name (`/proc/self/exe`), under which `ps` would show it.
    set_process_name(name::GUARD);
    let host = take_line();
    match read(&host).and_then(|start| begin(&host, start).map_err(failed)) {
        Ok(()) => leave(0),
        Err(failure) => fail(&host, failure),
    }
}

/// Refuses a start, to the host and on stderr, since this process has threads. Never
/// returns: its program must not run again in the place of a keeper.
pub fn refuse_with_threads() -> ! {
    let why = "a process that has threads cannot become the keeper of a run; an installed fullstop \
               can be named as the keeper";
    let _ = writeln!(std::io::stderr(), "fullstop: {why}");
    let host = take_line();
    // What it wants is heard, so that it hears why not.
    let _ = read(&host);
    fail(&host, Failure::with_code(FailureCode::NoKeeper, why))
}

/// The line to the host, which is stdin.
fn take_line() -> UnixStream {
    let Ok(host) = std::io::stdin().as_fd().try_clone_to_owned() else { leave(FAILED.into()) };
    null_over(&[0]);
    UnixStream::from(host)
}

fn fail(mut host: &UnixStream, failure: Failure) -> ! {
    let kind = ReplyKind::Failed(failure);
    let line = serde_json::to_vec(&Reply { id: 0, kind }).unwrap_or_default();
    let _ = host.write_all(&[line.as_slice(), b"\n"].concat());
    leave(FAILED.into())
}

fn failed(why: String) -> Failure {
    Failure::with_code(FailureCode::Failed, why)
}

/// Boxed: what is large stays off the stack on which guard and keeper live.
#[inline(never)]
fn read(host: &UnixStream) -> Result<Box<Start>, Failure> {
    let mut line = Vec::new();
    let start = read_line(host, &mut line).map_err(failed).and_then(|()| {
        let start = Start::from_json(&line)?;
        start.check()?;
        Ok(Box::new(start))
    });
    // There may be secrets in it, and a forked process inherits all of our memory.
    wipe(&mut line);
    start
}

fn read_line(mut host: &UnixStream, line: &mut Vec<u8>) -> Result<(), String> {
    let mut length = 0;
    while length == 0 || line[length - 1] != b'\n' {
        if length == line.len() {
            // What grows by itself leaves a copy behind.
            let mut longer = vec![0; (2 * length).max(16 * 1024)];
            longer[..length].copy_from_slice(line);
            wipe(&mut std::mem::replace(line, longer));
        }
        match host.read(&mut line[length..]) {
            Ok(0) => return Err("the host hung up before it said what to run".to_owned()),
            Ok(more) => length += more,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(cannot("hear the host")(error)),
        }
    }
    line.truncate(length);
    // Behind the start comes nothing but an order to stop what has not begun.
    let taken_back = line[..length - 1].contains(&b'\n');
    if taken_back { Err("the host has taken it back".to_owned()) } else { Ok(()) }
}

/// Returns in the process that was started; the guard is its child.
fn begin(host: &UnixStream, start: Box<Start>) -> Result<(), String> {
    let line: OwnedFd = host.try_clone().map_err(cannot("hold the line to the host"))?.into();
    let mut assigned = assignment(*start)?;
    if assigned.launch.placement == Placement::Background {
        // A script's lock is not to be held by what it leaves in the background.
        let ours = [host.as_raw_fd(), line.as_raw_fd()].into_iter();
        let report = assigned.report.as_ref().map(Sink::descriptor);
        let kept = kept_descriptors(&assigned.spec);
        close_all_but(&ours.chain(report).chain(kept).collect::<Vec<_>>());
    }
    match fork(Signal::CHLD).map_err(cannot("fork the guard"))? {
        Fork::Parent(_) => return Ok(()),
        Fork::Child => {}
    }
    let _ = rustix::process::setsid();
    let heard = heard_signals();
    let mask = hold(&heard);
    shield();
    let signals = Signals::of(&heard).map_err(cannot(HEAR_SIGNALS))?;
    let hosts = match assigned.spec.on_host_exit {
        Some(HostPolicy::Ignore) => Vec::new(),
        _ if assigned.launch.host.is_none() => Vec::new(),
        // A fork of the host may hold the line open.
        _ => match peer(&line).and_then(|host| Pid::from_raw(host.pid)) {
            Some(host) => watch_process(host).map_err(cannot(WATCH_HOST))?.into_iter().collect(),
            None => Vec::new(),
        },
    };
    let post = Post { mask, signals, terminal: None, hosts, host: Some(line) };
    guard(&mut assigned, post).map(|_| ())
}

/// Those that are to be kept, and the one that the command's stdin is opened by: a shell
/// says `/dev/fd/63` for `<(…)`.
fn kept_descriptors(spec: &Spec) -> Vec<RawFd> {
    let mut kept = spec.keep_fds.clone();
    if let Stdin::File(path) = &spec.stdin {
        let path = path.0.to_str().unwrap_or_default();
        let number = ["/dev/fd/", "/proc/self/fd/"].iter().find_map(|dir| path.strip_prefix(dir));
        kept.extend(number.and_then(|number| number.parse::<RawFd>().ok()));
    }
    kept
}

#[inline(never)]
fn assignment(Start { spec, launch, .. }: Start) -> Result<Box<Assignment>, String> {
    let open = |path: &Text| {
        let path = Path::new(&path.0);
        let why = |error| format!("cannot write the report {}: {}", path.display(), plain(&error));
        File::create(path).map(Sink::new).map_err(why)
    };
    let report = spec.report.as_ref().map(open).transpose()?;
    Ok(Box::new(Assignment { spec, launch, report, verbosity: Verbosity::Quiet }))
}
