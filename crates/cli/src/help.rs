//! What `--help` says, made from the grammar.

use crate::grammar::{Command, DURATIONS};
use std::fmt::Write;

/// Wide enough for the usual ladder on one line.
const WIDTH: usize = 88;

pub fn text(command: &Command) -> String {
    let mut help = String::new();
    let root = command.path.is_empty();
    if root {
        paragraph(&mut help, command.about);
    }
    paragraph(&mut help, &usage(command));
    if !root {
        paragraph(&mut help, &command.sentence());
        if !command.about.is_empty() {
            paragraph(&mut help, command.about);
        }
    }
    let commands = command.chapters.iter().map(|chapter| {
        let rows = chapter.commands.iter().map(|c| (c.name().to_owned(), c.does.to_owned()));
        (chapter.heading, rows.collect())
    });
    let options = command.sections.iter().map(|section| {
        let rows = section.options.iter().map(|option| (option.shown(), option.text()));
        (section.heading, rows.collect())
    });
    lists(&mut help, &commands.chain(options).collect::<Vec<_>>());
    if command.takes_durations() {
        paragraph(&mut help, &format!("Durations: {DURATIONS}"));
    }
    if let Some(statuses) = command.statuses {
        let _ = writeln!(help, "Exit status: {}", statuses.usual);
        for (status, meaning) in statuses.special {
            let _ = writeln!(help, "  {status}  {meaning}");
        }
        help.push('\n');
    }
    if !command.chapters.is_empty() {
        let title = command.title();
        paragraph(&mut help, &format!("More: `{title} COMMAND --help`."));
    }
    help.truncate(help.trim_end().len());
    help.push('\n');
    help
}

fn usage(command: &Command) -> String {
    format!("Usage: {} {}", command.title(), command.usage).trim_end().to_owned()
}

fn paragraph(help: &mut String, text: &str) {
    let _ = writeln!(help, "{text}\n");
}

type List = (&'static str, Vec<(String, String)>);

/// Lists under their headings, all with the same column for the explanations.
fn lists(help: &mut String, lists: &[List]) {
    let names = lists.iter().flat_map(|(_, rows)| rows).map(|(name, _)| name.len());
    let column = names.max().unwrap_or_default();
    for (heading, rows) in lists {
        let _ = writeln!(help, "{heading}:");
        for (name, text) in rows {
            let mut name = name.as_str();
            for line in wrapped(text, WIDTH - column - 4) {
                let _ = writeln!(help, "  {name:column$}  {line}");
                name = "";
            }
        }
        help.push('\n');
    }
}

/// Lines no wider than that, broken at spaces and where the text says so.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for part in text.split('\n') {
        let mut line = String::new();
        for word in part.split(' ') {
            if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::FULLSTOP;

    #[test]
    fn no_line_is_too_wide_or_ends_in_spaces() {
        for command in FULLSTOP.all() {
            for line in text(command).lines() {
                assert!(line.chars().count() <= WIDTH, "{line}");
                assert_eq!(line, line.trim_end(), "{}", command.title());
            }
        }
    }

    #[test]
    fn long_texts_are_broken_between_words() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("one\ntwo three", 20), ["one", "two three"]);
        assert_eq!(wrapped("unbreakable", 3), ["unbreakable"]);
    }

    #[test]
    fn durations_and_exit_statuses_are_explained_where_they_occur() {
        let run = FULLSTOP.below("run".as_ref()).unwrap();
        let help = text(run);
        assert!(help.starts_with("Usage: fullstop run [options] [--] COMMAND [ARGS…]\n"));
        for part in ["\nStopping:\n", "\nEnvironment:\n", "\nTelling:\n", DURATIONS, "  120  stuck"]
        {
            assert!(help.contains(part), "{part}");
        }
        let ps = FULLSTOP.below("ps".as_ref()).unwrap();
        assert!(!text(ps).contains("Durations"));
    }
}
