//! One step of the tests: a command that is run, watched and remembered.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::Outcome;

/// How the closing line of a libtest run begins.
const CLOSING: &str = "test result:";

/// How the line begins in which an arena suite counts what was void.
const VOID: &str = "void: ";

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    pub passed: u64,
    pub failed: u64,
    pub ignored: u64,
    /// Verdicts of the arena that did not count, because the machine was too slow.
    pub void: u64,
}

pub struct Step {
    pub name: String,
    pub passed: bool,
    pub tally: Tally,
    pub took: Duration,
}

impl Step {
    /// Runs a command; its output is shown as it comes, and closing lines of
    /// test runs are added up.
    pub fn run(name: &str, command: &mut Command) -> Outcome<Self> {
        eprintln!("\nxtask: {name}");
        let start = Instant::now();
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{name}: {error}"))?;
        let mut tally = Tally::default();
        if let Some(stdout) = child.stdout.take() {
            let mut reader = BufReader::new(stdout);
            let mut line = Vec::new();
            while reader.read_until(b'\n', &mut line)? > 0 {
                std::io::stdout().write_all(&line)?;
                tally.add(&String::from_utf8_lossy(&line));
                line.clear();
            }
        }
        Ok(Self {
            name: name.to_owned(),
            passed: child.wait()?.success(),
            tally,
            took: start.elapsed(),
        })
    }
}

impl Tally {
    fn add(&mut self, line: &str) {
        if let Some(counts) = line.strip_prefix(VOID) {
            self.void += counts.split(' ').next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
        }
        let Some(counts) = line.trim().strip_prefix(CLOSING) else {
            return;
        };
        self.passed += count(counts, "passed");
        self.failed += count(counts, "failed");
        self.ignored += count(counts, "ignored");
    }
}

/// The number in front of a word: `12 passed; 0 failed; …`.
fn count(line: &str, word: &str) -> u64 {
    line.split([';', '.'])
        .filter_map(|part| part.trim().strip_suffix(word))
        .filter_map(|number| number.trim().parse::<u64>().ok())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_lines_add_up() {
        let mut tally = Tally::default();
        tally.add("test result: ok. 12 passed; 0 failed; 3 ignored; 0 measured; 9 filtered out; finished in 0.41s\n");
        tally.add("test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out");
        tally.add("test a::b ... ok");
        tally.add("void: 3 of 1017 played again, 0 given up\n");
        tally.add("void: 1 of 20 played again, 1 given up\n");
        assert_eq!(tally, Tally { passed: 13, failed: 2, ignored: 3, void: 4 });
    }
}
