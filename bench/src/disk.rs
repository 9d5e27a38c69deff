//! Which filesystem a path is on.

use std::path::Path;

/// The type of the filesystem, as the kernel names it: `ext4`, `tmpfs`.
pub fn filesystem(path: &Path) -> Option<String> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    locate(&mounts, &path.canonicalize().ok()?)
}

/// Whether it is only memory that looks like a disk.
pub fn is_memory(path: &Path) -> bool {
    filesystem(path).is_some_and(|kind| ["tmpfs", "ramfs"].contains(&kind.as_str()))
}

/// The innermost mount counts, and of several at one point the last.
fn locate(mounts: &str, path: &Path) -> Option<String> {
    mounts
        .lines()
        .filter_map(|line| {
            let (fields, filesystem) = line.split_once(" - ")?;
            let point = Path::new(fields.split(' ').nth(4)?);
            let kind = filesystem.split(' ').next()?;
            path.starts_with(point).then(|| (point.components().count(), kind))
        })
        .max_by_key(|&(depth, _)| depth)
        .map(|(_, kind)| kind.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_mount_counts() {
        let mounts = "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n\
            30 22 0:25 / /tmp rw shared:3 - tmpfs tmpfs rw\n";
        assert_eq!(locate(mounts, Path::new("/tmp/a")).as_deref(), Some("tmpfs"));
        assert_eq!(locate(mounts, Path::new("/tmpa")).as_deref(), Some("ext4"));
    }
}
