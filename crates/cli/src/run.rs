//! `fullstop run`: from options to a run.

use crate::fail::Fail;
use crate::streams;
use crate::window;
use fullstop::Command;
use fullstop_cage::plain;
use fullstop_cli::args::{EnvChange, RunOptions};
use fullstop_keeper::{Ending, Sink};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;

pub fn run(mut options: RunOptions) -> Result<Ending, Fail> {
    if options.pty {
        return window::run(options);
    }
    if options.detach_keys.is_some() {
        return Err("--detach-keys: there is no window to leave without --pty".into());
    }
    // What nobody sees cannot be missed. But who writes to a terminal would notice.
    if options.no_output_timeout.is_some() && !on_terminal() {
        options.log = true;
    }
    let (report, verbosity) = (options.report.take(), options.verbosity);
    let command = command(options);
    let report = report.as_ref().map(open_report).transpose()?;
    Ok(command.run_here(report, verbosity)?)
}

fn on_terminal() -> bool {
    io::stdout().is_terminal() || io::stderr().is_terminal()
}

/// The command as the options ask for it.
pub fn command(mut options: RunOptions) -> Command {
    let mut words = std::mem::take(&mut options.command).into_iter();
    let mut command = Command::new(words.next().unwrap_or_default()).args(words);
    if options.clear_env {
        command = command.env_clear();
    }
    for change in std::mem::take(&mut options.env) {
        command = match change {
            EnvChange::Set(key, value) => command.env(key, value),
            EnvChange::Unset(key) => command.env_remove(key),
        };
    }
    command = streams::apply(command, &options)
        .agent(options.agent)
        .on_exit(options.on_exit)
        .cage(options.cage);
    if let Some(policy) = options.on_host_exit {
        command = command.on_host_exit(policy);
    }
    for (key, value) in options.labels.iter() {
        command = command.label(key, value);
    }
    if let Some(ladder) = options.ladder {
        command = command.ladder(ladder);
    }
    if let Some(grace) = options.grace {
        command = command.grace(grace);
    }
    if let Some(timeout) = options.timeout {
        command = command.timeout(timeout);
    }
    if let Some(cwd) = options.cwd {
        command = command.current_dir(cwd);
    }
    if let Some(name) = options.name {
        command = command.name(name);
    }
    if let Some(report) = options.report {
        command = command.report(report);
    }
    match options.group {
        Some(group) => command.group(group),
        None => command,
    }
}

fn open_report(path: &OsString) -> Result<Sink, Fail> {
    let why = |error| Fail::from(format!("--report {}: {}", path.to_string_lossy(), plain(&error)));
    if path == "-" {
        let stdout = io::stdout().as_fd().try_clone_to_owned().map_err(why)?;
        return Ok(Sink::stream(File::from(stdout)));
    }
    File::create(path).map(Sink::new).map_err(why)
}
