//! Completions for shells, made from the grammar.

mod bash;
mod fish;
mod zsh;

use crate::args::Shell;
use crate::grammar::{Command, FULLSTOP, HELP, Kind, Opt};
use fullstop::preset;
use fullstop::{Key, Signal};

/// What lists runs and groups, one on a line. Whatever is wrong, a completion is
/// no place to say it.
const RUNS: &str = "fullstop ps -a -q 2>/dev/null";
const GROUPS: &str = "fullstop group ls -q 2>/dev/null";

/// What stdin can be besides a file.
const STDINS: &str = "null inherit pipe";

/// Above these are the real-time signals, which nobody completes.
const CLASSIC_SIGNALS: i32 = 31;

pub fn script(shell: Shell) -> String {
    match shell {
        Shell::Bash => bash::script(),
        Shell::Zsh => zsh::script(),
        Shell::Fish => fish::script(),
    }
}

/// All options of a command, `--help` with them.
fn options(command: &Command) -> impl Iterator<Item = &'static Opt> + use<> {
    command.options().chain([&HELP])
}

/// The words that a value can be, where they are known when the script is made.
fn words(kind: Kind) -> Option<Vec<String>> {
    match kind {
        Kind::Words(words) => Some(words.iter().map(ToString::to_string).collect()),
        Kind::Agent => {
            let mut names = vec!["auto".to_owned(), "none".to_owned()];
            names.extend(preset::names());
            Some(names)
        }
        Kind::Signal => {
            let signals = (1..=CLASSIC_SIGNALS).filter_map(Signal::new);
            Some(signals.map(|signal| signal.to_string()).collect())
        }
        Kind::Size => Some(vec!["latest".to_owned(), "smallest".to_owned()]),
        Kind::Key => {
            let keys = Key::names().chain(["C-c", "C-d", "C-z"]);
            Some(keys.map(ToOwned::to_owned).collect())
        }
        Kind::Page => Some(names(&FULLSTOP)),
        _ => None,
    }
}

/// What the commands below are called.
fn names(command: &Command) -> Vec<String> {
    command.commands().map(|below| below.name().to_owned()).collect()
}
