//! A cgroup of our own, beneath the one we are in. See cgroups(7).

use super::pinned_process::own_cgroup_id;
use super::procfs;
use crate::plain;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, chmod, chmodat, open, openat, unlinkat};
use rustix::io::Errno;
use std::ffi::{CStr, CString, OsStr};
use std::fs;
use std::io;
use std::mem::replace;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where cgroups of ours can be made: the directory of our own cgroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site(PathBuf);

impl Site {
    /// Finds it, in unified and hybrid layouts alike: where it usually is, or else
    /// through mountinfo, which takes a while to read.
    pub fn find() -> Result<Site, String> {
        let read =
            |path: &str| procfs::text(path).map_err(|error| format!("{path}: {}", plain(&error)));
        let own = read("/proc/self/cgroup")?;
        if let Some(usual) = USUAL.iter().find_map(|mount| at_usual(&own, mount)) {
            return Ok(Site(usual));
        }
        let mounts = read("/proc/self/mountinfo")?;
        locate(&own, &mounts).map(Site).ok_or_else(|| "no cgroup v2 is mounted".to_owned())
    }

    pub fn child(&self, name: &OsStr) -> PathBuf {
        self.0.join(name)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

/// Where systemd mounts it, in unified and in hybrid layouts.
const USUAL: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

/// Our own cgroup below the usual mount, if that is a cgroup v2 and shows it.
fn at_usual(own: &str, mount: &str) -> Option<PathBuf> {
    let own = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let path = Path::new(mount).join(own);
    let outside = own.split('/').any(|part| part == "..");
    (is_cgroup(&path) && !outside && is_own(&path)).then_some(path)
}

/// A directory of a cgroup v2 hierarchy.
fn is_cgroup(path: &Path) -> bool {
    const CGROUP2_SUPER_MAGIC: u64 = 0x6367_7270;
    rustix::fs::statfs(path).is_ok_and(|fs| u64::try_from(fs.f_type) == Ok(CGROUP2_SUPER_MAGIC))
}

/// In a cgroup namespace the same path means another cgroup than in the mount of
/// somebody outside. Where the kernel cannot tell, mountinfo does.
fn is_own(path: &Path) -> bool {
    let inode = rustix::fs::stat(path).map(|stat| stat.st_ino);
    matches!((inode, own_cgroup_id()), (Ok(inode), Some(own)) if inode == own)
}

/// `own` is /proc/self/cgroup, `mounts` is /proc/self/mountinfo.
fn locate(own: &str, mounts: &str) -> Option<PathBuf> {
    let own = Path::new(own.lines().find_map(|line| line.strip_prefix("0::"))?);
    mounts.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        if kind.split(' ').next() != Some("cgroup2") {
            return None;
        }
        let mut fields = mount.split(' ');
        let root = unescape(fields.nth(3)?);
        let point = unescape(fields.next()?);
        // A mount of another part of the hierarchy does not show where we are.
        let below = own.strip_prefix(&root).ok()?;
        let inside = !below.components().any(|part| part.as_os_str() == "..");
        inside.then(|| Path::new(&point).join(below))
    })
}

/// mountinfo writes blanks and backslashes as `\040`.
fn unescape(field: &str) -> String {
    let mut text = String::with_capacity(field.len());
    let mut rest = field;
    while let Some((before, after)) = rest.split_once('\\') {
        text.push_str(before);
        let code = after.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(code) => {
                text.push(char::from(code));
                rest = &after[3..];
            }
            None => {
                text.push('\\');
                rest = after;
            }
        }
    }
    text + rest
}

#[derive(Debug)]
pub struct Cgroup {
    path: PathBuf,
    /// For being born into it; whoever adopts one bears nobody.
    dir: Option<OwnedFd>,
    /// What [`Cgroup::stays_empty`] last found.
    was_empty: bool,
    removed: bool,
}

impl Cgroup {
    pub fn make(path: &Path) -> io::Result<Cgroup> {
        fs::create_dir(path)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = open(path, flags, Mode::empty()).inspect_err(|_| drop(fs::remove_dir(path)))?;
        Ok(Cgroup { path: path.to_owned(), dir: Some(dir), was_empty: false, removed: false })
    }

