//! A process that cannot be mistaken for another one.
//!
//! Every signal of fullstop goes through [`PinnedProcess::send`], and a `PinnedProcess` can only be
//! had for an unreaped child of ours, for the child of a process already held, or
//! by adoption from the keeper. Pid 0, -1, 1, our own and our own group cannot be
//! said. See pidfd_open(2), pidfd_send_signal(2).

use super::procfs::{Stat, stat};
use super::wait::{is_child, is_dead_child};
use fullstop_core::signal::Signal;
use fullstop_core::words::Exit;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, getpid, getppid, pidfd_open};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;

#[derive(Debug)]
pub struct PinnedProcess {
    pid: Pid,
    grip: Grip,
}

/// What keeps the process from being mistaken.
#[derive(Debug)]
enum Grip {
    Pidfd(OwnedFd),
    /// A kernel without pidfds, or no descriptor left: a child of ours keeps its
    /// pid until we wait for it ourselves.
    UnreapedChild,
}

impl PinnedProcess {
    /// The leader, as clone returned it to its parent.
    pub fn newborn(pid: i32, pidfd: Option<OwnedFd>) -> Option<PinnedProcess> {
        Some(PinnedProcess {
            pid: legal(pid)?,
            grip: pidfd.map_or(Grip::UnreapedChild, Grip::Pidfd),
        })
    }

    /// Our own parent, to be continued when the leader is. Nothing, if it is dead.
    pub fn parent() -> Option<PinnedProcess> {
        let pid = getppid()?;
        let fd = pidfd_open(legal(pid.as_raw_pid())?, PidfdFlags::empty()).ok()?;
        // Had it died before the open, we would have another parent by now.
        (getppid() == Some(pid)).then_some(PinnedProcess { pid, grip: Grip::Pidfd(fd) })
    }

    /// Holds `pid` if the kernel says that it is a child of ours that was not waited for. Until we
    /// wait for it, its pid cannot pass to another process.
    pub fn child(pid: i32) -> Option<PinnedProcess> {
        let pid = legal(pid)?;
        is_child(pid.as_raw_pid()).then_some(PinnedProcess { pid, grip: Grip::UnreapedChild })
    }

    /// The process that has this pid. Not to be signalled before it is known to be ours.
    pub(super) fn anybody(pid: i32) -> Option<PinnedProcess> {
        let pid = legal(pid)?;
        let fd = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        Some(PinnedProcess { pid, grip: Grip::Pidfd(fd) })
    }

    /// Holds `pid` if it is, beyond doubt, a child of `parent` now: the one held
    /// names the pid of its parent, and whoever we hold has kept its pid all along.
    pub fn child_of(parent: &PinnedProcess, pid: i32) -> Option<PinnedProcess> {
        let held = PinnedProcess::anybody(pid)?;
        (held.ppid()? == parent.pid() && parent.is_unreaped()).then_some(held)
    }

    /// Holds `pid` if it is inside our cgroup while it is held; its parents may be
    /// strangers.
    pub fn inside(pid: i32, is_inside: impl Fn(i32) -> bool) -> Option<PinnedProcess> {
        let held = PinnedProcess::anybody(pid)?;
        (is_inside(held.pid()) && held.is_unreaped()).then_some(held)
    }

    /// Its parent's pid, from the kernel if it can say (6.13+), or from /proc.
    fn ppid(&self) -> Option<i32> {
        match self.info(0) {
            Some(info) => i32::try_from(info.ppid).ok(),
            None => self.stat().map(|stat| stat.ppid),
        }
    }

    /// What /proc says of it. A pid is not reused before it is reaped, so that what
    /// was read is about the one who is held.
    pub fn stat(&self) -> Option<Stat> {
        stat(self.pid()).filter(|_| self.is_unreaped())
    }

    pub fn pid(&self) -> i32 {
        self.pid.as_raw_pid()
    }

    pub fn send(&self, signal: Signal) -> io::Result<()> {
        self.send_number(signal.number())
    }

