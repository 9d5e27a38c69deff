//! Other ways to run a command, where they install by one command. One that
//! cannot be had stays in the table, with the reason.

use std::path::Path;
use std::process::{Command, Stdio};

use fullstop_bench::plan::{Contender, Role};

use super::words;
use crate::cargo::build;
use crate::{Outcome, needs};

pub fn all(root: &Path, workshop: &Path) -> Vec<Contender> {
    let sources = root.join("bench/peers");
    let mut peers = prefixes();
    peers.extend(rust(&sources, workshop));
    peers.push(library("execa", node(&sources.join("execa"), workshop)));
    peers.push(library("psutil", psutil(&sources.join("psutil"), workshop)));
    peers
}

/// Programs that stand in front of a command.
pub fn prefixes() -> Vec<Contender> {
    let prefix = |name: &str, role, prefix: &[&str]| {
        // By its full path: nobody's figures shall hold a search through PATH.
        let program = needs::find(prefix[0]);
        let missing = program.is_none().then(|| format!("{} is not installed", prefix[0]));
        let mut prefix = words(prefix);
        if let Some(program) = program {
            prefix[0] = program.display().to_string();
        }
        Contender {
            name: name.to_owned(),
            role,
            prefix_at_once: prefix.clone(),
            prefix,
            env: Vec::new(),
            host: None,
            echoes: program_echoes(name),
            missing,
        }
    };
    let mut systemd =
        prefix("systemd-run --scope", Role::Peer, &["systemd-run", "--scope", "--quiet", "--"]);
    if systemd.missing.is_none() && !succeeds(&mut quiet(&systemd.prefix, &["true"])) {
        systemd.missing = Some("systemd does not run here".to_owned());
    }
    vec![
        prefix("tini -s -g", Role::Tini, &["tini", "-s", "-g", "--"]),
        prefix("dumb-init", Role::Peer, &["dumb-init", "--"]),
        prefix(
            "bubblewrap",
            Role::Peer,
            &["bwrap", "--unshare-pid", "--die-with-parent", "--dev-bind", "/", "/", "--"],
        ),
        prefix("timeout -k", Role::Peer, &["timeout", "-k", "5", "600"]),
        systemd,
    ]
}

/// Libraries for Rust: one small program, with a lock file of its own.
fn rust(sources: &Path, workshop: &Path) -> Vec<Contender> {
    let manifest = sources.join("Cargo.toml").display().to_string();
    let built = build(&["--locked", "--manifest-path", &manifest], Some(&workshop.join("peers")))
        .and_then(|programs| {
            let program = programs.get("bench-peers").ok_or("no program was built")?;
            Ok(program.display().to_string())
        })
        .map_err(|error| error.to_string());
    ["process-wrap", "processkit"]
        .map(|name| {
            library(
                name,
                built.clone().map(|program| vec![program, name.to_owned()]).map_err(Into::into),
            )
        })
        .into()
}

pub fn node(sources: &Path, workshop: &Path) -> Outcome<Vec<String>> {
    let dir = workshop.join("execa");
    std::fs::create_dir_all(&dir)?;
    for file in ["package.json", "peer.js"] {
        std::fs::copy(sources.join(file), dir.join(file))?;
    }
    if !dir.join("node_modules/execa").exists() {
        let npm = "npm install --silent --no-audit --no-fund --no-package-lock";
        one_command(npm, &dir)?;
    }
    Ok(vec!["node".to_owned(), dir.join("peer.js").display().to_string()])
}

fn psutil(sources: &Path, workshop: &Path) -> Outcome<Vec<String>> {
    let python = python(workshop, "psutil")?;
    Ok(vec![python, sources.join("peer.py").display().to_string()])
}

/// The bench's own Python, with this package.
pub fn python(workshop: &Path, package: &str) -> Outcome<String> {
    let python = workshop.join("venv/bin/python");
    if !python.exists() {
        one_command("python3 -m venv venv", workshop)?;
    }
    let python = python.display().to_string();
    let import = format!("import {package}");
    if !succeeds(&mut quiet(std::slice::from_ref(&python), &["-c", &import])) {
        one_command(&format!("venv/bin/python -m pip install --quiet {package}"), workshop)?;
    }
    Ok(python)
}

/// A library, in a program that knows `run CMD…` and `serve`.
fn library(name: &str, program: Outcome<Vec<String>>) -> Contender {
    let (program, missing) = match program {
        Ok(program) => (program, None),
        Err(error) => (Vec::new(), Some(error.to_string())),
    };
    let with = |word: &str| [program.as_slice(), &[word.to_owned()]].concat();
    Contender {
        name: name.to_owned(),
        role: Role::Peer,
        prefix: with("run"),
        prefix_at_once: with("run"),
        env: Vec::new(),
        host: Some(with("serve")),
        echoes: program_echoes(name),
        missing,
    }
}

pub fn one_command(line: &str, dir: &Path) -> Outcome<()> {
    let words: Vec<&str> = line.split(' ').collect();
    let output = Command::new(words[0])
        .args(&words[1..])
        .current_dir(dir)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("`{line}`: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().last().unwrap_or("").trim();
    Err(format!("`{line}` failed: {last}").into())
}

fn quiet(program: &[String], args: &[&str]) -> Command {
    let mut command = Command::new(&program[0]);
    command
        .args(&program[1..])
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

fn succeeds(command: &mut Command) -> bool {
    command.status().is_ok_and(|status| status.success())
}

/// See `Contender::echoes`.
fn program_echoes(name: &str) -> bool {
    ["processkit", "systemd-run --scope"].contains(&name)
}
