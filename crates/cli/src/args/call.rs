//! What can be asked for, with its options as types.

use crate::grammar::Command;
pub use fullstop::{Agent, Ready};
use fullstop::{HostPolicy, Ladder, Loudness, OnExit, Signal, Wanted};
use std::ffi::OsString;
use std::time::Duration;

/// What was asked for. Runs are named as they were typed: an id, the beginning
/// of one, or a name.
#[derive(Debug)]
pub enum Call {
    Run(Box<RunOptions>),
    Start(Box<StartOptions>),
    Restart { ids: Vec<String> },
    Ps(PsOptions),
    Tree { id: String, json: bool },
    Show { id: String, json: bool },
    Events(EventsOptions),
    Wait(WaitOptions),
    Stop(StopOptions),
    Kill(StopOptions),
    Signal { signal: Signal, ids: Vec<String> },
    Group(GroupCall),
    Rm { ids: Vec<String> },
    Prune(PruneOptions),
    Sweep { dry_run: bool, json: bool },
    Doctor { json: bool },
    Demo,
    Completions(Shell),
    Man(Man),
    Help(&'static Command),
    Version,
}

#[derive(Debug, Default)]
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
    pub group: Option<String>,
    pub report: Option<OsString>,
    pub loudness: Loudness,
    pub command: Vec<OsString>,
}

/// In the order they were given: the last word on a variable counts.
#[derive(Debug)]
pub enum EnvChange {
    Set(OsString, OsString),
    Unset(OsString),
}

#[derive(Debug)]
pub struct StartOptions {
    pub run: RunOptions,
    pub wait_ready: Option<WaitReady>,
    pub json: bool,
}

#[derive(Debug)]
pub struct WaitReady {
    pub ready: Ready,
    pub timeout: Duration,
}

#[derive(Debug, Default)]
pub struct PsOptions {
    pub all: bool,
    pub group: Option<String>,
    pub form: Form,
    pub watch: bool,
}

/// How a list is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    #[default]
    Table,
    /// Only what the next command wants to know: ids, or names of groups.
    Names,
    Json,
}

#[derive(Debug, Default)]
pub struct EventsOptions {
    /// None means all.
    pub ids: Vec<String>,
    pub follow: bool,
    pub json: bool,
}

#[derive(Debug, Default)]
pub struct WaitOptions {
    pub ids: Vec<String>,
    pub timeout: Option<Duration>,
    pub json: bool,
}

#[derive(Debug)]
pub struct StopOptions {
    pub which: Which,
    pub wait: bool,
    pub json: bool,
    pub quiet: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Which {
    Ids(Vec<String>),
    All,
    Group(String),
}

#[derive(Debug)]
pub enum GroupCall {
    Ls { form: Form },
    Stop { name: String, json: bool },
    Close { name: String, json: bool },
    Open { name: String },
}

#[derive(Debug, Default)]
pub struct PruneOptions {
    pub older: Option<Duration>,
    pub keep: Option<usize>,
    pub dry_run: bool,
    pub json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shell {
    Bash,
    Zsh,
    Fish,
}

#[derive(Debug)]
pub enum Man {
    /// This page, to stdout.
    Page(&'static Command),
    /// Every page, into this directory.
    Dir(OsString),
}
