//! The cgroup v2 this process is in, as a directory.

use std::fs;
use std::path::{Path, PathBuf};

/// None where there is no cgroup v2, or where we may not make one below ours.
pub fn own() -> Option<PathBuf> {
    let membership = fs::read_to_string("/proc/self/cgroup").ok()?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let dir = locate(&membership, &mounts)?;
    let probe = dir.join(format!("probe-{}", std::process::id()));
    fs::create_dir(&probe).ok()?;
    fs::remove_dir(&probe).ok()?;
    Some(dir)
}

fn locate(membership: &str, mounts: &str) -> Option<PathBuf> {
    let path = membership.lines().find_map(|l| l.strip_prefix("0::"))?;
    mounts.lines().find_map(|line| {
        let (fields, filesystem) = line.split_once(" - ")?;
        if !filesystem.starts_with("cgroup2 ") {
            return None;
        }
        let mut fields = fields.split(' ').skip(3);
        let (root, mount_point) = (fields.next()?, fields.next()?);
        let below = Path::new(path).strip_prefix(root).ok()?;
        Some(Path::new(mount_point).join(below))
    })
}

pub fn enter(dir: &Path) -> std::io::Result<()> {
    fs::write(dir.join("cgroup.procs"), "0")
}

/// Removes a cgroup and those below it. Members are killed first: they can only
/// be what this bench started.
pub fn remove(dir: &Path) {
    let _ = fs::write(dir.join("cgroup.kill"), "1");
    for _ in 0..500 {
        remove_below(dir);
        if fs::remove_dir(dir).is_ok() || !dir.exists() {
            return;
        }
        // The killed are still dying, and nothing tells when a cgroup can go.
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    eprintln!("bench: {} could not be removed", dir.display());
}

fn remove_below(dir: &Path) {
    let Ok(entries) = fs::read_dir(dir) else {
        return;
    };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_below(&entry.path());
            let _ = fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
        39 31 0:36 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n\
        41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";

    #[test]
    fn finds_the_unified_mount_of_a_hybrid_layout() {
        let dir = locate("8:pids:/\n0::/user/me\n", HYBRID);
        assert_eq!(dir, Some(PathBuf::from("/sys/fs/cgroup/unified/user/me")));
    }

    #[test]
    fn a_mount_that_shows_a_part_only_is_taken_for_that_part() {
        let mounts = "41 31 0:38 /user /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        assert_eq!(locate("0::/user/me\n", mounts), Some(PathBuf::from("/sys/fs/cgroup/me")));
        assert_eq!(locate("0::/system\n", mounts), None);
    }
}
