//! What this kernel really does: tried out, not read off its version.
//!
//! Whoever is made for a try is a child of ours, held, and gone before the try
//! returns; should we die meanwhile, it sees its line close, and leaves. All of it
//! works in a program with threads: the children make system calls and nothing else.

use super::cgroup::{Cgroup, Site};
use super::fork::{Fork, clone3, fork_unchecked};
use super::pinned_process::{PinnedProcess, inode};
use super::procfs;
use super::signals::set_ignored;
use super::syscall;
use super::wait::{Change, Waited, wait_for};
use fullstop_core::signal::Signal;
use fullstop_core::words::Exit;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{PidfdFlags, getpid, pidfd_open};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Told by the child of a try when it leaves by itself; nobody else would say it.
const STATUS: i32 = 43;

/// The signal by which such a child tells its end. Whoever waits in this program for
/// just any child does not get to see one with another signal than SIGCHLD.
const EXIT_SIGNAL: Signal = Signal::URG;

/// A child has nothing to do but to leave. Only a machine in trouble takes longer.
const PATIENCE: Duration = Duration::from_secs(2);

/// A child that waits for its line to be closed.
struct Waiting {
    held: PinnedProcess,
    line: Option<OwnedFd>,
    gone: bool,
}

/// Makes a child with `make`, and leaves it waiting.
fn bear(make: impl FnOnce() -> io::Result<Fork>) -> io::Result<Waiting> {
    let (theirs, ours) = pipe_with(PipeFlags::CLOEXEC)?;
    match make()? {
        Fork::Parent(held) => Ok(Waiting { held, line: Some(ours), gone: false }),
        Fork::Child => wait_and_leave(theirs.as_raw_fd(), ours.as_raw_fd()),
    }
}

/// The child's whole life.
fn wait_and_leave(line: RawFd, parents: RawFd) -> ! {
    // SAFETY: this is the child's copy of its parent's end.
    let _ = unsafe { syscall::close(parents) };
    let _ = syscall::read(line, &mut [0]);
    syscall::exit(STATUS)
}

impl Waiting {
    /// Lets it leave, and reaps it.
    fn leave(&mut self) -> Option<Exit> {
        self.line = None;
        self.reap()
    }

    fn reap(&mut self) -> Option<Exit> {
        /// Between two looks where the kernel cannot wake us.
        const NAP: Duration = Duration::from_millis(1);
        let until = Instant::now() + PATIENCE;
        while !self.gone && Instant::now() < until {
            match wait_for(self.held.pid()) {
                Waited::Changed { change: Change::Exited(exit), .. } => {
                    self.gone = true;
                    return Some(exit);
                }
                Waited::Nobody => self.gone = true,
                _ => match self.held.pidfd() {
                    Some(pidfd) => wait_readable(pidfd, until),
                    None => sleep(NAP),
                },
            }
        }
        None
    }
}

fn wait_readable(fd: BorrowedFd<'_>, until: Instant) {
    let left = Timespec::try_from(until.saturating_duration_since(Instant::now()));
    let _ = poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], left.ok().as_ref());
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // Once it is reaped its pid may be somebody else's.
        if !self.gone {
            let _ = self.held.send(Signal::KILL);
            self.reap();
        }
    }
}

/// What is seen of a child that was made just for that.
#[derive(Debug)]
pub struct Child {
    /// Whether clone3 made it, or why not (it was then made another way).
    pub clone3: io::Result<()>,
    /// /proc lists it among our children.
    pub listed: bool,
    /// How it ended could be asked of its pidfd after it was reaped.
    pub exit_told: bool,
}

/// Makes a child, looks at it, and lets it go.
pub fn child() -> io::Result<Child> {
    // SAFETY: the child makes system calls and nothing else, here and below.
    let (made, mut child) = match bear(|| unsafe { clone3(EXIT_SIGNAL, None) }) {
        Ok(child) => (Ok(()), child),
        // SAFETY: as above.
        Err(error) => (Err(error), bear(|| unsafe { fork_unchecked(EXIT_SIGNAL, None) })?),
    };
    let children = procfs::numbers("/proc/thread-self/children").unwrap_or_default();
    let listed = children.contains(&child.held.pid());
    // Where clone3 gave no pidfd, one is opened, as a guard does for its leader.
    let watched = child.held.with_pidfd();
    let exit = child.leave();
    let told = watched.and_then(|watched| watched.exit());
    Ok(Child { clone3: made, listed, exit_told: exit.is_some() && told == exit })
}

