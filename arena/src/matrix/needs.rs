//! What a member needs that not every machine gives.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use super::member::Member;
use crate::{Need, PLAIN_UID, User};

pub fn of(member: &Member, user: User) -> Vec<Need> {
    match (member.name, user) {
        ("namespaces", User::Plain) => vec![Need::Check(user_namespaces)],
        ("setuid-root", _) => vec![Need::Check(setuid_works)],
        _ => Vec::new(),
    }
}

/// Many machines forbid user namespaces to those who are not root.
fn user_namespaces() -> Result<(), String> {
    let made = Command::new("unshare")
        .args(["--user", "--pid", "--fork", "true"])
        .uid(PLAIN_UID)
        .gid(PLAIN_UID)
        .current_dir("/")
        .stderr(Stdio::null())
        .status();
    if made.is_ok_and(|status| status.success()) {
        return Ok(());
    }
    Err("this machine gives no user namespaces to plain users".into())
}

/// Inside some containers no program can gain privileges.
fn setuid_works() -> Result<(), String> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if status.lines().any(|line| line.split_whitespace().eq(["NoNewPrivs:", "1"])) {
        return Err("no_new_privs is set: setuid has no effect here".into());
    }
    Ok(())
}
