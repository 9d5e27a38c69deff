//! Reading /proc. Everything here may be gone by the time it is read.

use super::clock::since_boot;
use fullstop_core::cage::Member;
use rustix::buffer::spare_capacity;
use rustix::fs::{Mode, OFlags, open};
use rustix::param::{clock_ticks_per_second, page_size};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

/// The fields of `/proc/PID/stat` that decide anything. See proc_pid_stat(5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    pub pid: i32,
    pub comm: String,
    pub state: char,
    pub ppid: i32,
    pub pgid: i32,
    pub sid: i32,
    pub threads: u32,
    pub start_ticks: u64,
    /// Time on a processor, in clock ticks.
    pub cpu_ticks: u64,
    /// The same of the children it has waited for, and of theirs.
    pub reaped_ticks: u64,
    pub resident_pages: u64,
}

impl Stat {
    /// How long it has lived.
    pub fn age(&self) -> Duration {
        since_boot().saturating_sub(ticks(self.start_ticks))
    }

    /// How long it was on a processor.
    pub fn cpu(&self) -> Duration {
        ticks(self.cpu_ticks)
    }

    /// What it holds in memory, in bytes.
    pub fn memory(&self) -> u64 {
        self.resident_pages * page_size() as u64
    }

    /// An exited main thread reads Z while its other threads live.
    pub fn is_alive(&self) -> bool {
        !matches!(self.state, 'Z' | 'X') || self.threads > 1
    }

    pub fn is_stopped(&self) -> bool {
        self.state == 'T'
    }
}

pub fn stat(pid: i32) -> Option<Stat> {
    let mut buffer = [0; 1024];
    let length = read_into(&format!("/proc/{pid}/stat"), &mut buffer).ok()?;
    parse_stat(&buffer[..length])
}

/// How many threads a process has, for less than reading all that is said of it.
pub fn threads(pid: i32) -> Option<u32> {
    counted_threads(&format!("/proc/{pid}")).or_else(|| stat(pid).map(|stat| stat.threads))
}

/// As the links of a process's directory tell; not every /proc counts them there.
pub fn counted_threads(process: &str) -> Option<u32> {
    /// A directory's own links; each thread adds another.
    const NO_THREAD: u64 = 2;
    let links = rustix::fs::stat(format!("{process}/task")).ok()?.st_nlink;
    // Its width is not the same on every machine.
    #[allow(clippy::useless_conversion)]
    let threads = u64::from(links).saturating_sub(NO_THREAD);
    u32::try_from(threads).ok().filter(|&threads| threads > 0)
}

