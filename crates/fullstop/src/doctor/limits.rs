//! Limits that a tree of processes may run into.

use super::finding::{Area, Finding, Level};
use super::pids;
use rustix::process::{Resource, geteuid, getrlimit};
use std::fs;
use std::os::unix::fs::MetadataExt;

pub fn findings() -> Vec<Finding> {
    let found = [processes(), Some(cgroup()), pid_max(), Some(descriptors()), Some(ptys())];
    found.into_iter().flatten().collect()
}

/// Nine tenths used is little room; nothing left is none.
fn level(used: u64, max: u64) -> Level {
    if used >= max {
        Level::Red
    } else if used.saturating_mul(10) >= max.saturating_mul(9) {
        Level::Yellow
    } else {
        Level::Green
    }
}

fn finding(level: Level, name: &'static str, what: String, next: &str) -> Finding {
    Finding::at(level, Area::Limits, name, what, next)
}

/// RLIMIT_NPROC counts the threads of a user, and does not bind root.
fn processes() -> Option<Finding> {
    let uid = geteuid().as_raw();
    let used = tasks_of(uid)?;
    let next = "ulimit -u as far as it goes, then nproc in /etc/security/limits.conf";
    Some(match getrlimit(Resource::Nproc).current {
        None => finding(Level::Green, "nproc", format!("no limit, {used} tasks in use"), next),
        Some(max) if uid == 0 => {
            let what = format!("{max}, which does not bind root, {used} tasks in use");
            finding(Level::Green, "nproc", what, next)
        }
        Some(max) => {
            finding(level(used, max), "nproc", format!("{used} of {max} tasks in use"), next)
        }
    })
}

/// How many threads a user has, as far as /proc shows them.
fn tasks_of(uid: u32) -> Option<u64> {
    /// A directory's own links; each one below it adds another.
    const OWN_LINKS: u64 = 2;
    let entries = fs::read_dir("/proc").ok()?.flatten();
    let processes = entries
        .filter(|entry| entry.file_name().to_str().is_some_and(|name| name.parse::<u32>().is_ok()));
    let tasks = processes.filter_map(|entry| {
        // What it runs as is told by the owner of its tasks.
        let tasks = fs::metadata(entry.path().join("task")).ok()?;
        (tasks.uid() == uid).then(|| tasks.nlink().saturating_sub(OWN_LINKS))
    });
    Some(tasks.sum())
}

fn cgroup() -> Finding {
    let next = "raise it: systemd TasksMax=, docker or podman run --pids-limit";
    match pids::tightest() {
        None => finding(Level::Green, "pids-max", "no cgroup limits them".to_owned(), next),
        Some(limit) => {
            let pids::Limit { dir, max, current } = &limit;
            let what = format!("{current} of {max} tasks in use in {}", dir.display());
            finding(level(*current, *max), "pids-max", what, next)
        }
    }
}

fn pid_max() -> Option<Finding> {
    let max = number("/proc/sys/kernel/pid_max")?;
    let used = tasks_in(&fs::read_to_string("/proc/loadavg").ok()?)?;
    let what = format!("{used} of {max} process ids in use on this machine");
    Some(finding(level(used, max), "pid-max", what, "sysctl kernel.pid_max=4194304 as root"))
}

/// The number of all tasks in /proc/loadavg: `0.20 0.18 0.12 1/80 11206`.
fn tasks_in(loadavg: &str) -> Option<u64> {
    loadavg.split(' ').nth(3)?.split_once('/')?.1.parse().ok()
}

/// A keeper raises the soft limit to the hard one, for a census may hold many.
fn descriptors() -> Finding {
    /// Enough for a keeper, and for the usual command.
    const ENOUGH: u64 = 1024;
    let limit = getrlimit(Resource::Nofile);
    let shown = |limit: Option<u64>| limit.map_or("no limit".to_owned(), |max| max.to_string());
    let level =
        if limit.maximum.is_some_and(|max| max < ENOUGH) { Level::Yellow } else { Level::Green };
    let what =
        format!("{} for a command, {} for its keeper", shown(limit.current), shown(limit.maximum));
    finding(level, "nofile", what, "raise nofile in /etc/security/limits.conf (LimitNOFILE=)")
}

fn ptys() -> Finding {
    let count = |name: &str| number(&format!("/proc/sys/kernel/pty/{name}"));
    match (count("nr"), count("max")) {
        (Some(used), Some(max)) => {
            let next = "close terminals, or sysctl kernel.pty.max=8192 as root";
            finding(level(used, max), "ptys", format!("{used} of {max} in use"), next)
        }
        _ => {
            let what = "this kernel shows no pseudo-terminals".to_owned();
            finding(Level::Yellow, "ptys", what, "mount -t devpts devpts /dev/pts as root")
        }
    }
}

fn number(path: &str) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nine_tenths_is_little_room() {
        assert_eq!(level(0, 100), Level::Green);
        assert_eq!(level(89, 100), Level::Green);
        assert_eq!(level(90, 100), Level::Yellow);
        assert_eq!(level(100, 100), Level::Red);
        assert_eq!(level(1, 0), Level::Red);
        assert_eq!(level(1, u64::MAX), Level::Green);
    }

    #[test]
    fn all_tasks_of_the_machine() {
        assert_eq!(tasks_in("0.20 0.18 0.12 1/80 11206\n"), Some(80));
        assert_eq!(tasks_in(""), None);
    }

    #[test]
    fn a_user_has_its_own_tasks_and_no_others() {
        const NOBODY_EVER: u32 = u32::MAX - 7;
        let own = fs::metadata("/proc/self/task").expect("/proc").nlink() - 2;
        assert!(tasks_of(geteuid().as_raw()).expect("/proc") >= own);
        assert_eq!(tasks_of(NOBODY_EVER), Some(0));
    }
}
