//! What `cargo xtask` can do: one row each, from which the help follows.

use std::fmt;

use crate::table::{Side, aligned};
use crate::{Outcome, bench, deny, loc, msrv, soak, test};

/// One word behind `cargo xtask`.
pub struct Task {
    pub name: &'static str,
    /// The words that may follow the name.
    words: &'static str,
    about: &'static str,
    /// Each option with what it does.
    options: &'static [[&'static str; 2]],
    pub run: fn(&[&str]) -> Outcome<bool>,
}

pub const TASKS: &[Task] = &[
    Task {
        name: "test",
        words: "[OPTION…] [FILTER] [-- ARG…]",
        about: "set up what the tests need, then run them all",
        options: &[
            ["--only unit", "unit, property, model and doc tests; no root needed"],
            ["--only arena", "fullstop against the zoo"],
            ["--suite NAME", "only this arena suite"],
            ["--repeat N", "the arena N times"],
            ["--load", "keep one core busy beside the arena"],
            ["FILTER", "only arena tests whose name contains it"],
            ["ARG…", "for the arena suites, as `cargo test` passes them on"],
        ],
        run: |words| test::run(&understood(test::Options::parse(words))?),
    },
    Task {
        name: "bench",
        words: "[OPTION…]",
        about: "measure fullstop beside its peers",
        options: &[
            ["--quick", "few rounds: to try it out, not to quote"],
            ["--only PART", "spawn, stop, memory, survivors, records or output; may be repeated"],
            ["--check", "fail when an acceptance figure is missed"],
            ["--json FILE", "where the figures go; otherwise target/bench.json"],
            ["--markdown FILE", "where the tables go; otherwise target/bench.md"],
        ],
        run: |words| bench::run(&understood(bench::Options::parse(words))?),
    },
    Task {
        name: "soak",
        words: "[OPTION…]",
        about: "measure crowds: large counts, seconds and ratios; fail on a missed bound",
        options: &[
            ["--list", "the scenarios"],
            ["--only NAME", "only this scenario; may be repeated"],
            ["--runs N", "so many runs"],
            ["--busy N", "so many busy loops beside them"],
        ],
        run: |words| soak::run(&understood(soak::Options::parse(words))?),
    },
    Task {
        name: "deny",
        words: "",
        about: "check licences, duplicates and sources of all that is built, by deny.toml",
        options: &[],
        run: |words| nothing_more(words).and_then(|()| deny::run()),
    },
    Task {
        name: "msrv",
        words: "",
        about: "check that the minimum Rust version is the same everywhere, and tried",
        options: &[],
        run: |words| nothing_more(words).and_then(|()| msrv::run()),
    },
    Task {
        name: "loc",
        words: "",
        about: "count the lines of each crate: code, comments, tests; name the largest files",
        options: &[],
        run: |words| nothing_more(words).and_then(|()| loc::run()),
    },
];

/// A mistake on the command line: nothing was done.
#[derive(Debug)]
pub struct UsageError(String);

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

/// Whatever is wrong with the words is a usage error.
fn understood<T>(options: Outcome<T>) -> Outcome<T> {
    options.map_err(|error| UsageError(error.to_string()).into())
}

/// For a task without options.
fn nothing_more(words: &[&str]) -> Outcome<()> {
    match words {
        [] => Ok(()),
        [word, ..] => Err(UsageError(format!("unknown option {word}")).into()),
    }
}

/// What the words behind `cargo xtask` ask for.
pub enum Invocation<'a> {
    Overview,
    Help(&'static Task),
    Do(&'static Task, &'a [&'a str]),
    Unknown(&'a str),
}

impl<'a> Invocation<'a> {
    pub fn of(words: &'a [&'a str]) -> Self {
        match words {
            [] | ["help" | "--help" | "-h"] => Self::Overview,
            ["help", name, ..] => find(name).map_or(Self::Unknown(name), Self::Help),
            [name, rest @ ..] => match find(name) {
                None => Self::Unknown(name),
                Some(task) if asks_for_help(rest) => Self::Help(task),
                Some(task) => Self::Do(task, rest),
            },
        }
    }
}

fn find(name: &str) -> Option<&'static Task> {
    TASKS.iter().find(|task| task.name == name)
}

/// What stands behind `--` is for somebody else.
fn asks_for_help(words: &[&str]) -> bool {
    words.iter().take_while(|&&word| word != "--").any(|word| ["--help", "-h"].contains(word))
}

/// All tasks, one line each.
pub fn overview() -> String {
    let rows: Vec<_> = TASKS.iter().map(|task| [task.name, task.about]).collect();
    let list = aligned(&[Side::Left; 2], &rows);
    format!("cargo xtask TASK\n\n{list}\n`cargo xtask TASK --help` tells its options.")
}

impl Task {
    /// One task and its options, one line each.
    pub fn help(&self) -> String {
        let Self { name, words, about, options, .. } = self;
        let head = format!("cargo xtask {name} {words}");
        let list = aligned(&[Side::Left; 2], options);
        format!("{}\n  {about}\n\n{list}", head.trim_end()).trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_is_asked_for_in_many_ways() {
        for words in [&[][..], &["help"], &["--help"], &["-h"]] {
            assert!(matches!(Invocation::of(words), Invocation::Overview), "{words:?}");
        }
        for words in [&["bench", "--help"][..], &["bench", "--quick", "-h"], &["help", "bench"]] {
            assert!(
                matches!(Invocation::of(words), Invocation::Help(e) if e.name == "bench"),
                "{words:?}"
            );
        }
    }

    #[test]
    fn what_is_behind_two_dashes_is_not_for_us() {
        let words = ["test", "storm", "--", "--help"];
        assert!(matches!(Invocation::of(&words), Invocation::Do(task, _) if task.name == "test"));
    }

    #[test]
    fn an_unknown_word_is_named() {
        for words in [&["tset"][..], &["--loud"], &["help", "tset"]] {
            assert!(
                matches!(Invocation::of(words), Invocation::Unknown("tset" | "--loud")),
                "{words:?}"
            );
        }
    }

    #[test]
    fn every_task_refuses_an_option_it_does_not_have_and_does_nothing() {
        for task in TASKS {
            let error = (task.run)(&["--no-such-option"]).expect_err(task.name);
            assert!(error.is::<UsageError>(), "{}: {error}", task.name);
        }
    }

    #[test]
    fn help_has_one_line_for_each() {
        assert_eq!(overview().matches("\n  ").count(), TASKS.len());
        for task in TASKS {
            let help = task.help();
            let listed = help.lines().skip(3).count();
            assert_eq!(listed, task.options.len(), "{help}");
            assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
        }
    }
}