/// The command's name may hold anything, also `)` and newlines: it ends at the
/// last bracket of the line.
fn parse_stat(line: &[u8]) -> Option<Stat> {
    let open = line.iter().position(|&byte| byte == b'(')?;
    let close = line.iter().rposition(|&byte| byte == b')')?;
    let pid = std::str::from_utf8(line.get(..open)?).ok()?.trim().parse().ok()?;
    let comm = String::from_utf8_lossy(line.get(open + 1..close)?).into_owned();
    let rest = std::str::from_utf8(line.get(close + 1..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    // Counted from the state, which proc_pid_stat(5) calls field 3.
    let number = |field: usize| fields.get(field - 3)?.parse::<i64>().ok();
    Some(Stat {
        pid,
        comm,
        state: fields.first()?.chars().next()?,
        ppid: i32::try_from(number(4)?).ok()?,
        pgid: i32::try_from(number(5)?).ok()?,
        sid: i32::try_from(number(6)?).ok()?,
        threads: u32::try_from(number(20)?).ok()?,
        start_ticks: u64::try_from(number(22)?).ok()?,
        cpu_ticks: u64::try_from(number(14)? + number(15)?).ok()?,
        reaped_ticks: u64::try_from(number(16)? + number(17)?).unwrap_or_default(),
        resident_pages: u64::try_from(number(24)?).unwrap_or_default(),
    })
}

/// One read into a buffer of ours: /proc answers whole, and a buffer that grows
/// would ask twice.
fn read_into(path: &str, buffer: &mut [u8]) -> io::Result<usize> {
    let file = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    Ok(rustix::io::read(&file, buffer)?)
}

/// A whole file of /proc or of a cgroup. Their sizes read as zero, so that the
/// standard library would begin with a few bytes and ask again and again.
pub fn text(path: impl AsRef<Path>) -> io::Result<String> {
    text_of(&open(path.as_ref(), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
}

pub fn text_of(file: &OwnedFd) -> io::Result<String> {
    String::from_utf8(read_on(file, |_| true)?).map_err(io::Error::other)
}

/// `environ` or `cmdline` of a process: its memory, of which the kernel gives as much as was
/// asked for. Less is the end, which is not asked for once more: this is read of every
/// process there is.
pub fn memory(path: &str) -> io::Result<Vec<u8>> {
    let file = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    read_on(&file, |was_filled| was_filled)
}

/// Reads while there is something, and while `goes_on` says so to whether the room was filled.
fn read_on(file: &OwnedFd, goes_on: fn(bool) -> bool) -> io::Result<Vec<u8>> {
    const USUAL: usize = 4 * 1024;
    let mut bytes = Vec::with_capacity(USUAL);
    loop {
        bytes.reserve(USUAL / 2);
        let read = rustix::io::read(file, spare_capacity(&mut bytes))?;
        if read == 0 || !goes_on(bytes.len() == bytes.capacity()) {
            return Ok(bytes);
        }
    }
}

/// A list of numbers, as in `children` and `cgroup.procs`.
pub fn numbers(path: impl AsRef<Path>) -> io::Result<Vec<i32>> {
    Ok(numbers_in(&text(path)?))
}

pub fn numbers_in(text: &str) -> Vec<i32> {
    text.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// The entries of a directory that are numbers: processes, or threads.
pub fn numbered_entries(path: &str) -> Vec<i32> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Whether /proc shows the pids of our own namespace.
pub fn is_usable() -> bool {
    let own = rustix::process::getpid().as_raw_pid();
    let shown = fs::read_link("/proc/self").ok();
    shown.and_then(|link| link.to_str()?.parse().ok()) == Some(own)
}

/// Whether the kernel itself tells what stands there: root can mount something else.
pub fn is_genuine(path: &str) -> bool {
    const PROC_SUPER_MAGIC: u64 = 0x9fa0;
    rustix::fs::statfs(path).is_ok_and(|fs| u64::try_from(fs.f_type) == Ok(PROC_SUPER_MAGIC))
}

/// Whether processes of all users are in sight: where `/proc` hides those of others, it hides
/// the first one.
pub fn shows_all() -> bool {
    stat(1).is_some()
}

/// All that is told of a member.
pub fn member(stat: &Stat) -> Member {
    Member {
        pid: stat.pid,
        ppid: stat.ppid,
        pgid: stat.pgid,
        sid: stat.sid,
        uid: uid(stat.pid),
        state: stat.state,
        threads: stat.threads,
        start_ticks: stat.start_ticks,
        inode: super::pinned_process::inode(stat.pid),
        command: command(stat),
        age_ms: millis(stat.age()),
        cpu_ms: millis(stat.cpu()),
        memory_bytes: stat.memory(),
        wchan: wchan(stat.pid),
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The name that a process gives itself.
pub fn name(pid: i32) -> Option<String> {
    stat(pid).map(|stat| stat.comm.replace(char::is_control, " "))
}

fn uid(pid: i32) -> u32 {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(format!("/proc/{pid}")).map_or(u32::MAX, |meta| meta.uid())
}

/// The command line, or the kernel's name for it where there is none. It may hold
/// anything, so it is cut to a line that can be shown on a terminal.
pub fn command(stat: &Stat) -> String {
    const SHOWN: usize = 200;
    if is_in_deep_sleep(stat) {
        return format!("[{}]", stat.comm.replace(char::is_control, " "));
    }
    let line = fs::read(format!("/proc/{}/cmdline", stat.pid)).unwrap_or_default();
    let words = String::from_utf8_lossy(&line).replace('\0', " ");
    let words = words.trim();
    if words.is_empty() {
        return format!("[{}]", stat.comm.replace(char::is_control, " "));
    }
    let mut shown: String = words.chars().take(SHOWN).map(printable).collect();
    if words.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

/// Reading the command line of somebody whose memory is locked by a thread that
/// waits for a dead disk would make us wait as well.
fn is_in_deep_sleep(stat: &Stat) -> bool {
    let pid = stat.pid;
    let asleep = |tid: i32| {
        let mut buffer = [0; 1024];
        let read = read_into(&format!("/proc/{pid}/task/{tid}/stat"), &mut buffer).ok();
        let state = read.and_then(|length| parse_stat(&buffer[..length])).map(|task| task.state);
        state == Some('D')
    };
    stat.state == 'D'
        || stat.threads > 1
            && numbered_entries(&format!("/proc/{pid}/task")).into_iter().any(asleep)
}

fn printable(letter: char) -> char {
    if letter.is_control() { ' ' } else { letter }
}

fn wchan(pid: i32) -> Option<String> {
    let name = fs::read_to_string(format!("/proc/{pid}/wchan")).ok()?;
    (!name.is_empty() && name != "0").then_some(name)
}

/// The kernel's clock ticks as time.
pub fn ticks(count: u64) -> Duration {
    Duration::from_millis(count * 1000 / clock_ticks_per_second().max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_brackets_and_newlines() {
        let line = b"42 (a) R 1 (\n) S 7 8 9 0 -1 4 0 0 0 0 1 2 30 40 20 0 3 0 555 0 0\n";
        let stat = parse_stat(line).expect("parses");
        assert_eq!((stat.comm.as_str(), stat.state), ("a) R 1 (\n", 'S'));
        assert_eq!((stat.ppid, stat.pgid, stat.sid), (7, 8, 9));
        assert_eq!((stat.threads, stat.start_ticks), (3, 555));
        assert_eq!((stat.cpu_ticks, stat.reaped_ticks), (3, 70));
    }

    #[test]
    fn a_torn_line_is_nobody() {
        assert_eq!(parse_stat(b""), None);
        assert_eq!(parse_stat(b"42 (a) S 7"), None);
        assert_eq!(parse_stat(b")42("), None);
    }

    #[test]
    fn memory_is_read_whole_however_long_it_is() {
        for length in [10, 4 * 1024, 30_000] {
            let mut child = std::process::Command::new("sleep")
                .arg("60")
                .env_clear()
                .env("LONG", "x".repeat(length))
                .spawn()
                .expect("a child");
            let read = memory(&format!("/proc/{}/environ", child.id())).expect("read");
            child.kill().and_then(|()| child.wait()).expect("ended");
            assert_eq!(read.len(), "LONG=".len() + length + 1);
        }
    }

    #[test]
    fn we_are_alive() {
        let own = rustix::process::getpid().as_raw_pid();
        assert!(is_usable());
        assert!(stat(own).is_some_and(|stat| stat.is_alive()));
    }
}
