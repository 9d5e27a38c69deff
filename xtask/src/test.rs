//! `cargo xtask test`: everything that can show fullstop wrong.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Instant;

use crate::cargo::{Metadata, build, cargo};
use crate::load::Load;
use crate::suite::Step;
use crate::{Outcome, needs};

/// The closed world; each of its integration tests is a suite that is run on
/// its own, with the programs it tests in its environment.
const ARENA: &str = "fullstop-arena";

#[derive(Debug, PartialEq, Eq)]
pub struct Options {
    only: Option<Part>,
    repeat: u32,
    load: bool,
    /// Only this one of the arena suites.
    suite: Option<String>,
    /// Passed on to the arena suites.
    filter: Option<String>,
    args: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Unit,
    Arena,
}

impl Options {
    pub fn parse(words: &[&str]) -> Outcome<Self> {
        let mut options = Self {
            only: None,
            repeat: 1,
            load: false,
            suite: None,
            filter: None,
            args: Vec::new(),
        };
        let mut words = words.iter();
        while let Some(&word) = words.next() {
            match word {
                "--only" => {
                    options.only = match words.next() {
                        Some(&"unit") => Some(Part::Unit),
                        Some(&"arena") => Some(Part::Arena),
                        _ => return Err("--only takes `unit` or `arena`".into()),
                    }
                }
                "--repeat" => {
                    let count = words.next().and_then(|n| n.parse().ok());
                    options.repeat =
                        count.filter(|&n| n > 0).ok_or("--repeat takes a number of times")?;
                }
                "--load" => options.load = true,
                "--suite" => {
                    let suite = words.next().ok_or("--suite takes the name of an arena suite")?;
                    options.suite = Some((*suite).to_owned());
                }
                "--" => options.args = words.by_ref().map(ToString::to_string).collect(),
                _ if word.starts_with('-') => return Err(format!("unknown option {word}").into()),
                _ if options.filter.is_some() => return Err("only one filter, please".into()),
                _ => options.filter = Some(word.to_owned()),
            }
        }
        if options.only.is_none() && (options.filter.is_some() || options.suite.is_some()) {
            // These name arena tests; the rest would only be in the way.
            options.only = Some(Part::Arena);
        }
        Ok(options)
    }

    fn wants(&self, part: Part) -> bool {
        self.only.is_none_or(|only| only == part)
    }
}

pub fn run(options: &Options) -> Outcome<bool> {
    let start = Instant::now();
    needs::provide(needs::TESTS);
    if options.wants(Part::Arena) {
        needs::limits_of_this_machine();
    }
    let mut steps = Vec::new();
    if options.wants(Part::Unit) {
        unit(&mut steps)?;
    }
    if options.wants(Part::Arena) {
        arena(options, &mut steps)?;
    }
    Ok(sum_up(&steps, start))
}

/// Unit, property, model and doc tests: all of the workspace but the suites.
fn unit(steps: &mut Vec<Step>) -> Outcome<()> {
    steps.push(Step::run(
        "unit, property, model and doc tests",
        cargo().args(["test", "--workspace", "--no-fail-fast", "--exclude", ARENA]),
    )?);
    steps.push(Step::run(
        "unit tests of the arena itself",
        cargo().args(["test", "--package", ARENA, "--lib"]),
    )?);
    Ok(())
}

fn arena(options: &Options, steps: &mut Vec<Step>) -> Outcome<()> {
    let programs = build(&["-p", "fullstop-cli", "-p", "fullstop-zoo"], None)?;
    let metadata = Metadata::ask()?;
    let mut suites = metadata.targets(ARENA, "test");
    if let Some(only) = &options.suite {
        suites.retain(|suite| suite == only);
    }
    if suites.is_empty() {
        return Err(format!("{ARENA} has no such suite").into());
    }
    // Built before anything is timed or loaded.
    let mut built = cargo();
    built.args(["test", "--quiet", "--no-run", "--package", ARENA]);
    for suite in &suites {
        built.args(["--test", suite]);
    }
    if !built.status()?.success() {
        return Err(format!("{ARENA} does not build").into());
    }
    let _load = options.load.then(Load::start).transpose()?;
    for round in 1..=options.repeat {
        for suite in &suites {
            let name = if options.repeat > 1 {
                format!("arena: {suite}, round {round} of {}", options.repeat)
            } else {
                format!("arena: {suite}")
            };
            steps.push(Step::run(&name, &mut suite_command(suite, &programs, options)?)?);
        }
    }
    let ran: u64 = steps.iter().map(|s| s.tally.passed + s.tally.failed).sum();
    if let (0, Some(filter)) = (ran, &options.filter) {
        return Err(format!("no arena test is called anything like {filter:?}").into());
    }
    Ok(())
}

fn suite_command(
    suite: &str,
    programs: &HashMap<String, PathBuf>,
    options: &Options,
) -> Outcome<std::process::Command> {
    let program = |name: &str| {
        programs.get(name).ok_or_else(|| format!("cargo built no program called {name}"))
    };
    let mut command = cargo();
    command
        .args(["test", "--package", ARENA, "--test", suite, "--"])
        .args(&options.filter)
        .args(&options.args)
        .env("FULLSTOP_BIN", program("fullstop")?)
        .env("ZOO_BIN", program("zoo")?);
    Ok(command)
}

fn sum_up(steps: &[Step], start: Instant) -> bool {
    println!();
    for step in steps {
        println!(
            "{}  {:>5} passed {:>3} failed {:>3} skipped {:>3} void {:>6.1} s  {}",
            if step.passed { "ok    " } else { "FAILED" },
            step.tally.passed,
            step.tally.failed,
            step.tally.ignored,
            step.tally.void,
            step.took.as_secs_f64(),
            step.name,
        );
    }
    let passed = steps.iter().all(|step| step.passed);
    let verdict = if passed { "all passed" } else { "FAILED" };
    println!("{verdict}, after {:.0} s", start.elapsed().as_secs_f64());
    passed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_understood() {
        let options = Options::parse(&["--repeat", "10", "--load", "storm", "--", "--nocapture"]);
        assert_eq!(
            options.unwrap(),
            Options {
                only: Some(Part::Arena),
                repeat: 10,
                load: true,
                suite: None,
                filter: Some("storm".into()),
                args: vec!["--nocapture".into()],
            }
        );
    }

    #[test]
    fn mistakes_are_refused() {
        for words in
            [&["--repeat", "0"][..], &["--repeat"], &["--only", "some"], &["--loud"], &["a", "b"]]
        {
            assert!(Options::parse(words).is_err(), "{words:?}");
        }
    }
}
