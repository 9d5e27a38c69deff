//! The throw-away cgroup of a world, in the v2 hierarchy wherever it is
//! mounted.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::{Context, Outcome, await_until, ensure};

/// A cgroup directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cgroup(PathBuf);

/// The directory of the cgroup v2 this process is in, if there is such a
/// hierarchy and it is mounted where we can see it.
pub fn own_cgroup() -> Outcome<Cgroup> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").context("/proc/self/mountinfo")?;
    let own = fs::read_to_string("/proc/self/cgroup").context("/proc/self/cgroup")?;
    let own = own
        .lines()
        .find_map(|line| line.strip_prefix("0::"))
        .context("no cgroup v2 in /proc/self/cgroup")?;
    locate(&mounts, own).map(Cgroup).context("no cgroup v2 mount holds our own cgroup")
}

/// Finds the path `own` of the hierarchy below one of its mounts. A mount may
/// show only a part of the hierarchy (field four of mountinfo).
fn locate(mountinfo: &str, own: &str) -> Option<PathBuf> {
    mountinfo.lines().find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        if right.split(' ').next()? != "cgroup2" {
            return None;
        }
        let mut fields = left.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        let below = Path::new(own).strip_prefix(root).ok()?;
        Some(Path::new(&unescape(point)).join(below))
    })
}

/// mountinfo writes blanks in paths as octal numbers.
fn unescape(path: &str) -> String {
    path.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")
}

impl Cgroup {
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Makes a child cgroup.
    pub fn create(&self, name: &str) -> Outcome<Self> {
        let path = self.0.join(name);
        fs::create_dir(&path).context(format!("cannot make the cgroup {}", path.display()))?;
        Ok(Self(path))
    }

    /// Moves the calling process, with all its threads, into this cgroup.
    pub fn enter(&self) -> Outcome {
        let file = self.0.join("cgroup.procs");
        fs::write(&file, "0").context(format!("cannot enter {}", file.display()))
    }

    /// Gives the cgroup to a user, the way a session manager delegates one.
    pub fn delegate(&self, uid: u32) -> Outcome {
        for name in ["", "cgroup.procs", "cgroup.threads", "cgroup.subtree_control"] {
            let path = self.0.join(name);
            std::os::unix::fs::chown(&path, Some(uid), Some(uid))
                .context(format!("chown {}", path.display()))?;
        }
        Ok(())
    }

    /// The cgroups directly below.
    pub fn children(&self) -> Vec<Self> {
        let Ok(entries) = fs::read_dir(&self.0) else {
            return Vec::new();
        };
        let is_dir = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
        entries.flatten().filter(is_dir).map(|entry| Self(entry.path())).collect()
    }

    /// The names of all cgroups beneath that fullstop has made.
    pub fn leftovers(&self) -> Vec<String> {
        let mut found = Vec::new();
        for child in self.children() {
            let name = child.0.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.starts_with("fullstop-") {
                found.push(name);
            }
            found.extend(child.leftovers());
        }
        found
    }

    /// Kills whatever is in it.
    pub fn kill(&self) -> Outcome {
        fs::write(self.0.join("cgroup.kill"), "1").context("cgroup.kill")
    }

    /// Removes it with everything beneath. A cgroup is busy for a moment after
    /// its last process has gone.
    pub fn remove(&self, patience: Duration) -> Outcome {
        for child in self.children() {
            child.remove(patience)?;
        }
        let mut error = None;
        let gone = await_until(patience, || match fs::remove_dir(&self.0) {
            Ok(()) => true,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => true,
            Err(e) => {
                error = Some(e);
                false
            }
        });
        ensure!(gone, "cannot remove {}: {error:?}", self.0.display());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hybrid_layouts_are_found() {
        let mounts = "40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n\
                      41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
        assert_eq!(locate(mounts, "/"), Some(PathBuf::from("/sys/fs/cgroup/unified/")));
        assert_eq!(locate(mounts, "/a/b"), Some(PathBuf::from("/sys/fs/cgroup/unified/a/b")));
    }

    #[test]
    fn a_mount_of_a_part_is_followed() {
        let mounts = "41 31 0:38 /a /my\\040cgroup rw shared:4 - cgroup2 cgroup2 rw\n";
        assert_eq!(locate(mounts, "/a/b"), Some(PathBuf::from("/my cgroup/b")));
        assert_eq!(locate(mounts, "/c"), None);
    }
}
