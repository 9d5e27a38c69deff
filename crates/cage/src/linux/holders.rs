//! Who holds the other end of a pipe or of a terminal open.

use super::procfs::{command, numbered_entries, stat, text};
use fullstop_core::cage::OutputHolder;
use rustix::fs::{FileType, OFlags, Stat, fcntl_getfl, fstat, major, makedev, minor};
use rustix::process::getpid;
use std::ffi::OsStr;
use std::fs;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Enough to know what is going on.
const NAMED: usize = 16;

/// A run that has ended is not kept waiting for names.
const PATIENCE: Duration = Duration::from_millis(200);

/// Every other process with the other end of `of` open, as far as /proc shows it to us
/// and there is time to look: whoever can write into a pipe that we read, or has the
/// command's side of a terminal of which we are the master. Those in `but` are left out.
///
/// The youngest are asked first: whoever has taken an end along is younger than it.
///
/// ```
/// use std::{io::{Read, Write}, os::fd::AsFd, process::{Command, Stdio}};
///
/// let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
/// let mut out = child.stdout.take().expect("a pipe");
/// child.stdin.as_mut().expect("a pipe").write_all(b"!")?;
/// out.read_exact(&mut [0])?;
/// let holders = fullstop_cage::linux::holders(out.as_fd(), &[]);
/// assert_eq!(holders[0].command, "cat");
/// child.wait()?;
/// assert!(fullstop_cage::linux::holders(out.as_fd(), &[]).is_empty());
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn holders(of: BorrowedFd<'_>, but: &[i32]) -> Vec<OutputHolder> {
    let Some(end) = End::opposite(of) else { return Vec::new() };
    let until = Instant::now() + PATIENCE;
    let own = getpid().as_raw_pid();
    let mut pids = numbered_entries("/proc");
    pids.sort_unstable_by(|one, other| other.cmp(one));
    pids.into_iter()
        .filter(|pid| *pid != own && !but.contains(pid))
        .take_while(|_| Instant::now() < until)
        .filter(|&pid| end.is_held_by(pid, until))
        .filter_map(|pid| Some(OutputHolder { pid, command: command(&stat(pid)?) }))
        .take(NAMED)
        .collect()
}

/// The end that somebody else may hold.
enum End {
    /// What /proc calls the pipe, and whether those who write or those who read it
    /// are meant.
    Pipe { link: PathBuf, mode: Mode },
    /// The command's side of a terminal: its number, and the file where we see it.
    Terminal { number: u32, seen: Option<Stat> },
}

#[derive(Clone, Copy)]
enum Mode {
    Writing,
    Reading,
    Either,
}

impl End {
    fn opposite(of: BorrowedFd<'_>) -> Option<End> {
        if let Some(number) = terminal_number(of) {
            let seen = rustix::fs::stat(format!("/dev/pts/{number}")).ok();
            return Some(End::Terminal { number, seen });
        }
        let kind = FileType::from_raw_mode(fstat(of).ok()?.st_mode);
        if kind != FileType::Fifo {
            return None;
        }
        let link = fs::read_link(format!("/proc/self/fd/{}", of.as_raw_fd())).ok()?;
        let mode = match fcntl_getfl(of).ok()? & OFlags::RWMODE {
            OFlags::RDONLY => Mode::Writing,
            OFlags::WRONLY => Mode::Reading,
            _ => Mode::Either,
        };
        Some(End::Pipe { link, mode })
    }

    fn is_held_by(&self, pid: i32, until: Instant) -> bool {
        let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        entries.take_while(|_| Instant::now() < until).any(|entry| {
            let path = entry.path();
            // Only a link that looks right is looked through: behind another may be a
            // dead file server.
            fs::read_link(&path).is_ok_and(|link| self.is_at(pid, &path, &link))
        })
    }

    fn is_at(&self, pid: i32, path: &Path, link: &Path) -> bool {
        match self {
            End::Pipe { link: ours, mode } => {
                link == ours && path.file_name().is_some_and(|fd| mode.is_of(pid, fd))
            }
            End::Terminal { number, seen } => {
                link.file_name() == Some(OsStr::new(&number.to_string()))
                    && rustix::fs::stat(path).is_ok_and(|file| is_slave(*number, &file, *seen))
            }
        }
    }
}

impl Mode {
    /// See proc_pid_fdinfo(5): the flags are octal.
    fn is_of(self, pid: i32, fd: &OsStr) -> bool {
        let info = text(format!("/proc/{pid}/fdinfo/{}", fd.display())).unwrap_or_default();
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
        let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
        let Some(flags) = flags.map(OFlags::from_bits_retain) else { return false };
        let only = flags & OFlags::RWMODE;
        match self {
            Mode::Writing => only != OFlags::RDONLY,
            Mode::Reading => only != OFlags::WRONLY,
            Mode::Either => true,
        }
    }
}

