//! The watch outside: whatever a scenario freezes is thawed, come what may.
//!
//! A task in a frozen place cannot be killed, and the end of a pid namespace
//! waits for its last task. So a scenario that dies with something frozen would
//! hang for ever, and nobody inside could help it. Therefore a process outside
//! of every world holds what is needed to thaw, and does it when the scenario
//! has gone, or after a minute.

use std::io::{BufRead, BufReader, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use arena::{Context, Outcome, ensure, seconds};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// Names the watch's socket to every scenario.
const VARIABLE: &str = "FULLSTOP_HARD_WATCH";
/// The word by which the executable knows that it is the watch.
const WORD: &str = "--hard-watch";
/// Nothing stays frozen longer.
const LONGEST: Duration = seconds(60);

/// What was frozen, and how it is thawed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frozen {
    /// A file system; the descriptor is its root directory.
    Filesystem,
    /// A cgroup of version 1; the descriptor is its `freezer.state`.
    Freezer,
}

impl Frozen {
    fn letter(self) -> u8 {
        match self {
            Self::Filesystem => b'f',
            Self::Freezer => b'z',
        }
    }
}

/// Becomes the watch if that is what this process was started for; otherwise,
/// in the test run itself, starts one and this executable again beside it.
pub fn enter() -> Option<ExitCode> {
    let first = std::env::args().nth(1).unwrap_or_default();
    if first == WORD {
        return Some(watch().map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS));
    }
    let is_inner = first.starts_with("--arena");
    let lists = std::env::args().any(|word| word == "--list");
    if is_inner || lists || std::env::var_os(VARIABLE).is_some() {
        return None;
    }
    // Without a watch the scenarios that need one say so.
    start().ok()
}

fn start() -> Outcome<ExitCode> {
    let own = std::env::current_exe().context("own executable")?;
    let name = format!("fullstop-hard-{}", std::process::id());
    let mut watch = Command::new(&own)
        .args([WORD, &name])
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("the watch")?;
    let mut line = String::new();
    let said = watch.stdout.take().context("stdout of the watch")?;
    BufReader::new(said).read_line(&mut line).context("the watch")?;
    ensure!(line == "watching\n", "the watch does not stand");
    let error = Command::new(own).args(std::env::args_os().skip(1)).env(VARIABLE, name).exec();
    Err(error).context("starting again beside the watch")
}

/// What a scenario needs to freeze anything.
pub fn is_watched() -> Result<(), String> {
    match std::env::var_os(VARIABLE) {
        Some(_) => Ok(()),
        None => Err("nobody outside watches over what is frozen".into()),
    }
}

/// Names this test run; different for any two that run at the same time.
pub fn run_name() -> String {
    std::env::var(VARIABLE).unwrap_or_default()
}

/// A scenario's connection to the watch. While it is open, what was handed over
/// may be frozen.
pub struct Watched(UnixStream);

impl Watched {
    /// Hands over what is about to be frozen, and waits until it was taken.
    pub fn hand_over(kind: Frozen, fd: impl AsFd) -> Outcome<Self> {
        let address = SocketAddr::from_abstract_name(run_name()).context("address")?;
        let mut stream = UnixStream::connect_addr(&address).context("the watch is not there")?;
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let fds = [fd.as_fd()];
        ancillary.push(SendAncillaryMessage::ScmRights(&fds));
        let letter = [kind.letter()];
        let slices = [std::io::IoSlice::new(&letter)];
        sendmsg(&stream, &slices, &mut ancillary, SendFlags::NOSIGNAL).context("sendmsg")?;
        stream.read_exact(&mut [0]).context("the watch does not answer")?;
        Ok(Self(stream))
    }
}

impl AsRawFd for Watched {
    fn as_raw_fd(&self) -> i32 {
        self.0.as_raw_fd()
    }
}

/// The watch's whole life: it ends when the test run has ended and nothing is
/// held any more.
fn watch() -> Outcome {
    let name = std::env::args().nth(2).context("a name")?;
    let parent = rustix::process::getppid().context("no parent")?;
    let host = arena::pidfd(parent.as_raw_pid())?;
    let address = SocketAddr::from_abstract_name(name).context("address")?;
    let listener = UnixListener::bind_addr(&address).context("bind")?;
    println!("watching");
    let mut held = Vec::new();
    let mut host_lives = true;
    while host_lives
        || held.iter().any(|thread: &std::thread::JoinHandle<()>| !thread.is_finished())
    {
        let mut fds = vec![PollFd::new(&listener, PollFlags::IN)];
        if host_lives {
            fds.push(PollFd::new(&host, PollFlags::IN));
        }
        let tick = rustix::event::Timespec { tv_sec: 1, tv_nsec: 0 };
        let _ = poll(&mut fds, Some(&tick));
        let comes = !fds[0].revents().is_empty();
        host_lives = host_lives && fds.get(1).is_none_or(|fd| fd.revents().is_empty());
        drop(fds);
        if comes && let Ok((stream, _)) = listener.accept() {
            held.push(std::thread::spawn(move || drop(hold(&stream))));
        }
    }
    Ok(())
}

/// Holds one frozen thing until its scenario has gone.
fn hold(stream: &UnixStream) -> Outcome {
    let (letter, fd) = receive(stream)?;
    std::io::Write::write_all(&mut &*stream, b"!").context("answer")?;
    stream.set_read_timeout(Some(LONGEST)).context("timeout")?;
    // Nobody ever says anything more: either the end comes, or the time is over.
    let _ = (&mut &*stream).read(&mut [0]);
    let path = format!("/proc/{}/fd/{}", std::process::id(), fd.as_raw_fd());
    if letter == Frozen::Filesystem.letter() {
        thaw_filesystem(Path::new(&path));
    } else {
        let _ = rustix::io::write(&fd, b"THAWED");
    }
    Ok(())
}

fn receive(stream: &UnixStream) -> Outcome<(u8, OwnedFd)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut letter = [0];
    let mut slices = [std::io::IoSliceMut::new(&mut letter)];
    recvmsg(stream, &mut slices, &mut ancillary, RecvFlags::CMSG_CLOEXEC).context("recvmsg")?;
    let fd = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    Ok((letter[0], fd.context("no descriptor came")?))
}

/// Harmless for a file system that is not frozen.
pub fn thaw_filesystem(path: &Path) {
    let mut thaw = Command::new("fsfreeze");
    thaw.arg("-u").arg(path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let _ = thaw.status();
}