    /// One that is there already.
    pub fn adopt(path: &Path) -> Option<Cgroup> {
        let path = is_cgroup(path).then(|| path.to_owned())?;
        Some(Cgroup { path, dir: None, was_empty: false, removed: false })
    }

    pub fn dir(&self) -> Option<BorrowedFd<'_>> {
        self.dir.as_ref().map(AsFd::as_fd)
    }

    /// Its inode, and that of the cgroup above it.
    pub fn inodes(&self) -> Option<(u64, u64)> {
        let dir = self.dir.as_ref()?;
        let above = rustix::fs::statat(dir, "..", AtFlags::empty()).ok()?;
        Some((rustix::fs::fstat(dir).ok()?.st_ino, above.st_ino))
    }

    /// One of its files, by what is held and not by its name: somebody may have
    /// mounted something over that.
    fn file(&self, name: &str, flags: OFlags) -> io::Result<OwnedFd> {
        let flags = flags | OFlags::CLOEXEC;
        let try_it = || match &self.dir {
            Some(dir) => openat(dir, name, flags, Mode::empty()),
            None => open(self.path.join(name), flags, Mode::empty()),
        };
        Ok(match try_it() {
            Err(Errno::ACCESS) => {
                self.open_up();
                try_it()?
            }
            other => other?,
        })
    }

    /// A member may have closed it to everybody, but it is ours.
    fn open_up(&self) {
        let _ = match &self.dir {
            Some(dir) => chmod(format!("/proc/self/fd/{}", dir.as_raw_fd()), open_to_all()),
            None => chmod(&self.path, open_to_all()),
        };
    }

    fn write(&self, name: &str, text: &str) -> io::Result<()> {
        // Opened without O_CREAT: with it a missing file reads as EACCES.
        rustix::io::write(self.file(name, OFlags::WRONLY)?, text.as_bytes())?;
        Ok(())
    }

    /// Its links: two, and one for each below it; none once it is removed.
    fn links(&self) -> Option<u64> {
        let stat = match &self.dir {
            Some(dir) => rustix::fs::fstat(dir).ok()?,
            None => rustix::fs::stat(&self.path).ok()?,
        };
        // Its width is not the same on every machine.
        #[allow(clippy::useless_conversion)]
        Some(stat.st_nlink.into())
    }

    /// Moves a process of ours inside.
    pub fn take_in(&self, pid: i32) -> io::Result<()> {
        self.write("cgroup.procs", &pid.to_string())
    }

    /// Kills every member, also those being forked. Absent before kernel 5.14.
    pub fn kill(&self) -> io::Result<()> {
        self.write("cgroup.kill", "1")
    }

    /// What cannot be read may be populated; what is gone is not.
    pub fn is_populated(&self) -> bool {
        match self.file("cgroup.events", OFlags::RDONLY).and_then(|file| procfs::text_of(&file)) {
            Ok(events) => !is_empty(&events),
            Err(_) => !self.is_gone(),
        }
    }

    /// Gone from where it was; if it is held, gone at all.
    fn is_gone(&self) -> bool {
        match &self.dir {
            Some(_) => self.links() == Some(0),
            None => rustix::fs::stat(&self.path).is_err_and(|error| error == Errno::NOENT),
        }
    }

    /// Nobody lives in it, and nobody did when this was last asked.
    pub fn stays_empty(&mut self) -> bool {
        let is_empty = !self.is_populated();
        replace(&mut self.was_empty, is_empty) && is_empty
    }

    /// Waits until nobody lives in it, so long at most. A young cgroup may tell up to
    /// 16 ms late, so that this is only for short waits.
    pub fn wait_until_empty(&self, within: Duration) {
        let Ok(events) = self.file("cgroup.events", OFlags::RDONLY) else { return };
        // Only what has been read can change.
        let populated = procfs::text_of(&events).is_ok_and(|text| !is_empty(&text));
        if let Ok(timeout) = Timespec::try_from(within)
            && populated
        {
            let _ = poll(&mut [PollFd::new(&events, PollFlags::PRI)], Some(&timeout));
        }
    }

    /// The living processes in it and in the cgroups its members made below it.
    pub fn procs(&self) -> Vec<i32> {
        /// A directory's own links; each one below it adds another.
        const NOBODY_BELOW: u64 = 2;
        const PROCS: &str = "cgroup.procs";
        let members = |file: io::Result<OwnedFd>| {
            let text = file.and_then(|file| procfs::text_of(&file)).unwrap_or_default();
            procfs::numbers_in(&text)
        };
        let mut pids = members(self.file(PROCS, OFlags::RDONLY));
        if self.links() != Some(NOBODY_BELOW) {
            self.below(&mut |dir, _, _| {
                let flags = OFlags::RDONLY | OFlags::CLOEXEC;
                let file = openat(dir, PROCS, flags, Mode::empty());
                pids.extend(members(file.map_err(Into::into)));
            });
        }
        pids
    }

    /// See [`below`].
    fn below(&self, visit: &mut dyn FnMut(&OwnedFd, &OwnedFd, &CStr)) {
        if let Ok(top) = self.file(".", OFlags::RDONLY | OFlags::DIRECTORY) {
            below(top, visit);
        }
    }

    /// Processor time used by all who are or were in it or below it.
    pub fn cpu_time(&self) -> Option<Duration> {
        let file = self.file("cpu.stat", OFlags::RDONLY).ok()?;
        usage(&procfs::text_of(&file).ok()?)
    }

    /// Removes it. The kernel refuses while anybody lives in it, so that success
    /// is itself a proof of emptiness.
    pub fn remove(&mut self) -> bool {
        if self.removed {
            return true;
        }
        self.removed = match fs::remove_dir(&self.path) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.is_gone(),
            Err(_) => {
                // Nested runs that were killed leave their cgroups inside ours.
                self.below(&mut |_, above, name| {
                    let _ = unlinkat(above, name, AtFlags::REMOVEDIR);
                });
                fs::remove_dir(&self.path).is_ok()
            }
        };
        self.removed
    }

    /// Nobody is in it, whether or not it can be removed.
    pub fn is_emptied(&mut self) -> bool {
        self.remove() || !self.is_populated()
    }

    /// Moves everybody up into the caller's cgroup, as if never caged.
    pub fn dissolve(&mut self) -> bool {
        /// Members may fork while they are moved.
        const ROUNDS: usize = 100;
        let Some(parent) = self.path.parent().map(|parent| parent.join("cgroup.procs")) else {
            return false;
        };
        for _ in 0..ROUNDS {
            for pid in self.procs() {
                let _ = fs::write(&parent, pid.to_string());
            }
            if !self.is_populated() && self.remove() {
                return true;
            }
        }
        false
    }
}