/// By device number, and by the instance of devpts where we see our own: a container
/// counts its terminals from 0 as well.
fn is_slave(number: u32, file: &Stat, seen: Option<Stat>) -> bool {
    const FIRST_MAJOR: u32 = 136;
    let device = makedev(FIRST_MAJOR + number / 256, number % 256);
    let same = |one: u64, other: u64| (major(one), minor(one)) == (major(other), minor(other));
    same(file.st_rdev, device) && seen.is_none_or(|seen| seen.st_dev == file.st_dev)
}

/// The number of the terminal whose master this is. See TIOCGPTN(2const).
fn terminal_number(of: BorrowedFd<'_>) -> Option<u32> {
    let mut number: libc::c_uint = 0;
    // SAFETY: writes one number.
    let done = unsafe { libc::ioctl(of.as_raw_fd(), libc::TIOCGPTN, &raw mut number) };
    (done == 0).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{is_done_alone, terminal};
    use super::*;
    use rustix::pipe::{PipeFlags, pipe_with};
    use std::os::fd::{AsFd, OwnedFd};
    use std::process::{Child, Command, Stdio};

    // Alone, for what other tests start holds our descriptors as well, for the moment
    // between fork and exec.

    /// Lives until it is dropped, with these for stdin and stdout.
    struct Sleeper(Child);

    fn sleeper(stdin: impl Into<Stdio>, stdout: impl Into<Stdio>) -> Sleeper {
        let spawned = Command::new("sleep").arg("60").stdin(stdin).stdout(stdout).spawn();
        let sleeper = Sleeper(spawned.expect("sleep"));
        // The kernel lets us go on before its exec has closed what it does not inherit.
        let until = Instant::now() + Duration::from_secs(20);
        while stat(sleeper.pid()).is_none_or(|stat| command(&stat) != "sleep 60") {
            assert!(Instant::now() < until, "it never began");
            std::thread::yield_now();
        }
        sleeper
    }

    impl Sleeper {
        fn pid(&self) -> i32 {
            i32::try_from(self.0.id()).expect("a pid")
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            self.0.kill().expect("ours");
            self.0.wait().expect("ours");
        }
    }

    fn null() -> Stdio {
        Stdio::null()
    }

    fn pids(of: &OwnedFd, but: &[i32]) -> Vec<i32> {
        holders(of.as_fd(), but).iter().map(|holder| holder.pid).collect()
    }

    #[test]
    fn of_a_pipe_who_can_write() {
        if is_done_alone("linux::holders::tests::of_a_pipe_who_can_write") {
            return;
        }
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).expect("a pipe");
        let reading = sleeper(reader.try_clone().expect("a copy"), null());
        let writing = sleeper(null(), writer.try_clone().expect("a copy"));
        let found = holders(reader.as_fd(), &[]);
        let holder = OutputHolder { pid: writing.pid(), command: "sleep 60".to_owned() };
        assert_eq!(found, [holder]);
        assert_eq!(pids(&writer, &[]), [reading.pid()]);
        assert!(pids(&reader, &[writing.pid()]).is_empty());
        drop(writing);
        assert!(pids(&reader, &[]).is_empty());
    }

    #[test]
    fn of_a_terminal_who_has_the_other_side() {
        if is_done_alone("linux::holders::tests::of_a_terminal_who_has_the_other_side") {
            return;
        }
        let ((master, slave), (_other, others)) = (terminal(), terminal());
        let holding = sleeper(null(), slave);
        let _stranger = sleeper(null(), others);
        assert_eq!(pids(&master, &[]), [holding.pid()]);
        assert!(pids(&master, &[holding.pid()]).is_empty());
    }

    #[test]
    fn a_file_has_no_other_end() {
        let file: OwnedFd = fs::File::open("/dev/null").expect("a file").into();
        assert!(pids(&file, &[]).is_empty());
    }

    #[test]
    fn a_crowd_is_not_named_to_the_last() {
        if is_done_alone("linux::holders::tests::a_crowd_is_not_named_to_the_last") {
            return;
        }
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).expect("a pipe");
        let copy = || writer.try_clone().expect("a copy");
        let crowd: Vec<Sleeper> = (0..NAMED + 2).map(|_| sleeper(null(), copy())).collect();
        let found = pids(&reader, &[]);
        assert_eq!(found.len(), NAMED);
        assert!(found.iter().all(|pid| crowd.iter().any(|sleeper| sleeper.pid() == *pid)));
    }
}
