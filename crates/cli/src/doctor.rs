//! `fullstop doctor`: what was found, for people and for programs.

use crate::fail::Fail;
use crate::print::{json, print};
use fullstop::{Doctor, Finding, Level};
use std::collections::HashSet;
use std::fmt::Write as _;
use std::io::IsTerminal;

/// Something that fullstop promises does not hold here.
const RED: u8 = 1;

pub async fn doctor(as_json: bool) -> Result<(), Fail> {
    let doctor = fullstop::doctor().await?;
    if as_json {
        json(&doctor)?;
    } else {
        print(&Page::for_stdout().show(&doctor))?;
    }
    if doctor.verdict == Level::Red { Err(Fail::silent(RED)) } else { Ok(()) }
}

/// How it is laid out.
struct Page {
    coloured: bool,
    /// Where lines are broken; nowhere, if nobody reads them on a terminal.
    width: Option<usize>,
}

impl Page {
    fn for_stdout() -> Page {
        let stdout = std::io::stdout();
        let no_colour = std::env::var_os("NO_COLOR").is_some_and(|set| !set.is_empty());
        let size = rustix::termios::tcgetwinsize(&stdout).ok();
        let width = size.map(|size| usize::from(size.ws_col)).filter(|width| *width > 0);
        let on_terminal = stdout.is_terminal();
        Page { coloured: on_terminal && !no_colour, width: width.filter(|_| on_terminal) }
    }

    fn show(&self, doctor: &Doctor) -> String {
        let widest = doctor.findings.iter().map(|finding| finding.name.len()).max();
        let indent = Level::Yellow.to_string().len() + widest.unwrap_or_default() + 4;
        let mut text = String::new();
        let mut area = None;
        let mut advised = HashSet::new();
        for finding in &doctor.findings {
            if area.replace(finding.area) != Some(finding.area) {
                let blank = if text.is_empty() { "" } else { "\n" };
                let _ = writeln!(text, "{blank}{}", finding.area);
            }
            // The same advice is given once.
            let next = finding.next.as_ref().filter(|next| advised.insert(*next));
            self.finding(&mut text, finding, next, indent);
        }
        let _ = write!(text, "\n{}", self.level(doctor.verdict));
        match &doctor.next {
            None => text.push_str(": nothing to do\n"),
            Some(next) => {
                let _ = writeln!(text, ", next: {next}");
            }
        }
        text
    }

    fn finding(&self, text: &mut String, finding: &Finding, next: Option<&String>, indent: usize) {
        let level = self.level(finding.level);
        let gap = " ".repeat(Level::Yellow.to_string().len() - finding.level.to_string().len());
        let names = indent - Level::Yellow.to_string().len() - 4;
        let _ = write!(text, "{level}{gap}  {:names$}  ", finding.name);
        self.paragraph(text, &finding.what, indent);
        if let Some(next) = next {
            let _ = write!(text, "{:indent$}", "");
            self.paragraph(text, &format!("→ {next}"), indent);
        }
    }

    /// Words, broken where the terminal ends, each line beginning below the first.
    fn paragraph(&self, text: &mut String, words: &str, indent: usize) {
        /// In anything narrower than this a column of words is no help.
        const NARROW: usize = 30;
        let room = self.width.map(|width| width.saturating_sub(indent).max(NARROW));
        let mut used = 0;
        for word in words.split(' ') {
            let length = word.chars().count();
            if used > 0 && room.is_some_and(|room| used + 1 + length > room) {
                let _ = write!(text, "\n{:indent$}", "");
                used = 0;
            }
            if used > 0 {
                text.push(' ');
                used += 1;
            }
            text.push_str(word);
            used += length;
        }
        text.push('\n');
    }

    fn level(&self, level: Level) -> String {
        let code = match level {
            _ if !self.coloured => return level.to_string(),
            Level::Green => 32,
            Level::Yellow => 33,
            Level::Red => 31,
        };
        format!("\x1b[{code}m{level}\x1b[0m")
    }
}
