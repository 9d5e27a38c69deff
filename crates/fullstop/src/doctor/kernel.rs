//! What the kernel does when it is tried.

use super::cage::Had;
use super::finding::{Area, Finding, Level};
use fullstop_cage::linux::probe;
use fullstop_cage::plain;
use fullstop_core::cage::CageKind;
use std::io;

pub fn findings(had: &Had) -> Vec<Finding> {
    let held_by_cgroup = had.kind() == Some(CageKind::Cgroup);
    let mut found = children();
    found.extend(cgroups(had));
    found.extend([subreaper(), pidfd(), pidfs(held_by_cgroup), proc(had), hidepid(held_by_cgroup)]);
    found
}

fn green(name: &'static str, what: &str) -> Finding {
    Finding::green(Area::Kernel, name, what)
}

/// Something that the kernel, or whoever filters for it, refuses.
fn refused(name: &'static str, what: &str, error: &io::Error, next: &str) -> Finding {
    Finding::yellow(Area::Kernel, name, format!("{what}: {}", plain(error)), next)
}

fn children() -> Vec<Finding> {
    let child = match probe::child() {
        Ok(child) => child,
        Err(error) => {
            let what = format!("no process can be made: {}", plain(&error));
            return vec![Finding::red(Area::Kernel, "clone3", what, "see the limits below")];
        }
    };
    let clone3 = match &child.clone3 {
        Ok(()) => green("clone3", "processes are made with it"),
        Err(error) => refused(
            "clone3",
            "refused, processes are made in a slower way",
            error,
            "let the seccomp filter pass clone3 (a newer container engine does), or kernel 5.3",
        ),
    };
    let listed = if child.listed {
        "/proc lists the children of a process"
    } else {
        "/proc does not list children: it is searched whole instead, which takes longer"
    };
    let told = if child.exit_told {
        "an exit status outlives the keeper that reaped it"
    } else {
        "not here (kernel 6.15): when a keeper is killed, an exit status may be lost"
    };
    vec![clone3, green("proc-children", listed), green("pidfd-exit", told)]
}

fn cgroups(had: &Had) -> [Finding; 2] {
    const INTO: &str = "clone-into-cgroup";
    const KILL: &str = "cgroup-kill";
    let Ok(tried) = &had.cgroup else {
        return [INTO, KILL].map(|name| green(name, "not tried: there is no cgroup to try it in"));
    };
    let into = match &tried.born {
        Ok(()) => green(INTO, "a leader is born inside its cgroup"),
        Err(error) => refused(
            INTO,
            "refused, a leader is moved inside before it begins, which takes longer",
            error,
            "let the seccomp filter pass clone3, or kernel 5.7",
        ),
    };
    let kill = match &tried.kill {
        Ok(()) => green(KILL, "a cgroup is killed as a whole"),
        Err(_) if !tried.holds() => green(KILL, "not tried: the cgroup lets nobody in"),
        Err(error) => refused(KILL, "missing, members are killed one by one", error, "kernel 5.14"),
    };
    [into, kill]
}

fn subreaper() -> Finding {
    let next = "kernel 3.4, or let the seccomp filter pass prctl";
    let missing = |why: String| Finding::red(Area::Kernel, "subreaper", why, next);
    match probe::subreaper() {
        Ok(true) => green("subreaper", "orphans come to their keeper"),
        Ok(false) => missing("orphans do not come to a subreaper: no run can be kept".to_owned()),
        Err(error) => missing(format!("it could not be tried: {}", plain(&error))),
    }
}

fn pidfd() -> Finding {
    match probe::pidfd_opens() {
        Ok(()) => green("pidfd", "a process is held by a descriptor, not by its number"),
        Err(error) => refused(
            "pidfd",
            "refused, only children can be held, and a sweep finds nobody",
            &error,
            "let the seccomp filter pass pidfd_open, or kernel 5.3",
        ),
    }
}

/// It matters most where a sweep has no cgroup to go by.
fn pidfs(held_by_cgroup: bool) -> Finding {
    if probe::has_pidfs() {
        return green("pidfs", "a process is known again after a restart of ours");
    }
    let level = if held_by_cgroup { Level::Green } else { Level::Yellow };
    let what = "no inodes: after a restart of ours a process is known again by its start time and \
                place, and left alone in doubt";
    Finding::at(level, Area::Kernel, "pidfs", what, "kernel 6.9, or a cgroup")
}

fn proc(had: &Had) -> Finding {
    if had.proc_is_ours {
        return green("proc", "/proc shows our own pid namespace");
    }
    let level = if had.kind().is_some() { Level::Yellow } else { Level::Red };
    let what = "/proc does not show our own pid namespace: survivors cannot be named";
    let next = "mount -t proc proc /proc in this pid namespace (unshare --mount-proc does)";
    Finding::at(level, Area::Kernel, "proc", what, next)
}

/// Hidden are those of other users: members that became root, for a plain user.
fn hidepid(held_by_cgroup: bool) -> Finding {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let Some(hidden) = hidden_by(&mounts) else {
        return green("hidepid", "/proc shows the processes of all users");
    };
    let is_root = rustix::process::geteuid().is_root();
    let level = if held_by_cgroup || is_root { Level::Green } else { Level::Yellow };
    let what = format!("/proc is mounted with hidepid={hidden}: members of other users are hidden");
    let next = "mount -o remount,hidepid=0 /proc as root, or a cgroup";
    Finding::at(level, Area::Kernel, "hidepid", what, next)
}

/// The option of the /proc that is on top, as /proc/self/mountinfo tells it.
fn hidden_by(mounts: &str) -> Option<&str> {
    let top = mounts.lines().rfind(|line| line.split(' ').nth(4) == Some("/proc"))?;
    let mut options = top.split([' ', ',']).filter_map(|option| option.strip_prefix("hidepid="));
    options.next_back().filter(|value| !matches!(*value, "0" | "off"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidepid_in_old_and_new_words() {
        let mount =
            |options: &str| format!("23 1 0:21 / /proc rw,relatime - proc proc {options}\n");
        assert_eq!(hidden_by(&mount("rw")), None);
        assert_eq!(hidden_by(&mount("rw,hidepid=0")), None);
        assert_eq!(hidden_by(&mount("rw,hidepid=off")), None);
        assert_eq!(hidden_by(&mount("rw,gid=5,hidepid=2")), Some("2"));
        assert_eq!(hidden_by(&mount("rw,hidepid=invisible")), Some("invisible"));
        // The one mounted last is the one that is seen.
        assert_eq!(hidden_by(&(mount("rw,hidepid=2") + &mount("rw"))), None);
    }
}
