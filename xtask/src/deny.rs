//! `cargo xtask deny`: licences, duplicates and sources of all that is built, by
//! cargo-deny and what `deny.toml` says.

use std::path::Path;
use std::process::Command;

use crate::Outcome;
use crate::cargo::{Metadata, cargo, root};

/// This version and no other, so that what passes today passes tomorrow.
const VERSION: &str = "0.20.2";
/// Advisories are left out: see `deny.toml`.
const CHECKS: [&str; 3] = ["licenses", "bans", "sources"];

pub fn run() -> Outcome<bool> {
    let tools = Metadata::ask()?.target_directory.join("tools");
    let deny = tools.join("bin/cargo-deny");
    if !is_pinned(&version(&deny)) {
        install(&tools)?;
    }
    let mut check = Command::new(&deny);
    check.args(["--locked", "check"]).args(CHECKS).current_dir(root());
    let status = check.status()?;
    Ok(status.success())
}

/// What it says of itself; nothing if it is not there.
fn version(deny: &Path) -> String {
    let said = Command::new(deny).arg("--version").output();
    said.map(|said| String::from_utf8_lossy(&said.stdout).into_owned()).unwrap_or_default()
}

fn is_pinned(said: &str) -> bool {
    said.trim().strip_prefix("cargo-deny ") == Some(VERSION)
}

/// Built once, into the target directory. Without optimisation: it runs for a second.
fn install(tools: &Path) -> Outcome<()> {
    eprintln!("xtask: installing cargo-deny {VERSION}, which takes a minute or two");
    let status = cargo()
        .args(["install", "--quiet", "--locked", "--force", "--debug"])
        .args(["--config", "profile.dev.debug=false"])
        .arg("--root")
        .arg(tools)
        .arg(format!("cargo-deny@{VERSION}"))
        .status()?;
    if !status.success() {
        return Err(format!("cargo-deny {VERSION} cannot be installed; nothing was checked").into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_version_is_not_taken() {
        assert!(is_pinned(&format!("cargo-deny {VERSION}\n")));
        for said in ["", "cargo-deny", "cargo-deny 0.1.0\n"] {
            assert!(!is_pinned(said), "{said}");
        }
    }
}
