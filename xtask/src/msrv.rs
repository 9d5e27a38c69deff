//! `cargo xtask msrv`: the minimum Rust version is stated once, the same everywhere, and
//! tried by the compiler that CI has.

use std::path::Path;
use std::process::Command;

use crate::Outcome;
use crate::cargo::{Metadata, root};

/// Where it is stated, for every crate to inherit.
const MANIFEST: &str = "Cargo.toml";
const INHERITED: &str = "rust-version.workspace = true";
/// Clippy takes the version of the manifest, unless one of these says another.
const CLIPPY: [&str; 2] = ["clippy.toml", ".clippy.toml"];

pub fn run() -> Outcome<bool> {
    let root = root();
    let manifest = std::fs::read_to_string(root.join(MANIFEST))?;
    let minimum = value(&manifest, "rust-version").ok_or("Cargo.toml states no rust-version")?;
    let mut faults = Vec::new();
    for package in Metadata::ask()?.packages {
        let manifest = std::fs::read_to_string(&package.manifest_path)?;
        let resolved = package.rust_version.as_deref();
        faults.extend(fault_of_crate(&package.name, &manifest, resolved, minimum));
    }
    for name in CLIPPY {
        // There need not be any.
        let text = std::fs::read_to_string(root.join(name)).unwrap_or_default();
        faults.extend(fault_of_clippy(name, &text, minimum));
    }
    faults.extend(fault_of_readme(&std::fs::read_to_string(root.join("README.md"))?, minimum));
    let compiler = compiler()?;
    match tried(&compiler, minimum) {
        Tried::Yes => println!("minimum Rust {minimum}: tried, this compiler is it"),
        Tried::No => println!(
            "minimum Rust {minimum}: NOT TRIED; this is Rust {compiler}, and only {minimum} can tell"
        ),
        Tried::TooOld => {
            faults.push(format!("this is Rust {compiler}; at least {minimum} is needed"));
        }
    }
    for fault in &faults {
        eprintln!("xtask: {fault}");
    }
    Ok(faults.is_empty())
}

/// The value of `name = "value"`, on a line of its own.
fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let value = line.strip_prefix(name)?.trim_start().strip_prefix('=')?.trim();
        value.strip_prefix('"')?.split('"').next()
    })
}

fn fault_of_crate(
    name: &str,
    manifest: &str,
    resolved: Option<&str>,
    minimum: &str,
) -> Option<String> {
    if resolved != Some(minimum) {
        let stated = resolved.unwrap_or("none");
        return Some(format!("{name} states rust-version {stated}, the workspace {minimum}"));
    }
    let inherits = manifest.lines().any(|line| line.trim() == INHERITED);
    (!inherits).then(|| format!("{name} states its own rust-version; write `{INHERITED}`"))
}

fn fault_of_clippy(file: &str, text: &str, minimum: &str) -> Option<String> {
    let msrv = value(text, "msrv").filter(|&msrv| msrv != minimum)?;
    Some(format!("{file} states msrv {msrv}, Cargo.toml {minimum}"))
}

fn fault_of_readme(text: &str, minimum: &str) -> Option<String> {
    let stated = text.split("Rust ").skip(1).find_map(|rest| {
        let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
        let version = rest[..end.unwrap_or(rest.len())].trim_end_matches('.');
        (!version.is_empty()).then_some(version)
    });
    let stated = stated.unwrap_or("none");
    (stated != minimum).then(|| format!("README states Rust {stated}, Cargo.toml {minimum}"))
}

#[derive(Debug, PartialEq, Eq)]
enum Tried {
    Yes,
    /// The compiler is newer: it may know what the minimum does not.
    No,
    TooOld,
}

/// A minimum without a patch is met by every patch of it.
fn tried(compiler: &str, minimum: &str) -> Tried {
    let numbers = |text: &str| -> Vec<u32> {
        text.split(['.', '-', '+']).map_while(|part| part.parse().ok()).collect()
    };
    let (compiler, minimum) = (numbers(compiler), numbers(minimum));
    match compiler.iter().take(minimum.len()).cmp(&minimum) {
        std::cmp::Ordering::Less => Tried::TooOld,
        std::cmp::Ordering::Equal => Tried::Yes,
        std::cmp::Ordering::Greater => Tried::No,
    }
}

/// The version of the compiler that cargo uses.
fn compiler() -> Outcome<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let said = Command::new(&rustc).arg("--version").current_dir(root()).output();
    let said = said.map_err(|error| format!("{}: {error}", Path::new(&rustc).display()))?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let version = said.split(' ').nth(1).ok_or_else(|| format!("rustc says {said:?}"))?;
    Ok(version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_crate_inherits_the_one_version() {
        let fault = |manifest, resolved| fault_of_crate("core", manifest, resolved, "1.95");
        assert_eq!(fault("rust-version.workspace = true\n", Some("1.95")), None);
        for (manifest, resolved) in [
            ("rust-version = \"1.95\"\n", Some("1.95")),
            ("rust-version = \"1.90\"\n", Some("1.90")),
            ("edition = \"2024\"\n", None),
        ] {
            assert!(fault(manifest, resolved).is_some(), "{manifest}");
        }
    }

    #[test]
    fn clippy_may_say_nothing_or_the_same() {
        let fault = |text| fault_of_clippy("clippy.toml", text, "1.95");
        assert_eq!(fault(""), None);
        assert_eq!(fault("msrv = \"1.95\"\n"), None);
        assert!(fault("msrv = \"1.90\"\n").is_some());
    }

    #[test]
    fn the_readme_says_the_same() {
        let fault = |text| fault_of_readme(text, "1.95");
        assert_eq!(fault("one Rust library\nIt needs Linux, Rust 1.95 to build"), None);
        assert_eq!(fault("It needs Rust 1.95."), None);
        assert!(fault("It needs Rust 1.94 to build").is_some());
        assert!(fault("It is written in Rust entirely").is_some());
    }

    #[test]
    fn only_the_minimum_itself_tries_it() {
        assert_eq!(tried("1.95.0", "1.95"), Tried::Yes);
        assert_eq!(tried("1.95.1", "1.95"), Tried::Yes);
        assert_eq!(tried("1.96.0-nightly", "1.95"), Tried::No);
        assert_eq!(tried("2.0.0", "1.95"), Tried::No);
        assert_eq!(tried("1.94.9", "1.95"), Tried::TooOld);
    }
}
