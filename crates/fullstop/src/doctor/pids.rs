//! How many processes the cgroups around us allow: `pids.max` of our own and of all
//! above it, in cgroup v2 or in the v1 hierarchy that has the controller.

use fullstop_cage::linux::probe::own_cgroup;
use std::fs;
use std::path::{Path, PathBuf};

/// One cgroup's limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    pub dir: PathBuf,
    pub max: u64,
    pub current: u64,
}

impl Limit {
    pub fn left(&self) -> u64 {
        self.max.saturating_sub(self.current)
    }

    /// Nothing, where there is no limit.
    fn read(dir: &Path) -> Option<Limit> {
        let text = |name: &str| fs::read_to_string(dir.join(name)).ok();
        let max = parse_max(&text("pids.max")?)?;
        let current = text("pids.current")?.trim().parse().ok()?;
        Some(Limit { dir: dir.to_owned(), max, current })
    }
}

/// `max` stands for none.
pub fn parse_max(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

/// The one with the least room.
pub fn tightest() -> Option<Limit> {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let start = [own_cgroup(), v1_place(&own, &mounts)].into_iter().flatten();
    start.flat_map(|dir| above(&dir)).filter_map(|dir| Limit::read(&dir)).min_by_key(Limit::left)
}

/// It and all above it, as far as they are cgroups.
fn above(dir: &Path) -> Vec<PathBuf> {
    let line = dir.ancestors().take_while(|dir| dir.join("cgroup.procs").exists());
    line.map(Path::to_owned).collect()
}

/// Where cgroup v1 counts processes. `own` is /proc/self/cgroup, `mounts` is
/// /proc/self/mountinfo.
fn v1_place(own: &str, mounts: &str) -> Option<PathBuf> {
    let has = |list: &str| list.split(',').any(|controller| controller == "pids");
    let own = own.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        has(controllers).then(|| Path::new(path))
    })?;
    mounts.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        let mut kind = kind.split(' ');
        if kind.next() != Some("cgroup") || !has(kind.nth(1)?) {
            return None;
        }
        let mut fields = mount.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        Some(Path::new(point).join(own.strip_prefix(root).ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn max_is_no_limit() {
        assert_eq!(parse_max("max\n"), None);
        assert_eq!(parse_max("4915\n"), Some(4915));
        assert_eq!(parse_max(""), None);
    }

    #[test]
    fn the_v1_hierarchy_that_counts() {
        let own = "9:name=systemd:/\n8:cpu,pids:/user/a\n0::/x\n";
        let mounts = "\
31 30 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
32 30 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
33 30 0:29 /user /sys/fs/cgroup/pids rw - cgroup cgroup rw,cpu,pids";
        assert_eq!(v1_place(own, mounts), Some(PathBuf::from("/sys/fs/cgroup/pids/a")));
        assert_eq!(v1_place("0::/x\n", mounts), None);
        assert_eq!(v1_place("8:pids:/elsewhere\n", mounts), None);
    }

    #[test]
    fn the_least_room_is_what_is_left() {
        let limit = |max, current| Limit { dir: PathBuf::new(), max, current };
        assert_eq!((limit(10, 4).left(), limit(3, 4).left()), (6, 0));
    }
}
