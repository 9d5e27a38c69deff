//! Reading and quoting a ladder's text.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::{Action, KILL_PATIENCE, Ladder, SOFT_PATIENCE, Step, Target};
use crate::duration;
use crate::mistake::Mistake;
use crate::signal::Signal;

/// The text is no ladder. One line, with the position of the mistake.
///
/// ```
/// use fullstop_core::ladder::{Ladder, LadderError};
///
/// let error: LadderError = "term@moon:3s,kill".parse::<Ladder>().unwrap_err();
/// assert!(error.to_string().contains("moon"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LadderError {
    /// Where in the text the mistake is, in bytes.
    pub position: usize,
    text: String,
    problem: String,
}

impl fmt::Display for LadderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Mistake::new(&self.text, self.position, &self.problem).write("ladder", f)
    }
}

impl std::error::Error for LadderError {}

impl FromStr for Ladder {
    type Err = LadderError;

    fn from_str(text: &str) -> Result<Ladder, LadderError> {
        let mut reader = Reader { text, at: 0 };
        reader.ladder().map_err(|(position, problem)| LadderError {
            position,
            text: text.to_owned(),
            problem,
        })
    }
}

/// A mistake before it meets its text: where, and what.
type Slip = (usize, String);

/// What one step of the text says.
enum Rung {
    Soft(Step),
    Kill(Duration),
}

/// Reads a ladder from left to right.
struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_spaces(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn eat(&mut self, mark: char) -> bool {
        let found = self.rest().starts_with(mark);
        if found {
            self.at += mark.len_utf8();
        }
        found
    }

    /// Everything up to one of `marks`, without the spaces around it, and where it begins.
    fn until(&mut self, marks: &[char]) -> (usize, &'a str) {
        self.skip_spaces();
        let start = self.at;
        let rest = self.rest();
        let end = rest.find(marks).unwrap_or(rest.len());
        self.at += end;
        (start, rest[..end].trim_end())
    }

    fn ladder(&mut self) -> Result<Ladder, Slip> {
        if self.text.trim().is_empty() {
            return Err((0, "the ladder is empty".to_owned()));
        }
        let mut soft = Vec::new();
        loop {
            match self.step()? {
                Rung::Soft(step) => soft.push(step),
                Rung::Kill(kill) if self.rest().is_empty() => return Ok(Ladder { soft, kill }),
                Rung::Kill(_) => {
                    self.eat(',');
                    self.skip_spaces();
                    return Err((self.at, "nothing can follow the last step, kill".to_owned()));
                }
            }
            if !self.eat(',') {
                return Ok(Ladder { soft, kill: KILL_PATIENCE });
            }
        }
    }

    /// One step, up to its comma or the end of the text.
    fn step(&mut self) -> Result<Rung, Slip> {
        let (start, name) = self.until(&['@', ':', ',', '"']);
        if name.is_empty() {
            return Err((start, "a step is missing".to_owned()));
        }
        let action = self.action(start, name)?;
        let target = self.target()?;
        let patience = self.patience()?;
        if let Some(stray) = self.rest().chars().next().filter(|c| *c != ',') {
            return Err((self.at, format!("a comma is expected, not {stray:?}")));
        }
        match (action, target) {
            (Action::Signal(Signal::KILL), None) => last(start, patience),
            (Action::CloseStdin | Action::Input(_), Some((position, target)))
                if target != Target::Leader =>
            {
                Err((position, format!("only the leader has a stdin to reach, not the {target}")))
            }
            (action, target) => Ok(Rung::Soft(Step {
                action,
                target: target.map_or(Target::Leader, |(_, target)| target),
                patience: patience.unwrap_or(SOFT_PATIENCE),
            })),
        }
    }

    fn action(&mut self, start: usize, name: &str) -> Result<Action, Slip> {
        if name.eq_ignore_ascii_case("close-stdin") {
            return Ok(Action::CloseStdin);
        }
        if name.eq_ignore_ascii_case("input") {
            let written = self.eat(':') && {
                self.skip_spaces();
                self.rest().starts_with('"')
            };
            if !written {
                return Err((self.at, r#"input needs a text, as in input:"/exit\n""#.to_owned()));
            }
            let text = self.quoted()?;
            self.skip_spaces();
            return Ok(Action::Input(text));
        }
        let signal = name.parse().map_err(|error| (start, format!("{error}")));
        signal.map(Action::Signal)
    }

    fn target(&mut self) -> Result<Option<(usize, Target)>, Slip> {
        if !self.eat('@') {
            return Ok(None);
        }
        let (start, name) = self.until(&['@', ':', ',', '"']);
        let known = [Target::Leader, Target::Group, Target::Tree];
        let target = known.into_iter().find(|t| t.to_string().eq_ignore_ascii_case(name));
        match target {
            Some(target) => Ok(Some((start, target))),
            None => Err((start, format!("unknown target {name:?} (leader, group or tree)"))),
        }
    }

    fn patience(&mut self) -> Result<Option<Duration>, Slip> {
        if !self.eat(':') {
            return Ok(None);
        }
        let (start, text) = self.until(&[',']);
        let patience = duration::parse(text);
        let slip =
            |error: duration::DurationError| (start + error.position, error.problem().to_owned());
        patience.map(Some).map_err(slip)
    }

    /// A text in double quotes, which the reader stands before.
    fn quoted(&mut self) -> Result<String, Slip> {
        let open = self.at;
        self.eat('"');
        let mut text = String::new();
        while let Some(c) = self.rest().chars().next() {
            let start = self.at;
            self.at += c.len_utf8();
            match c {
                '"' => return Ok(text),
                '\\' => text.push(self.escape(start)?),
                c => text.push(c),
            }
        }
        Err((open, "the quote is not closed".to_owned()))
    }

    /// What follows a backslash at `start`.
    fn escape(&mut self, start: usize) -> Result<char, Slip> {
        let rest = self.rest();
        let Some(c) = rest.chars().next() else {
            return Err((start, "the escape is not finished".to_owned()));
        };
        self.at += c.len_utf8();
        match c {
            'n' => Ok('\n'),
            'r' => Ok('\r'),
            't' => Ok('\t'),
            'e' => Ok('\x1b'),
            '"' | '\\' => Ok(c),
            'x' => {
                let digits = rest.get(1..3).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
                let code = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
                // Above 7f a byte is no character of its own.
                let code = code.filter(u8::is_ascii).ok_or_else(|| {
                    (start, r"\x needs two hexadecimal digits, 00 to 7f".to_owned())
                })?;
                self.at += 2;
                Ok(char::from(code))
            }
            _ => Err((start, format!("unknown escape \\{c}"))),
        }
    }
}

/// The last step is where the proof is waited for; without any wait every run would be stuck.
fn last(start: usize, patience: Option<Duration>) -> Result<Rung, Slip> {
    match patience {
        Some(Duration::ZERO) => Err((start, "kill needs time to see the end, not 0s".to_owned())),
        patience => Ok(Rung::Kill(patience.unwrap_or(KILL_PATIENCE))),
    }
}

/// `text` in double quotes, with escapes that [`Reader::quoted`] reads back.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\x1b' => quoted.push_str("\\e"),
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_ascii_control() => {
                quoted += "\\x";
                quoted.extend([u32::from(c) / 16, u32::from(c) % 16].map(hex_digit));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

fn hex_digit(value: u32) -> char {
    char::from_digit(value, 16).unwrap_or('0')
}
