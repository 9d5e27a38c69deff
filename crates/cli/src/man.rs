//! Man pages in roff, made from the grammar.

use crate::grammar::{Command, DURATIONS, FULLSTOP, HELP, Opt};
use fullstop_cage::plain;
use std::fmt::Write;
use std::fs;
use std::path::Path;

pub fn file_name(command: &Command) -> String {
    format!("{}.1", command.joined("-"))
}

/// Writes every page; returns how it failed, if it did.
pub fn write_all(dir: &Path) -> Result<(), String> {
    let why = |path: &Path, error| format!("cannot write {}: {}", path.display(), plain(&error));
    fs::create_dir_all(dir).map_err(|error| why(dir, error))?;
    for command in FULLSTOP.all() {
        let path = dir.join(file_name(command));
        fs::write(&path, page(command)).map_err(|error| why(&path, error))?;
    }
    Ok(())
}

pub fn page(command: &Command) -> String {
    let mut page = Page(String::new());
    page.title(command);
    page.request("SH", "DESCRIPTION");
    page.description(command);
    page.commands(command);
    page.options(command);
    if command.takes_durations() {
        page.request("SH", "DURATIONS");
        page.text(DURATIONS);
    }
    page.statuses(command);
    page.see_also(command);
    page.0
}

struct Page(String);

impl Page {
    fn title(&mut self, command: &Command) {
        let name = command.joined("-");
        // No date: the page is the program's, and the version says which.
        let version = concat!("\"fullstop ", env!("CARGO_PKG_VERSION"), "\"");
        let _ = writeln!(self.0, ".TH {} 1 \"\" {version} fullstop", roff(&name.to_uppercase()));
        self.request("SH", "NAME");
        let _ = writeln!(self.0, "{} \\- {}", roff(&name), roff(command.does));
        self.request("SH", "SYNOPSIS");
        self.request("B", &command.title());
        if !command.usage.is_empty() {
            self.text(command.usage);
        }
    }

    fn description(&mut self, command: &Command) {
        if !command.path.is_empty() {
            self.text(&command.sentence());
        }
        if command.about.is_empty() {
            return;
        }
        if !command.path.is_empty() {
            self.0.push_str(".PP\n");
        }
        if command.about.lines().all(|line| line.contains(":  ")) {
            // A list; filling would make a paragraph of it.
            self.0.push_str(".nf\n");
            self.text(command.about);
            self.0.push_str(".fi\n");
        } else {
            self.text(command.about);
        }
    }

    fn commands(&mut self, command: &Command) {
        if command.chapters.is_empty() {
            return;
        }
        self.request("SH", "COMMANDS");
        for chapter in command.chapters {
            self.request("SS", chapter.heading);
            for below in chapter.commands {
                let _ = writeln!(self.0, ".TP\n.BR {} (1)", roff(&below.joined("-")));
                self.text(below.does);
            }
        }
    }

    fn options(&mut self, command: &Command) {
        self.request("SH", "OPTIONS");
        for section in command.sections {
            self.request("SS", section.heading);
            section.options.iter().for_each(|option| self.option(option));
        }
        if !command.sections.is_empty() {
            self.request("SS", "Help");
        }
        self.option(&HELP);
    }

    fn option(&mut self, option: &Opt) {
        let names = option.names().map(|name| format!("\\fB{}\\fR", roff(&name)));
        let names = names.collect::<Vec<_>>().join(", ");
        let value = option.value.map(|value| format!(" \\fI{}\\fR", roff(value.name)));
        let _ = writeln!(self.0, ".TP\n{names}{}", value.unwrap_or_default());
        let text = option.text();
        for (place, part) in text.split('\n').enumerate() {
            if place > 0 {
                self.0.push_str(".br\n");
            }
            self.text(part);
        }
    }

    fn statuses(&mut self, command: &Command) {
        let Some(statuses) = command.statuses else {
            return;
        };
        self.request("SH", "EXIT STATUS");
        self.text(statuses.usual);
        for (status, meaning) in statuses.special {
            let _ = writeln!(self.0, ".TP\n.B {status}");
            self.text(meaning);
        }
    }

    /// The page above, and those beside and below are named there.
    fn see_also(&mut self, command: &Command) {
        let Some((_, above)) = command.path.split_last() else {
            return;
        };
        self.request("SH", "SEE ALSO");
        let mut pages = vec!["fullstop".to_owned()];
        pages.extend(above.iter().map(|word| format!("fullstop-{word}")));
        for (place, page) in pages.iter().enumerate() {
            let comma = if place + 1 < pages.len() { "," } else { "" };
            let _ = writeln!(self.0, ".BR {} (1){comma}", roff(page));
        }
    }

    fn request(&mut self, name: &str, argument: &str) {
        let _ = writeln!(self.0, ".{name} {}", roff(argument));
    }

    fn text(&mut self, text: &str) {
        for line in text.lines() {
            // A line that begins so would be taken for a request.
            let guard = if line.starts_with(['.', '\'']) { "\\&" } else { "" };
            let _ = writeln!(self.0, "{guard}{}", roff(line));
        }
    }
}

/// What is typed must come out as it is typed: a plain `-` may become a hyphen.
fn roff(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\\' => escaped.push_str("\\e"),
            '-' => escaped.push_str("\\-"),
            '…' => escaped.push_str("..."),
            '"' => escaped.push_str("\\(dq"),
            '\'' => escaped.push_str("\\(aq"),
            '`' => escaped.push_str("\\(ga"),
            '~' => escaped.push_str("\\(ti"),
            '^' => escaped.push_str("\\(ha"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_is_a_request_or_an_escape() {
        let mut page = Page(String::new());
        page.text(".SH\n'br\n\\fB-x \"y\"…");
        assert_eq!(page.0, "\\&.SH\n\\&\\(aqbr\n\\efB\\-x \\(dqy\\(dq...\n");
    }

    #[test]
    fn every_command_has_a_page_of_its_own() {
        let mut names: Vec<_> = FULLSTOP.all().into_iter().map(file_name).collect();
        let count = names.len();
        assert!(names.contains(&"fullstop.1".to_owned()));
        assert!(names.contains(&"fullstop-group-stop.1".to_owned()));
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
