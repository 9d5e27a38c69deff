//! The options of `run` and `start`.

use super::call::{Agent, Call, EnvChange, Ready, RunOptions, StartOptions, WaitReady};
use super::streams::streams;
use super::words::{Read, Words, wrong};
use crate::grammar::Opt;
use fullstop::CagePreference;
use fullstop::HostPolicy;
use fullstop::OnExit;
use fullstop_keeper::Verbosity;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::Duration;

/// As the table says it: time for a server to come up, and not to be forgotten.
const START_TIMEOUT: Duration = Duration::from_secs(30);

pub fn run(mut words: Words<'_>) -> Read<Call> {
    let mut options = RunOptions::default();
    while let Some(option) = words.next()? {
        match option.long {
            "quiet" => options.verbosity = Verbosity::Quiet,
            "verbose" => options.verbosity = Verbosity::Verbose,
            "detach-keys" => options.detach_keys = Some(words.keys(option)?),
            _ => common(&mut words, option, &mut options)?,
        }
    }
    Ok(Call::Run(Box::new(checked(options, words)?)))
}

pub fn start(mut words: Words<'_>) -> Read<Call> {
    // The program that asks for a run in the background may go; the run was meant to stay.
    let mut run = RunOptions { on_host_exit: Some(HostPolicy::Ignore), ..RunOptions::default() };
    let (mut ready, mut timeout, mut keep_fds, mut json) = (None, None, Vec::new(), false);
    while let Some(option) = words.next()? {
        match option.long {
            "wait-ready" => ready = Some(readiness(words.value()?)?),
            "start-timeout" => timeout = Some(words.timeout(option)?),
            "keep-fd" => keep_fds.push(words.number(option)?),
            "json" => json = true,
            _ => common(&mut words, option, &mut run)?,
        }
    }
    if ready.is_none() && timeout.is_some() {
        return words.fail("--start-timeout: nothing to wait for without --wait-ready");
    }
    let timeout = timeout.unwrap_or(START_TIMEOUT);
    let wait_ready = ready.map(|ready| WaitReady { ready, timeout });
    let run = checked(run, words)?;
    Ok(Call::Start(Box::new(StartOptions { run, wait_ready, keep_fds, json })))
}

fn common(words: &mut Words<'_>, option: &Opt, options: &mut RunOptions) -> Read<()> {
    match option.long {
        "ladder" => {
            let ladder = words.text(option)?.parse();
            options.ladder = Some(ladder.or_else(|error| wrong(format!("{error}")))?);
        }
        "grace" => options.grace = Some(words.time(option)?),
        "timeout" => options.timeout = Some(words.timeout(option)?),
        "agent" => options.agent = agent(words.text(option)?),
        "on-exit" => {
            options.on_exit = match words.word(option)? {
                "wait" => OnExit::Wait,
                "release" => OnExit::Release,
                _ => OnExit::Stop,
            }
        }
        "on-host-exit" => {
            options.on_host_exit = match words.word(option)? {
                "ignore" => Some(HostPolicy::Ignore),
                _ => Some(HostPolicy::Stop),
            }
        }
        "cage" => {
            options.cage = match words.word(option)? {
                "cgroup" => CagePreference::Cgroup,
                "tree" => CagePreference::Tree,
                _ => CagePreference::Auto,
            }
        }
        "cwd" => options.cwd = Some(words.value()?),
        "env" => options.env.push(assignment(words.value()?)?),
        "unset-env" => options.env.push(EnvChange::Unset(words.value()?)),
        "clear-env" => options.clear_env = true,
        "name" => options.name = Some(words.text(option)?),
        "group" => options.group = Some(words.text(option)?),
        "label" => words.label(option, &mut options.labels)?,
        "report" => options.report = Some(words.value()?),
        _ if streams(words, option, options)? => {}
        _ => return words.unknown(option),
    }
    Ok(())
}

fn checked(mut options: RunOptions, words: Words<'_>) -> Read<RunOptions> {
    if options.ladder.is_some() && options.grace.is_some() {
        return wrong("--grace scales the usual ladder; give it or --ladder");
    }
    if options.size.is_some() && !options.pty {
        return wrong("--size is that of a terminal of its own; it goes with --pty");
    }
    options.command = words.operands();
    Ok(options)
}

fn agent(name: String) -> Agent {
    match name.as_str() {
        "auto" => Agent::Auto,
        "none" => Agent::None,
        _ => Agent::Named(name),
    }
}

fn assignment(given: OsString) -> Read<EnvChange> {
    let at = given.as_bytes().iter().position(|&byte| byte == b'=');
    match at {
        Some(at) if at > 0 => {
            let mut key = given.into_vec();
            let value = key.split_off(at + 1);
            key.pop();
            Ok(EnvChange::Set(OsString::from_vec(key), OsString::from_vec(value)))
        }
        _ => wrong(format!("--env: {} is not K=V", given.to_string_lossy())),
    }
}

fn readiness(given: OsString) -> Read<Ready> {
    if given.is_empty() {
        return wrong("--wait-ready: nothing to wait for");
    }
    if let Some(path) = given.as_bytes().strip_prefix(b"file:") {
        return match path {
            [] => wrong("--wait-ready: file: needs a path behind it"),
            path => Ok(Ready::File(OsStr::from_bytes(path).to_owned())),
        };
    }
    let Ok(text) = given.into_string() else {
        return wrong("--wait-ready: not valid UTF-8");
    };
    match text.strip_prefix("tcp:").map(str::parse) {
        None => Ok(Ready::Line(text)),
        Some(Ok(port)) if port > 0 => Ok(Ready::Port(port)),
        Some(_) => wrong(format!("--wait-ready: {text:?} has no port from 1 to 65535")),
    }
}
