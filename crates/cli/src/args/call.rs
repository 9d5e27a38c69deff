//! What can be asked for, with its options as types.

use crate::detach::Keys;
use crate::grammar::Command;
use crate::since::Since;
pub use fullstop::{Agent, Ready};
use fullstop::{
    CagePreference, HostPolicy, Key, Labels, Ladder, OnExit, ResizePolicy, Signal, Size, Stdin,
    Stream,
};
use fullstop_keeper::Verbosity;
use std::ffi::OsString;
use std::os::fd::RawFd;
use std::time::Duration;

/// What was asked for. Runs are named as they were typed: an id, the beginning
/// of one, or a name.
#[derive(Debug)]
pub enum Call {
    Run(Box<RunOptions>),
    Start(Box<StartOptions>),
    Restart { which: Which, json: bool },
    Ps(PsOptions),
    Tree { id: String, json: bool },
    Show { id: String, json: bool },
    Attach(AttachOptions),
    Logs(LogsOptions),
    Events(EventsOptions),
    Wait(WaitOptions),
    Stop(StopOptions),
    Kill(StopOptions),
    Signal { signal: Signal, which: Which, json: bool },
    Send(SendOptions),
    CloseStdin { id: String, json: bool },
    Group(GroupCall),
    Rm { ids: Vec<String>, forget: bool, json: bool },
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
    pub no_output_timeout: Option<Duration>,
    pub idle_timeout: Option<Duration>,
    pub stdin: Option<Stdin>,
    pub log: bool,
    pub log_max: Option<u64>,
    pub drain_quiet: Option<Duration>,
    pub drain_max: Option<Duration>,
    pub pty: bool,
    /// Only with a terminal.
    pub size: Option<WindowSize>,
    pub detach_keys: Option<Keys>,
    /// Names of variables, and the files whose content they lead to.
    pub secrets: Vec<(String, OsString)>,
    pub on_exit: OnExit,
    pub on_host_exit: Option<HostPolicy>,
    pub labels: Labels,
    pub cage: CagePreference,
    pub cwd: Option<OsString>,
    pub env: Vec<EnvChange>,
    pub clear_env: bool,
    pub name: Option<String>,
    pub group: Option<String>,
    pub report: Option<OsString>,
    pub verbosity: Verbosity,
    pub command: Vec<OsString>,
}

/// How large a terminal of its own is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowSize {
    /// As large as its windows let it be.
    Follow(ResizePolicy),
    Fixed(Size),
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
    /// Descriptors of the caller's that the command keeps.
    pub keep_fds: Vec<RawFd>,
    pub json: bool,
}

#[derive(Debug)]
pub struct WaitReady {
    pub ready: Ready,
    pub timeout: Duration,
}

#[derive(Debug)]
pub struct SendOptions {
    pub id: String,
    /// What to send first; `-` alone is whatever stdin has.
    pub text: Vec<OsString>,
    /// What to send then.
    pub keys: Vec<Key>,
    /// How long it is waited for a command that does not read.
    pub timeout: Duration,
    pub json: bool,
}

#[derive(Debug, Default)]
pub struct PsOptions {
    pub all: bool,
    pub group: Option<String>,
    pub labels: Labels,
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
pub struct AttachOptions {
    pub id: String,
    pub view: bool,
    pub keys: Keys,
}

#[derive(Debug, Default)]
pub struct LogsOptions {
    pub id: String,
    pub follow: bool,
    pub lines: Option<u64>,
    pub since: Option<Since>,
    pub stream: Option<Stream>,
    pub form: LogForm,
}

/// How output is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogForm {
    /// Without what acts on a terminal.
    Plain {
        times: bool,
    },
    Raw,
    Json,
}

impl Default for LogForm {
    fn default() -> LogForm {
        LogForm::Plain { times: false }
    }
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
    pub which: Which,
    pub timeout: Option<Duration>,
    pub json: bool,
}

#[derive(Debug)]
pub struct StopOptions {
    pub which: Which,
    /// How long the ladder may take, if that is limited.
    pub within: Option<Duration>,
    pub wait: bool,
    pub json: bool,
    pub quiet: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Which {
    Ids(Vec<String>),
    All,
    Group(String),
    Labels(Labels),
}

impl Default for Which {
    fn default() -> Which {
        Which::Ids(Vec::new())
    }
}

#[derive(Debug)]
pub enum GroupCall {
    Ls { form: Form },
    Stop { name: String, json: bool },
    Close { name: String, json: bool },
    Open { name: String, json: bool },
}

#[derive(Debug, Default)]
pub struct PruneOptions {
    pub older: Option<Duration>,
    pub keep: Option<usize>,
    /// Lost runs that cannot be judged from here, and nothing else.
    pub forget: bool,
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