/// Whether a process can be held by a descriptor.
pub fn pidfd_opens() -> io::Result<()> {
    Ok(pidfd_open(getpid(), PidfdFlags::empty()).map(drop)?)
}

/// Whether a process can be known again by an inode of its own.
pub fn has_pidfs() -> bool {
    inode(getpid().as_raw_pid()).is_some()
}

/// Whether /proc shows the pids of our own namespace.
pub fn proc_is_ours() -> bool {
    procfs::is_usable()
}

/// Whether orphans come to a subreaper: a child of ours becomes one, and its
/// grandchild loses its parent.
pub fn subreaper() -> io::Result<bool> {
    let (theirs, ours) = pipe_with(PipeFlags::CLOEXEC)?;
    // SAFETY: the child makes system calls and nothing else.
    let mut child = match unsafe { fork_unchecked(EXIT_SIGNAL, None) }? {
        Fork::Parent(held) => Waiting { held, line: None, gone: false },
        Fork::Child => adopt_and_leave(theirs.as_raw_fd(), ours.as_raw_fd()),
    };
    drop((theirs, ours));
    match child.reap() {
        Some(exit) => Ok(exit == Exit::Code(STATUS)),
        None => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// Leaves with `STATUS` if its orphaned grandchild became its child.
fn adopt_and_leave(line: RawFd, key: RawFd) -> ! {
    /// A step before the question could not be taken.
    const FAILED: i32 = 1;
    // If whoever started us ignores SIGCHLD, children vanish without a word.
    set_ignored(Signal::CHLD, false);
    // SAFETY: no pointer is passed.
    if unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) } != 0 {
        syscall::exit(FAILED);
    }
    // SAFETY: this child and those below it make system calls and nothing else.
    match unsafe { fork_unchecked(Signal::CHLD, None) } {
        Ok(Fork::Child) => {
            // SAFETY: as above.
            match unsafe { fork_unchecked(Signal::CHLD, None) } {
                Ok(Fork::Child) => wait_and_leave(line, key),
                _ => syscall::exit(0),
            }
        }
        Ok(Fork::Parent(parent)) => wait_blocking(parent.pid()),
        Err(_) => syscall::exit(FAILED),
    };
    // SAFETY: ours to close: it lets the orphan go.
    let _ = unsafe { syscall::close(key) };
    let adopted = wait_blocking(-1);
    syscall::exit(if adopted { STATUS } else { FAILED })
}

/// Whether that child, or any, was there to be reaped.
fn wait_blocking(pid: i32) -> bool {
    // SAFETY: no status is asked for.
    unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::__WALL) > 0 }
}

/// Why there is no cgroup to try anything in.
#[derive(Debug)]
pub enum NoCgroup {
    /// Our own cgroup is not to be found.
    NoPlace(String),
    /// Nothing can be made beneath it.
    Closed { place: PathBuf, source: io::Error },
}

/// What a throw-away cgroup beneath our own was good for.
#[derive(Debug)]
pub struct Tried {
    /// Our own cgroup.
    pub place: PathBuf,
    /// A child was born inside.
    pub born: io::Result<()>,
    /// Or else was moved inside after its birth, as the leader would be.
    pub moved: io::Result<()>,
    /// `cgroup.kill` killed it.
    pub kill: io::Result<()>,
    /// Nothing is left of it.
    pub removed: bool,
}

impl Tried {
    /// Whether a leader would be inside, one way or the other.
    pub fn holds(&self) -> bool {
        self.born.is_ok() || self.moved.is_ok()
    }
}

/// Makes a cgroup as a run would, bears a child into it, kills that, and removes it.
pub fn cgroup() -> Result<Tried, NoCgroup> {
    let site = Site::find().map_err(NoCgroup::NoPlace)?;
    let place = shown(&site);
    match make(&site) {
        Ok(cgroup) => Ok(try_out(place, cgroup)),
        Err(source) => Err(NoCgroup::Closed { place, source }),
    }
}

/// Our own cgroup, if it is to be found.
pub fn own_cgroup() -> Option<PathBuf> {
    Site::find().ok().map(|site| shown(&site))
}