/// What `cgroup.events` says of everybody in it and below it.
fn is_empty(events: &str) -> bool {
    events.lines().any(|line| line == "populated 0")
}

/// What `cpu.stat` says of the whole.
fn usage(stat: &str) -> Option<Duration> {
    let micros = stat.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
    micros.trim().parse().ok().map(Duration::from_micros)
}

/// Visits all cgroups below one, the deepest first: each, the one above it, and its name
/// there. Members may have nested them deeper than any path can say, or than there are
/// descriptors: it goes step by step, down and up again, and holds only where it is.
fn below(top: OwnedFd, visit: &mut dyn FnMut(&OwnedFd, &OwnedFd, &CStr)) {
    let mut here = top;
    let mut path: Vec<CString> = Vec::new();
    let mut ahead = vec![names_in(&here)];
    loop {
        if let Some(name) = ahead.last_mut().and_then(Vec::pop) {
            if let Ok(dir) = enter(&here, &name) {
                ahead.push(names_in(&dir));
                path.push(name);
                here = dir;
            }
            continue;
        }
        ahead.pop();
        let (Some(name), Ok(above)) = (path.pop(), enter(&here, c"..")) else { return };
        visit(&here, &above, &name);
        here = above;
    }
}

fn enter(dir: &OwnedFd, name: &CStr) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(dir, name, flags, Mode::empty()) {
        Err(Errno::ACCESS) => {
            chmodat(dir, name, open_to_all(), AtFlags::empty())?;
            openat(dir, name, flags, Mode::empty())
        }
        other => other,
    }
}

