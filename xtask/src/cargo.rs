//! Cargo, asked and not guessed: where it puts programs is its own business.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde::Deserialize;

use crate::Outcome;

/// The cargo that runs us, in the workspace's root.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// The root of the workspace.
pub fn root() -> PathBuf {
    let own = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    own.parent().map(PathBuf::from).unwrap_or(own)
}

/// Builds in release, with these words added to `cargo build`, and returns the
/// programs by name.
pub fn build(words: &[&str], target_dir: Option<&PathBuf>) -> Outcome<HashMap<String, PathBuf>> {
    let mut command = cargo();
    command
        .args(["build", "--release", "--message-format=json-render-diagnostics"])
        .args(words)
        .stderr(Stdio::inherit());
    if let Some(dir) = target_dir {
        command.env("CARGO_TARGET_DIR", dir);
    }
    let output = command.output()?;
    if !output.status.success() {
        return Err(format!("cargo build {} failed", words.join(" ")).into());
    }
    Ok(executables(&String::from_utf8_lossy(&output.stdout)))
}

fn executables(messages: &str) -> HashMap<String, PathBuf> {
    #[derive(Deserialize)]
    struct Message {
        executable: Option<PathBuf>,
        target: Option<Target>,
    }
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Message>(line).ok())
        .filter_map(|message| Some((message.target?.name, message.executable?)))
        .collect()
}

#[derive(Deserialize)]
pub struct Metadata {
    pub target_directory: PathBuf,
    pub packages: Vec<Package>,
}

#[derive(Deserialize)]
pub struct Package {
    pub name: String,
    pub manifest_path: PathBuf,
    pub rust_version: Option<String>,
    pub targets: Vec<Target>,
}

#[derive(Deserialize)]
pub struct Target {
    pub name: String,
    pub kind: Vec<String>,
}

impl Metadata {
    pub fn ask() -> Outcome<Self> {
        let output = cargo()
            .args(["metadata", "--no-deps", "--format-version", "1"])
            .stderr(Stdio::inherit())
            .output()?;
        if !output.status.success() {
            return Err("cargo metadata failed".into());
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// The names of a package's targets of one kind: `test`, `bin`, `lib`.
    pub fn targets(&self, package: &str, kind: &str) -> Vec<&str> {
        self.packages
            .iter()
            .filter(|p| p.name == package)
            .flat_map(|p| &p.targets)
            .filter(|target| target.kind.iter().any(|k| k == kind))
            .map(|target| target.name.as_str())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_artifacts_with_a_program_count() {
        let messages = r#"{"reason":"compiler-artifact","target":{"name":"core","kind":["lib"]},"executable":null}
{"reason":"compiler-artifact","target":{"name":"zoo","kind":["bin"]},"executable":"/t/release/zoo"}
not json
{"reason":"build-finished","success":true}"#;
        let found = executables(messages);
        assert_eq!(found.len(), 1);
        assert_eq!(found["zoo"], PathBuf::from("/t/release/zoo"));
    }
}
