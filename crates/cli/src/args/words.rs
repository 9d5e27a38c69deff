//! Reads the words of a command by its table.

use super::UsageError;
use super::bytes;
use crate::detach::Keys;
use crate::grammar::{Command, HELP, Kind, Operand, Opt};
use fullstop::{LabelError, Labels, duration};
use lexopt::{Arg, Parser};
use std::ffi::OsString;
use std::str::FromStr;
use std::time::Duration;

/// Why reading ended before its time.
pub enum Early {
    Help(&'static Command),
    Wrong(UsageError),
}

pub type Read<T> = Result<T, Early>;

/// Nothing more can be understood of this.
pub fn wrong<T>(why: impl Into<String>) -> Read<T> {
    Err(Early::Wrong(UsageError(why.into())))
}

/// What the next word is.
pub enum Word {
    Option(&'static Opt),
    Operand(OsString),
}

/// One command's words. Options come out of [`Words::next`] one by one; what is
/// no option is kept until [`Words::texts`] or [`Words::operands`] is asked.
pub struct Words<'p> {
    parser: &'p mut Parser,
    command: &'static Command,
    operands: Vec<OsString>,
}

impl<'p> Words<'p> {
    pub fn new(parser: &'p mut Parser, command: &'static Command) -> Words<'p> {
        Words { parser, command, operands: Vec::new() }
    }

    /// The next option. At the end, the operands are as many as there should be.
    pub fn next(&mut self) -> Read<Option<&'static Opt>> {
        while let Some(word) = word(self.parser, self.command)? {
            match word {
                Word::Option(option) => return Ok(Some(option)),
                Word::Operand(operand) => self.keep(operand)?,
            }
        }
        let mut required = self.command.operands.iter().filter(|operand| operand.is_required());
        match required.nth(self.operands.len()) {
            Some(operand) => self.fail(operand.missing),
            None => Ok(None),
        }
    }

    fn keep(&mut self, operand: OsString) -> Read<()> {
        let command = self.command;
        if command.runs_a_program() {
            // The program begins; everything behind it is its own.
            let rest = self.parser.raw_args().map_err(|error| mistake(command, &error))?;
            self.operands.push(operand);
            self.operands.extend(rest);
            return Ok(());
        }
        let no_more = !command.operands.last().is_some_and(Operand::repeats);
        if no_more && self.operands.len() >= command.operands.len() {
            return Err(mistake(command, &Arg::Value(operand).unexpected()));
        }
        self.operands.push(operand);
        Ok(())
    }

    pub fn has_operands(&self) -> bool {
        !self.operands.is_empty()
    }

    pub fn operands(self) -> Vec<OsString> {
        self.operands
    }

    /// The operands, as the texts that ids and names are.
    pub fn texts(self) -> Read<Vec<String>> {
        self.operands.into_iter().map(|operand| utf8(operand, "an operand")).collect()
    }

    /// The only operand.
    pub fn single(self) -> Read<String> {
        Ok(self.texts()?.into_iter().next().unwrap_or_default())
    }

    /// The first operand, which names something, and whatever follows it.
    pub fn first_and_rest(self) -> Read<(String, Vec<OsString>)> {
        let mut operands = self.operands.into_iter();
        let first = utf8(operands.next().unwrap_or_default(), "an operand")?;
        Ok((first, operands.collect()))
    }

    /// What is wrong, and where to read how it is done.
    pub fn fail<T>(&self, why: &str) -> Read<T> {
        wrong(format!("{why} (see {} --help)", self.command.title()))
    }

    /// For runs that are meant by their ids or by their labels, and not by both.
    pub fn nothing_chosen(&self) -> Early {
        let title = self.command.title();
        Early::Wrong(UsageError(format!("which run? give its id, or --label (see {title} --help)")))
    }

    /// For an option that the table has and the reader has not.
    pub fn unknown<T>(&self, option: &Opt) -> Read<T> {
        self.fail(&format!("invalid option '--{}'", option.long))
    }

    pub fn value(&mut self) -> Read<OsString> {
        self.parser.value().map_err(|error| mistake(self.command, &error))
    }

    pub fn text(&mut self, option: &Opt) -> Read<String> {
        utf8(self.value()?, &format!("--{}", option.long))
    }

    /// One label more.
    pub fn label(&mut self, option: &Opt, labels: &mut Labels) -> Read<()> {
        let text = self.text(option)?;
        let pair = text.split_once('=').ok_or_else(|| LabelError::NoValue(text.clone()));
        let added = pair.and_then(|(key, value)| labels.insert(key, value));
        added.or_else(|error| wrong(format!("--{}: {error}", option.long)))
    }

    pub fn time(&mut self, option: &Opt) -> Read<Duration> {
        let text = self.text(option)?;
        duration::parse(&text).or_else(|error| wrong(format!("--{}: {error}", option.long)))
    }

    /// A time after which something happens, which cannot be now.
    pub fn timeout(&mut self, option: &Opt) -> Read<Duration> {
        let time = self.time(option)?;
        if time.is_zero() {
            return wrong(format!("--{}: must be more than zero", option.long));
        }
        Ok(time)
    }

    pub fn bytes(&mut self, option: &Opt) -> Read<u64> {
        let text = self.text(option)?;
        bytes::parse(&text).or_else(|why| wrong(format!("--{}: {why}", option.long)))
    }

    pub fn number<T: FromStr>(&mut self, option: &Opt) -> Read<T> {
        let text = self.text(option)?;
        text.parse().or_else(|_| wrong(format!("--{}: {text:?} is no number", option.long)))
    }

    /// The keys that detach.
    pub fn keys(&mut self, option: &Opt) -> Read<Keys> {
        let text = self.text(option)?;
        text.parse().or_else(|why| wrong(format!("--{}: {why}", option.long)))
    }

    /// One of the words that the table has for this option.
    pub fn word(&mut self, option: &Opt) -> Read<&'static str> {
        let given = self.text(option)?;
        match option.kind() {
            Some(Kind::Words(words)) => one_of(words, &given, &format!("--{}", option.long)),
            _ => self.unknown(option),
        }
    }

    /// The only operand, which is one of the words that the table has for it.
    pub fn single_word(self) -> Read<&'static str> {
        let command = self.command;
        let given = self.single()?;
        match command.operands.first().map(|operand| operand.kind) {
            Some(Kind::Words(words)) => one_of(words, &given, command.name()),
            _ => one_of(&[], &given, command.name()),
        }
    }
}