/// As the kernel makes them.
fn open_to_all() -> Mode {
    Mode::from_raw_mode(0o755)
}

/// The directories in one.
fn names_in(dir: &OwnedFd) -> Vec<CString> {
    let entries = Dir::read_from(dir).into_iter().flatten().flatten();
    let below = entries.filter(|entry| entry.file_type() == FileType::Directory);
    let names = below.map(|entry| entry.file_name().to_owned());
    names.filter(|name| !matches!(name.to_bytes(), b"." | b"..")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    const HYBRID: &str = "\
30 25 0:26 / /sys/fs/cgroup ro - tmpfs tmpfs ro
31 30 0:27 / /sys/fs/cgroup/unified rw shared:10 - cgroup2 cgroup2 rw,nsdelegate
32 30 0:28 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd";

    fn at(own: &str, mounts: &str) -> Option<String> {
        locate(own, mounts).map(|path| path.to_string_lossy().into_owned())
    }

    #[test]
    fn unified_hybrid_and_partial_mounts() {
        let own = "3:pids:/x\n0::/user.slice/a\n";
        assert_eq!(at(own, HYBRID).as_deref(), Some("/sys/fs/cgroup/unified/user.slice/a"));
        let unified = "30 25 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw";
        assert_eq!(at("0::/\n", unified).as_deref(), Some("/sys/fs/cgroup/"));
        let part = "30 25 0:26 /docker/c1 /sys/fs/cgroup rw - cgroup2 cgroup2 rw";
        assert_eq!(at("0::/docker/c1/x\n", part).as_deref(), Some("/sys/fs/cgroup/x"));
        let blank = "30 25 0:26 / /my\\040cgroups rw - cgroup2 cgroup2 rw";
        assert_eq!(at("0::/a\n", blank).as_deref(), Some("/my cgroups/a"));
    }

    #[test]
    fn what_is_not_shown_is_not_ours() {
        assert_eq!(at("3:pids:/x\n", HYBRID), None);
        assert_eq!(at("0::/../a\n", HYBRID), None);
        let elsewhere = "30 25 0:26 /docker/c2 /sys/fs/cgroup rw - cgroup2 cgroup2 rw";
        assert_eq!(at("0::/docker/c1\n", elsewhere), None);
        assert_eq!(at("", ""), None);
    }

    #[test]
    fn the_dead_are_still_counted() {
        let name = format!("fullstop-test-{}", std::process::id());
        let made = Site::find().map(|site| Cgroup::make(&site.child(name.as_ref())));
        let Ok(Ok(mut cgroup)) = made else {
            return eprintln!("skipped: no cgroup to be had here");
        };
        let busy = "read line; i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
        let mut shell =
            Command::new("sh").args(["-c", busy]).stdin(Stdio::piped()).spawn().expect("a shell");
        let inside = cgroup.take_in(i32::try_from(shell.id()).expect("a pid"));
        shell.stdin.take().expect("a pipe").write_all(b"go\n").expect("somebody reads");
        shell.wait().expect("an end");
        let used = cgroup.cpu_time();
        assert!(cgroup.remove() && inside.is_ok());
        assert!(used.is_none_or(|used| used > Duration::from_millis(30)), "{used:?}");
        assert_eq!(cgroup.cpu_time(), None);
    }

    #[test]
    fn time_used_is_the_total() {
        let stat = "user_usec 1000000\nusage_usec 3500000\nsystem_usec 2500000\n";
        assert_eq!(usage(stat), Some(Duration::from_millis(3500)));
        assert_eq!(usage("nr_periods 0\n"), None);
    }
}