/// Without the slash that the root of the hierarchy ends in.
fn shown(site: &Site) -> PathBuf {
    site.path().components().collect()
}

/// Whether anybody lives in a cgroup or below it.
pub fn is_populated(cgroup: &Path) -> bool {
    Cgroup::adopt(cgroup).is_some_and(|cgroup| cgroup.is_populated())
}

/// Our pid is not enough to be told from others: pid namespaces share a hierarchy, and
/// in a container it may be the same each time, also after one was killed here.
fn make(site: &Site) -> io::Result<Cgroup> {
    const TRIES: usize = 8;
    let mut made = Err(io::ErrorKind::AlreadyExists.into());
    for _ in 0..TRIES {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        // No run has such a name: `doctor` is no id.
        let name = format!("fullstop-doctor-{}-{}", std::process::id(), now.as_nanos());
        made = Cgroup::make(&site.child(name.as_ref()));
        if !matches!(&made, Err(error) if error.kind() == io::ErrorKind::AlreadyExists) {
            break;
        }
    }
    made
}

fn try_out(place: PathBuf, mut cgroup: Cgroup) -> Tried {
    let refused = |error: &io::Error| io::Error::from(error.kind());
    // SAFETY: the child makes system calls and nothing else.
    let born = bear(|| unsafe { clone3(EXIT_SIGNAL, cgroup.dir()) });
    let (born, child) = match born {
        Ok(child) => (is_inside(&cgroup, &child), Ok(child)),
        // SAFETY: as above.
        Err(error) => (Err(error), bear(|| unsafe { fork_unchecked(EXIT_SIGNAL, None) })),
    };
    let moved = match &child {
        _ if born.is_ok() => Ok(()),
        Ok(child) => cgroup.take_in(child.held.pid()).and_then(|()| is_inside(&cgroup, child)),
        Err(error) => Err(refused(error)),
    };
    let kill = match child {
        Ok(child) if born.is_ok() || moved.is_ok() => kill(&cgroup, child),
        Ok(_) => Err(io::ErrorKind::NotFound.into()),
        Err(error) => Err(error),
    };
    let removed = remove(&mut cgroup);
    Tried { place, born, moved, kill, removed }
}

fn is_inside(cgroup: &Cgroup, child: &Waiting) -> io::Result<()> {
    if cgroup.procs().contains(&child.held.pid()) {
        return Ok(());
    }
    Err(io::Error::other("it was accepted, but had no effect"))
}

/// Only our own child is inside: the cgroup was made a moment ago.
fn kill(cgroup: &Cgroup, mut child: Waiting) -> io::Result<()> {
    cgroup.kill()?;
    match child.reap() {
        Some(Exit::Signal(Signal::KILL)) => Ok(()),
        _ => Err(io::Error::other("it was accepted, but had no effect")),
    }
}

/// From kernel 6.19 a task leaves its cgroup a moment after it was reaped.
fn remove(cgroup: &mut Cgroup) -> bool {
    const NAP: Duration = Duration::from_millis(1);
    let until = Instant::now() + PATIENCE;
    while !cgroup.remove() {
        if Instant::now() >= until {
            return false;
        }
        sleep(NAP);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_leaves_with_its_line_and_is_reaped() {
        // SAFETY: the child makes system calls and nothing else.
        let mut child = bear(|| unsafe { fork_unchecked(EXIT_SIGNAL, None) }).expect("a child");
        let pid = child.held.pid();
        assert!(super::super::wait::is_child(pid));
        assert_eq!(child.leave(), Some(Exit::Code(STATUS)));
        assert!(!super::super::wait::is_child(pid));
    }

    #[test]
    fn a_child_that_is_dropped_is_gone() {
        // SAFETY: the child makes system calls and nothing else.
        let child = bear(|| unsafe { fork_unchecked(EXIT_SIGNAL, None) }).expect("a child");
        let pid = child.held.pid();
        drop(child);
        assert!(!super::super::wait::is_child(pid));
    }

    #[test]
    fn orphans_come_to_a_subreaper() {
        assert!(subreaper().expect("tried"));
    }

    #[test]
    fn a_throw_away_cgroup_is_thrown_away() {
        let Ok(tried) = cgroup() else { return eprintln!("skipped: no cgroup to be had here") };
        assert!(tried.removed, "{tried:?}");
    }
}