/// The next word after a command, if it may stand there at all.
pub fn word(parser: &mut Parser, command: &'static Command) -> Read<Option<Word>> {
    let arg = match parser.next().map_err(|error| mistake(command, &error))? {
        None => return Ok(None),
        Some(Arg::Value(operand)) => return Ok(Some(Word::Operand(operand))),
        Some(arg) => arg,
    };
    let is_it = |option: &&'static Opt| match arg {
        Arg::Long(long) => option.long == long,
        Arg::Short(short) => option.short == Some(short),
        Arg::Value(_) => false,
    };
    match command.options().chain([&HELP]).find(is_it) {
        Some(option) if option.long == HELP.long => Err(Early::Help(command)),
        Some(option) => Ok(Some(Word::Option(option))),
        None => Err(mistake(command, &arg.unexpected())),
    }
}

fn one_of(words: &'static [&'static str], given: &str, what: &str) -> Read<&'static str> {
    match words.iter().find(|word| **word == given) {
        Some(word) => Ok(word),
        None => wrong(format!("{what}: {given:?} is not one of {}", words.join(", "))),
    }
}

fn utf8(value: OsString, what: &str) -> Read<String> {
    value.into_string().or_else(|_| wrong(format!("{what}: not valid UTF-8")))
}

fn mistake(command: &Command, error: &lexopt::Error) -> Early {
    Early::Wrong(UsageError(format!("{error} (see {} --help)", command.title())))
}
