//! The command line.

use crate::help;
use fullstop_core::duration;
use fullstop_core::ladder::Ladder;
use fullstop_core::report::Wanted;
use fullstop_core::words::OnExit;
use fullstop_keeper::{HostPolicy, Loudness};
use lexopt::{Arg, Parser};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::Duration;

/// What was asked for.
pub enum Call {
    Run(Box<RunOptions>),
    Demo,
    Say(String),
}

/// One line about what is wrong with the call.
pub struct UsageError(pub String);

impl From<lexopt::Error> for UsageError {
    fn from(error: lexopt::Error) -> UsageError {
        UsageError(format!("{error} (see fullstop --help)"))
    }
}

#[derive(Default)]
pub struct RunOptions {
    pub ladder: Option<Ladder>,
    pub grace: Option<Duration>,
    pub agent: Agent,
    pub timeout: Option<Duration>,
    pub on_exit: OnExit,
    pub on_host_exit: HostPolicy,
    pub cage: Wanted,
    pub cwd: Option<OsString>,
    pub env: Vec<EnvChange>,
    pub clear_env: bool,
    pub name: Option<String>,
    pub report: Option<OsString>,
    pub loudness: Loudness,
    pub command: Vec<OsString>,
}

#[derive(Default)]
pub enum Agent {
    #[default]
    Auto,
    None,
    Named(String),
}

/// In the order they were given: the last word on a variable counts.
pub enum EnvChange {
    Set(OsString, OsString),
    Unset(OsString),
}

pub fn parse() -> Result<Call, UsageError> {
    let mut parser = Parser::from_env();
    match parser.next()? {
        Some(Arg::Value(word)) if word == "run" => run(&mut parser),
        Some(Arg::Value(word)) if word == "demo" => Ok(Call::Demo),
        Some(Arg::Value(word)) if word == "help" => Ok(Call::Say(help::MAIN.to_owned())),
        Some(Arg::Short('h') | Arg::Long("help")) => Ok(Call::Say(help::MAIN.to_owned())),
        Some(Arg::Short('V') | Arg::Long("version")) => {
            Ok(Call::Say(format!("fullstop {}\n", env!("CARGO_PKG_VERSION"))))
        }
        Some(Arg::Value(word)) => {
            let word = word.to_string_lossy();
            Err(UsageError(format!(
                "there is no command {word:?}; to run it: fullstop run -- {word}"
            )))
        }
        Some(other) => Err(other.unexpected().into()),
        None => Err(UsageError("nothing to do (see fullstop --help)".to_owned())),
    }
}

fn run(parser: &mut Parser) -> Result<Call, UsageError> {
    let mut options = RunOptions::default();
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Short('h') | Arg::Long("help") => return Ok(Call::Say(help::RUN.to_owned())),
            Arg::Long("ladder") => {
                let text = text(parser, "ladder")?;
                options.ladder = Some(text.parse().map_err(|e| UsageError(format!("{e}")))?);
            }
            Arg::Long("grace") => options.grace = Some(time(parser, "grace")?),
            Arg::Long("timeout") => {
                let timeout = time(parser, "timeout")?;
                if timeout.is_zero() {
                    return Err(UsageError("--timeout: must be more than zero".to_owned()));
                }
                options.timeout = Some(timeout);
            }
            Arg::Long("agent") => {
                options.agent = match text(parser, "agent")?.as_str() {
                    "auto" => Agent::Auto,
                    "none" => Agent::None,
                    name => Agent::Named(name.to_owned()),
                }
            }
            Arg::Long("on-exit") => {
                let words =
                    [("stop", OnExit::Stop), ("wait", OnExit::Wait), ("release", OnExit::Release)];
                options.on_exit = one_of(parser, "on-exit", &words)?;
            }
            Arg::Long("on-host-exit") => {
                let words = [("stop", HostPolicy::Stop), ("ignore", HostPolicy::Ignore)];
                options.on_host_exit = one_of(parser, "on-host-exit", &words)?;
            }
            Arg::Long("cage") => {
                let words =
                    [("auto", Wanted::Auto), ("cgroup", Wanted::Cgroup), ("tree", Wanted::Tree)];
                options.cage = one_of(parser, "cage", &words)?;
            }
            Arg::Long("cwd") => options.cwd = Some(parser.value()?),
            Arg::Long("env") => options.env.push(assignment(parser.value()?)?),
            Arg::Long("unset-env") => options.env.push(EnvChange::Unset(parser.value()?)),
            Arg::Long("clear-env") => options.clear_env = true,
            Arg::Long("name") => options.name = Some(text(parser, "name")?),
            Arg::Long("report") => options.report = Some(parser.value()?),
            Arg::Short('q') | Arg::Long("quiet") => options.loudness = Loudness::Quiet,
            Arg::Short('v') | Arg::Long("verbose") => options.loudness = Loudness::Verbose,
            // The command begins; everything behind it is its own.
            Arg::Value(program) => {
                options.command.push(program);
                options.command.extend(parser.raw_args()?);
            }
            other => {
                let why = other.unexpected();
                return Err(UsageError(format!("{why} (see fullstop run --help)")));
            }
        }
    }
    if options.command.is_empty() {
        return Err(UsageError("no command to run (see fullstop run --help)".to_owned()));
    }
    if options.ladder.is_some() && options.grace.is_some() {
        return Err(UsageError("--grace scales the usual ladder; give it or --ladder".to_owned()));
    }
    Ok(Call::Run(Box::new(options)))
}

fn text(parser: &mut Parser, option: &str) -> Result<String, UsageError> {
    let value = parser.value()?;
    value.into_string().map_err(|_| UsageError(format!("--{option}: not valid UTF-8")))
}

fn time(parser: &mut Parser, option: &str) -> Result<Duration, UsageError> {
    let text = text(parser, option)?;
    duration::parse(&text).map_err(|error| UsageError(format!("--{option}: {error}")))
}

fn one_of<T: Copy>(
    parser: &mut Parser,
    option: &str,
    words: &[(&str, T)],
) -> Result<T, UsageError> {
    let given = text(parser, option)?;
    let found = words.iter().find(|(word, _)| *word == given);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        UsageError(format!("--{option}: {given:?} is not one of {}", known.join(", ")))
    })
}

fn assignment(given: OsString) -> Result<EnvChange, UsageError> {
    let at = given.as_bytes().iter().position(|&byte| byte == b'=');
    match at {
        Some(at) if at > 0 => {
            let mut key = given.into_vec();
            let value = key.split_off(at + 1);
            key.pop();
            Ok(EnvChange::Set(OsString::from_vec(key), OsString::from_vec(value)))
        }
        _ => Err(UsageError(format!("--env: {} is not K=V", given.to_string_lossy()))),
    }
}
