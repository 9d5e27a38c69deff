//! The table is the only truth: whatever stands in it is understood by the
//! parser, and shown by the help, the man pages and the completions.

use fullstop_cli::args::{Call, Shell, UsageError, parse_from};
use fullstop_cli::grammar::{Command, FULLSTOP, HELP, Kind, Opt};
use fullstop_cli::{completions, help, man};
use lexopt::Parser;
use std::collections::HashSet;

fn parse(words: &[String]) -> Result<Call, UsageError> {
    parse_from(Parser::from_args(words))
}

fn leaves() -> impl Iterator<Item = &'static Command> {
    FULLSTOP.all().into_iter().filter(|command| command.chapters.is_empty())
}

/// Something that is right for this kind.
fn sample(kind: Kind) -> String {
    let sample = match kind {
        Kind::Words(words) => words.last().copied().unwrap(),
        Kind::Number => "7",
        Kind::Duration => "9s",
        Kind::Time => "11:00",
        Kind::Ladder => "hup@tree:1s,kill",
        Kind::Agent => "none",
        Kind::Assignment => "K=V",
        Kind::Bytes => "64KB",
        Kind::Size => "24x80",
        Kind::NamedFile => "TOKEN=/x",
        Kind::Key => "C-c",
        Kind::Ready => "tcp:8080",
        Kind::Keys => "ctrl-p,ctrl-q",
        Kind::Signal => "usr1",
        Kind::Page => "run",
        _ => "something",
    };
    sample.to_owned()
}

/// Commands without `--json`, and why a program does not miss it.
const NO_JSON: &[(&[&str], &str)] = &[
    (&["run"], "its stdout is the command's; a program asks for a report: --report FILE"),
    (&["attach"], "a window for a person"),
    (&["demo"], "a show for a person"),
    (&["completions"], "a script for a shell"),
    (&["man"], "pages for a person"),
    (&["help"], "text for a person"),
];

#[test]
fn every_command_tells_json_or_has_a_reason_not_to() {
    for command in leaves() {
        let tells = command.options().any(|option| option.long == "json");
        let excused = NO_JSON.iter().any(|(path, _)| *path == command.path);
        assert!(tells != excused, "{}: either --json or a reason", command.title());
    }
}

/// A call with everything that the command cannot do without, and this.
fn call(command: &Command, extra: Vec<String>) -> Vec<String> {
    let mut words: Vec<String> = command.path.iter().map(ToString::to_string).collect();
    words.extend(extra);
    let required = command.operands.iter().filter(|operand| operand.is_required());
    words.extend(required.map(|operand| sample(operand.kind)));
    words
}

/// What a command is told besides, where it must be told something.
fn besides(command: &Command, option: Option<&Opt>) -> Vec<String> {
    let long = option.map(|option| option.long);
    match (command.path, long) {
        (["stop" | "kill"], Some("all" | "group" | "label")) => Vec::new(),
        (["stop" | "kill"], _) => vec!["an-id".to_owned()],
        (["wait" | "restart" | "signal"], Some("label")) => Vec::new(),
        (["wait" | "restart"], _) => vec!["an-id".to_owned()],
        // What it needs comes behind: there it is an id.
        (["signal"], _) => vec!["term".to_owned()],
        (["send"], _) => vec!["--enter".to_owned()],
        _ => Vec::new(),
    }
}

/// What an option only makes sense with.
fn company(option: &Opt) -> Vec<String> {
    match option.long {
        "start-timeout" => vec!["--wait-ready".to_owned(), "up".to_owned()],
        "size" => vec!["--pty".to_owned()],
        _ => Vec::new(),
    }
}

/// Every way to write an option: `--x v`, `--x=v`, `-x`.
fn spellings(option: &Opt) -> Vec<Vec<String>> {
    let Some(value) = option.value.map(|value| sample(value.kind)) else {
        return option.names().map(|name| vec![name]).collect();
    };
    let apart = option.names().map(|name| vec![name, value.clone()]);
    apart.chain([vec![format!("--{}={value}", option.long)]]).collect()
}

#[test]
fn every_command_can_be_called() {
    for command in leaves() {
        let words = call(command, besides(command, None));
        parse(&words).unwrap_or_else(|UsageError(why)| panic!("{words:?}: {why}"));
    }
}

#[test]
fn every_option_is_accepted_and_changes_the_call() {
    for command in leaves() {
        for option in command.options() {
            for spelling in spellings(option) {
                let mut extra = company(option);
                extra.extend(besides(command, Some(option)));
                let without = parse(&call(command, extra.clone()));
                extra.extend(spelling);
                let words = call(command, extra);
                let with =
                    parse(&words).unwrap_or_else(|UsageError(why)| panic!("{words:?}: {why}"));
                // The last word may be the default; the next test tells them apart.
                if matches!(option.kind(), Some(Kind::Words(_))) {
                    continue;
                }
                assert_ne!(
                    without.map(|call| format!("{call:?}")).ok(),
                    Some(format!("{with:?}")),
                    "{words:?} does nothing"
                );
            }
        }
    }
}

