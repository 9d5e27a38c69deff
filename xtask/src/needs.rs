//! Programs of the system that tests and benches use, installed when missing.

use std::path::{Path, PathBuf};
use std::process::Command;

pub struct Need {
    pub program: &'static str,
    pub package: &'static str,
    /// What cannot be done without it.
    pub purpose: &'static str,
}

const fn need(program: &'static str, package: &'static str, purpose: &'static str) -> Need {
    Need { program, package, purpose }
}

pub const TESTS: &[Need] = &[
    need("unshare", "util-linux", "every arena test: each runs in a pid namespace"),
    need("setpriv", "util-linux", "the tests as an unprivileged user"),
    need("losetup", "util-linux", "the frozen filesystem"),
    need("fsfreeze", "util-linux", "the frozen filesystem"),
    need("mkfs.ext4", "e2fsprogs", "the frozen filesystem"),
    need("strace", "strace", "fault injection"),
    need("perl", "perl", "members in the hands of a tracer"),
    need("bash", "bash", "the terminal tests, the completions"),
    need("vi", "vim-tiny", "an editor on the terminal of a run"),
    need("nano", "nano", "another editor there"),
    need("less", "less", "a pager there"),
    need("htop", "htop", "a monitor there"),
    need("tmux", "tmux", "a terminal with a mind of its own around it"),
    need("zsh", "zsh", "the completions for zsh"),
    need("fish", "fish", "the completions for fish"),
    need("groff", "groff-base", "the man pages"),
    need("mandoc", "mandoc", "the man pages"),
];

pub const PEERS: &[Need] = &[
    need("unshare", "util-linux", "the bench: it runs in a pid namespace"),
    need("tini", "tini", "the row of tini"),
    need("dumb-init", "dumb-init", "the row of dumb-init"),
    need("bwrap", "bubblewrap", "the row of bubblewrap"),
    need("timeout", "coreutils", "the row of timeout"),
    need("tmux", "tmux", "the row of tmux"),
];

pub const SOAK: &[Need] = &[need("unshare", "util-linux", "a soak: it runs in a pid namespace")];

/// Where a program is: in `PATH`, or where root's programs are, which are not
/// always in it.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|dir| dir.join(program))
        .find(|candidate| candidate.is_file())
}

/// Installs what is missing if it can be, and says what will be skipped if not.
pub fn provide(needs: &[Need]) {
    let missing = missing(needs);
    if missing.is_empty() {
        return;
    }
    let mut packages: Vec<&str> = missing.iter().map(|need| need.package).collect();
    packages.sort_unstable();
    packages.dedup();
    let names = packages.join(" ");
    if find("apt-get").is_none() {
        eprintln!("xtask: no apt-get here; please install: {names}");
    } else if is_root() {
        eprintln!("xtask: installing {names}");
        install(&packages);
    } else {
        eprintln!("xtask: not root; please run: sudo apt-get install {names}");
    }
    for need in self::missing(needs) {
        eprintln!("xtask: skipped without {}: {}", need.program, need.purpose);
    }
}

fn missing(needs: &[Need]) -> Vec<&Need> {
    needs.iter().filter(|need| find(need.program).is_none()).collect()
}

fn install(packages: &[&str]) {
    // A fresh machine has no package lists; one in use should not wait for them.
    if !apt_get(&["install"], packages) {
        apt_get(&["update"], &[]);
        apt_get(&["install"], packages);
    }
}

fn apt_get(verb: &[&str], packages: &[&str]) -> bool {
    Command::new("apt-get")
        .args(["-qq", "-y", "--no-install-recommends"])
        .args(verb)
        .args(packages)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdout(std::process::Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

pub fn is_root() -> bool {
    // The owner of our own /proc entry is who we are.
    std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}

/// Says what this machine itself keeps from being tested.
pub fn limits_of_this_machine() {
    if !is_root() {
        eprintln!("xtask: not root; arena tests that need root are counted as skipped");
    }
    if !Path::new("/dev/fuse").exists() {
        eprintln!("xtask: no /dev/fuse; the hung-FUSE test is counted as skipped");
    }
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    if !mounts.contains(" - cgroup2 ") {
        eprintln!("xtask: no cgroup v2; tests of the cgroup cage are counted as skipped");
    }
}