    fn send_number(&self, number: i32) -> io::Result<()> {
        let done = match &self.grip {
            // SAFETY: no pointer but a null siginfo is passed.
            Grip::Pidfd(fd) => unsafe {
                let info = std::ptr::null::<libc::siginfo_t>();
                libc::syscall(libc::SYS_pidfd_send_signal, fd.as_raw_fd(), number, info, 0)
            },
            // SAFETY: no pointer is passed; the pid is above 1 and not our own.
            Grip::UnreapedChild => unsafe { libc::kill(self.pid(), number).into() },
        };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Signal 0 finds a zombie, but nobody once it was waited for.
    fn is_unreaped(&self) -> bool {
        !matches!(self.send_number(0), Err(error) if error.raw_os_error() == Some(libc::ESRCH))
    }

    /// A second hold of the same kind.
    pub fn try_clone(&self) -> Option<PinnedProcess> {
        let grip = match &self.grip {
            Grip::Pidfd(fd) => Grip::Pidfd(fd.try_clone().ok()?),
            Grip::UnreapedChild => Grip::UnreapedChild,
        };
        Some(PinnedProcess { pid: self.pid, grip })
    }

    /// A second hold on the same process, by pidfd, which outlives its reaping.
    pub fn with_pidfd(&self) -> Option<PinnedProcess> {
        let fd = match self.pidfd() {
            Some(fd) => fd.try_clone_to_owned().ok()?,
            None => pidfd_open(self.pid, PidfdFlags::empty()).ok()?,
        };
        Some(PinnedProcess { pid: self.pid, grip: Grip::Pidfd(fd) })
    }

    /// Whether all its threads have exited. Of a child that is held without a pidfd, and
    /// traced by a stranger, nobody can tell.
    pub fn is_dead(&self) -> bool {
        let Some(pidfd) = self.pidfd() else { return is_dead_child(self.pid()) };
        let mut fds = [PollFd::from_borrowed_fd(pidfd, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }

    pub fn is_stopped(&self) -> bool {
        self.stat().is_some_and(|stat| stat.is_stopped())
    }

    /// The inode in pidfs, which no other process of this boot ever gets (kernel 6.9+).
    pub fn inode(&self) -> Option<u64> {
        self.pidfd().and_then(inode_of)
    }

    pub fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        match &self.grip {
            Grip::Pidfd(fd) => Some(fd.as_fd()),
            Grip::UnreapedChild => None,
        }
    }

    /// The bare descriptor, which becomes readable when the process dies.
    pub fn into_pidfd(self) -> Option<OwnedFd> {
        match self.grip {
            Grip::Pidfd(fd) => Some(fd),
            Grip::UnreapedChild => None,
        }
    }

    /// How it ended, even after somebody else has waited for it (kernel 6.15+).
    pub fn exit(&self) -> Option<Exit> {
        const PIDFD_INFO_EXIT: u64 = 1 << 3;
        let info = self.info(PIDFD_INFO_EXIT)?;
        (info.mask & PIDFD_INFO_EXIT != 0).then(|| exit_from_status(info.exit_code))
    }

    /// See PIDFD_GET_INFO(2const). Some fields always come, some must be asked for.
    fn info(&self, mask: u64) -> Option<Info> {
        const PIDFD_GET_INFO: libc::Ioctl = 0xC040_FF0B;
        let fd = self.pidfd()?;
        let mut info = Info { mask, ..Info::default() };
        // SAFETY: the ioctl writes at most the 64 bytes its number encodes, which
        // is the size of `Info`.
        let done = unsafe { libc::ioctl(fd.as_raw_fd(), PIDFD_GET_INFO, &raw mut info) };
        (done == 0).then_some(info)
    }
}

/// `struct pidfd_info`, first version: 64 bytes.
#[repr(C)]
#[derive(Default)]
struct Info {
    mask: u64,
    cgroupid: u64,
    pid: u32,
    tgid: u32,
    ppid: u32,
    uids_and_gids: [u32; 8],
    exit_code: i32,
}

/// Nothing at or below pid 1 is ever held, nor are we ourselves.
fn legal(pid: i32) -> Option<Pid> {
    let named = if pid > 1 { Pid::from_raw(pid) } else { None };
    named.filter(|&pid| pid != getpid())
}

/// A wait status, as wait(2) and the kernel pack it.
fn exit_from_status(status: i32) -> Exit {
    match Signal::new(status & 0x7f) {
        Some(signal) => Exit::Signal(signal),
        None => Exit::Code((status >> 8) & 0xff),
    }
}

/// A descriptor that becomes readable when our parent dies, or is already: when
/// `parent`, who it was, is it no more.
pub fn watch_parent(parent: i32) -> io::Result<Option<OwnedFd>> {
    let pid = Pid::from_raw(parent.max(0)).ok_or(io::ErrorKind::NotFound)?;
    let opened = pidfd_open(pid, PidfdFlags::empty());
    if getppid() == Some(pid) {
        return match opened {
            // Before kernel 5.3 nobody can tell; the lifeline still sees our own.
            Err(Errno::NOSYS) => Ok(None),
            opened => Ok(Some(opened?)),
        };
    }
    // It died meanwhile.
    abandoned().map(Some)
}

/// A descriptor that becomes readable when that process dies, or is already. It is
/// only watched.
pub fn watch_process(pid: Pid) -> io::Result<Option<OwnedFd>> {
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(fd) => Ok(Some(fd)),
        Err(Errno::SRCH) => abandoned().map(Some),
        // Before kernel 5.3 nobody can tell; the line still does.
        Err(Errno::NOSYS) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// The end of an abandoned pipe, which reads like the pidfd of a dead process.
fn abandoned() -> io::Result<OwnedFd> {
    let (end, _) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    Ok(end)
}

/// The id of the cgroup we are in, which is also the inode of its directory
/// (kernel 6.13+).
pub fn own_cgroup_id() -> Option<u64> {
    const PIDFD_INFO_CGROUPID: u64 = 1 << 2;
    let fd = pidfd_open(getpid(), PidfdFlags::empty()).ok()?;
    let held = PinnedProcess { pid: getpid(), grip: Grip::Pidfd(fd) };
    let info = held.info(PIDFD_INFO_CGROUPID)?;
    (info.mask & PIDFD_INFO_CGROUPID != 0).then_some(info.cgroupid)
}

/// The inode in pidfs, which no other process of this boot ever gets (kernel 6.9+).
pub fn inode(pid: i32) -> Option<u64> {
    let fd = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
    inode_of(fd.as_fd())
}

pub(super) fn inode_of(pidfd: BorrowedFd<'_>) -> Option<u64> {
    const PIDFS_MAGIC: u64 = 0x5049_4446;
    /// A kernel has it for every pidfd, or for none.
    static ON_PIDFS: OnceLock<bool> = OnceLock::new();
    let on_pidfs =
        || rustix::fs::fstatfs(pidfd).is_ok_and(|fs| u64::try_from(fs.f_type) == Ok(PIDFS_MAGIC));
    if !ON_PIDFS.get_or_init(on_pidfs) {
        return None;
    }
    rustix::fs::fstat(pidfd).ok().map(|stat| stat.st_ino)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_must_never_be_signalled_cannot_be_held() {
        let own = getpid().as_raw_pid();
        for pid in [i32::MIN, -own, -1, 0, 1, own] {
            assert!(PinnedProcess::newborn(pid, None).is_none(), "{pid}");
            assert!(PinnedProcess::child(pid).is_none(), "{pid}");
        }
    }

    #[test]
    fn a_stranger_is_not_a_child() {
        let parent = rustix::process::getppid().map_or(0, Pid::as_raw_pid);
        assert!(PinnedProcess::child(parent).is_none());
    }

    #[test]
    fn wait_statuses() {
        assert_eq!(exit_from_status(0x0300), Exit::Code(3));
        assert_eq!(exit_from_status(15), Exit::Signal(Signal::TERM));
        assert_eq!(exit_from_status(0x8b), exit_from_status(0x0b));
    }
}
