//! `fullstop run`: from options to a run.

use crate::args::{Agent, EnvChange, RunOptions};
use fullstop_core::id::Id;
use fullstop_core::ladder::Ladder;
use fullstop_core::machine::Plan;
use fullstop_core::preset;
use fullstop_keeper::{Ending, Ground, Sink, Spec, run as keep};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::time::{SystemTime, UNIX_EPOCH};

pub fn run(options: RunOptions) -> Result<Ending, String> {
    let ladder = ladder(&options)?;
    if ladder.needs_stdin() && io::stdin().is_terminal() {
        return Err("this ladder writes or closes stdin, and a terminal is not ours to close; \
                    pipe something in, or use signals"
            .to_owned());
    }
    let report = options.report.as_ref().map(open_report).transpose()?;
    let spec = Spec {
        id: new_id(),
        name: options.name,
        group: None,
        generation: 1,
        argv: options.command,
        env: environment(options.clear_env, options.env),
        cwd: options.cwd,
        plan: Plan { ladder, on_exit: options.on_exit, timeout: options.timeout },
        cage: options.cage,
        on_host_exit: options.on_host_exit,
        report,
        store: None,
        ground: Ground::Front,
        loudness: options.loudness,
    };
    Ok(keep(spec))
}

fn ladder(options: &RunOptions) -> Result<Ladder, String> {
    if let Some(ladder) = &options.ladder {
        return Ok(ladder.clone());
    }
    let preset = match &options.agent {
        Agent::None => None,
        Agent::Auto => preset::for_command(&options.command),
        Agent::Named(name) => Some(preset::by_name(name).ok_or_else(|| {
            format!("--agent: {name:?} is not known; known: {}", preset::names().join(", "))
        })?),
    };
    let ladder = preset.map(|preset| preset.ladder).unwrap_or_default();
    Ok(options.grace.map_or_else(|| ladder.clone(), |total| ladder.scaled(total)))
}

fn new_id() -> Id {
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut chance = [0; 8];
    // Where the kernel has no chance to give, the time alone must do.
    let _ = rustix::rand::getrandom(&mut chance, rustix::rand::GetRandomFlags::NONBLOCK);
    Id::new(u64::try_from(unix.as_millis()).unwrap_or_default(), u64::from_ne_bytes(chance))
}

fn environment(clear: bool, changes: Vec<EnvChange>) -> Vec<(OsString, OsString)> {
    let mut env: Vec<_> = if clear { Vec::new() } else { std::env::vars_os().collect() };
    for change in changes {
        match change {
            EnvChange::Set(key, value) => {
                env.retain(|(known, _)| *known != key);
                env.push((key, value));
            }
            EnvChange::Unset(key) => env.retain(|(known, _)| *known != key),
        }
    }
    env
}

fn open_report(path: &OsString) -> Result<Sink, String> {
    let why = |error: io::Error| format!("--report {}: {error}", path.to_string_lossy());
    if path == "-" {
        let stdout = io::stdout().as_fd().try_clone_to_owned().map_err(why)?;
        return Ok(Sink::stream(File::from(stdout)));
    }
    File::create(path).map(Sink::new).map_err(why)
}