#[test]
fn every_fixed_word_is_accepted_and_means_something_of_its_own() {
    for command in leaves() {
        for option in command.options() {
            let Some(Kind::Words(fixed)) = option.kind() else {
                continue;
            };
            let calls = fixed.iter().map(|word| {
                let words = call(command, vec![format!("--{}={word}", option.long)]);
                let call = parse(&words).unwrap_or_else(|UsageError(why)| panic!("{why}"));
                format!("{call:?}")
            });
            let meanings: HashSet<_> = calls.collect();
            assert_eq!(meanings.len(), fixed.len(), "{} --{}", command.title(), option.long);
            let wrong = call(command, vec![format!("--{}=wrong", option.long)]);
            let UsageError(why) = parse(&wrong).unwrap_err();
            let all = fixed.join(", ");
            assert_eq!(why, format!("--{}: \"wrong\" is not one of {all}", option.long));
        }
    }
}

#[test]
fn help_is_understood_after_every_command() {
    for command in FULLSTOP.all() {
        for name in HELP.names() {
            let mut words: Vec<String> = command.path.iter().map(ToString::to_string).collect();
            words.push(name);
            let Ok(Call::Help(shown)) = parse(&words) else { panic!("{words:?}") };
            assert_eq!(shown.path, command.path);
        }
        let mut words = vec!["help".to_owned()];
        words.extend(command.path.iter().map(ToString::to_string));
        let Ok(Call::Help(shown)) = parse(&words) else { panic!("{words:?}") };
        assert_eq!(shown.path, command.path);
    }
}

#[test]
fn no_name_is_given_twice() {
    for command in FULLSTOP.all() {
        let mut names = HashSet::new();
        for name in command.options().chain([&HELP]).flat_map(Opt::names) {
            assert!(names.insert(name.clone()), "{} {name}", command.title());
        }
        let mut names = HashSet::new();
        for below in command.commands() {
            assert!(names.insert(below.name()), "{}", below.title());
            assert_eq!(below.path.split_last(), Some((&below.name(), command.path)));
        }
    }
}

#[test]
fn help_shows_everything() {
    for command in FULLSTOP.all() {
        let text = help::text(command);
        let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for option in command.options() {
            assert!(text.contains(&format!("\n  {}", option.shown())), "{}", option.shown());
            let meaning = option.text().replace('\n', " ");
            assert!(joined.contains(&meaning), "{}: {meaning}", command.title());
        }
        for below in command.commands() {
            assert!(text.contains(&format!("\n  {} ", below.name())), "{}", below.title());
            assert!(joined.contains(below.does), "{}", below.does);
        }
    }
}

#[test]
fn man_pages_show_everything() {
    for command in FULLSTOP.all() {
        let page = man::page(command).replace("\\-", "-");
        for name in command.options().chain([&HELP]).flat_map(Opt::names) {
            assert!(page.contains(&format!("\\fB{name}\\fR")), "{} {name}", command.title());
        }
        for below in command.commands() {
            assert!(page.contains(&format!(".BR {} (1)", below.joined("-"))), "{}", below.title());
        }
    }
}

/// The part of a completion that is about one command.
fn part<'a>(script: &'a str, from: &str, to: &str) -> &'a str {
    let (_, rest) = script.split_once(from).unwrap_or_else(|| panic!("no {from:?}"));
    rest.split_once(to).map_or(rest, |(part, _)| part)
}

#[test]
fn completions_offer_everything() {
    let bash = completions::script(Shell::Bash);
    let zsh = completions::script(Shell::Zsh);
    let fish = completions::script(Shell::Fish);
    for command in FULLSTOP.all() {
        let path = command.path.join(" ");
        let in_bash = part(&bash, &format!("    '{path}')\n"), ";;");
        let in_zsh = part(&zsh, &format!("\n_{}() {{", command.joined("_")), "\n}");
        let at = format!("complete -c fullstop -n \"__fullstop_at '{path}'\"");
        let in_fish: Vec<_> = fish.lines().filter_map(|line| line.strip_prefix(&at)).collect();
        for option in command.options().chain([&HELP]) {
            for name in option.names() {
                let options = part(in_bash, "options='", "'");
                assert!(options.split(' ').any(|word| word == name), "bash: {path} {name}");
                let zsh_knows = in_zsh.split(['\'', '{', '}', ',', '[', '=', '*', '+']);
                assert!(zsh_knows.clone().any(|word| word == name), "zsh: {path} {name}");
            }
            let short = option.short.map(|short| format!(" -s {short}")).unwrap_or_default();
            let spec = format!("{short} -l {} ", option.long);
            assert!(in_fish.iter().any(|line| line.starts_with(&spec)), "fish: {path} {spec}");
        }
        for below in command.commands() {
            let name = below.name();
            let commands = part(in_bash, "commands='", "'");
            assert!(commands.split(' ').any(|word| word == name), "bash: {path} {name}");
            assert!(in_zsh.contains(&format!("'{name}:")), "zsh: {path} {name}");
            let spec = format!(" -a {name} ");
            assert!(in_fish.iter().any(|line| line.starts_with(&spec)), "fish: {path} {name}");
        }
    }
}
