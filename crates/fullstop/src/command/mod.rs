//! What to run, and how: said piece by piece (`build`, `streams`), then begun (`begin`).

mod begin;
mod build;
mod streams;

pub(crate) use begin::{ask, commission_run};

use crate::error::{Error, Result};
use crate::runs::Runs;
use crate::secret::SecretFile;
use fullstop_core::ladder::Ladder;
use fullstop_core::machine::Plan;
use fullstop_core::preset;
use fullstop_core::report::Wanted;
use fullstop_core::words::OnExit;
use fullstop_keeper::HostPolicy;
use fullstop_store::GroupName;
use std::ffi::OsString;
use std::os::fd::RawFd;
use std::path::PathBuf;
use std::time::Duration;
use streams::Asked;

/// A command to be run so that stopping it stops everything it starts.
///
/// ```standalone_crate
/// # fullstop::init();
/// # let dir = std::env::temp_dir().join(format!("fullstop-doc-command-{}", std::process::id()));
/// # let runs = fullstop::Runs::at(&dir)?;
/// use fullstop::{Command, blocking};
///
/// let command = Command::new("sh").args(["-c", "sleep 60 & sleep 60"]).name("research");
/// let run = blocking::spawn(command.runs(&runs))?;
/// let report = blocking::wait(run.stop())?;
/// assert!(report.proof.is_some());
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Command {
    argv: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    /// Which of the variables were set here, and not inherited.
    set: Vec<OsString>,
    cwd: Option<OsString>,
    name: Option<String>,
    group: Option<GroupName>,
    ladder: Option<Ladder>,
    grace: Option<Duration>,
    agent: Agent,
    timeout: Option<Duration>,
    no_output: Option<Duration>,
    idle: Option<Duration>,
    streams: Asked,
    secrets: Vec<SecretFile>,
    keep_fds: Vec<RawFd>,
    on_exit: OnExit,
    on_host_exit: HostPolicy,
    cage: Wanted,
    report: Option<PathBuf>,
    runs: Option<Runs>,
    keeper: Option<PathBuf>,
}

/// Which agent's ladder to take.
///
/// ```
/// use fullstop::{Agent, Command};
///
/// let codex = Command::new("./agent").agent(Agent::Named("codex".into()));
/// assert!(codex.whole_ladder()?.to_string().starts_with("int@leader"));
/// # Ok::<(), fullstop::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Agent {
    /// By the command's name.
    #[default]
    Auto,
    None,
    Named(String),
}

impl Command {
    /// A command with this program's environment and working directory.
    pub fn new(program: impl Into<OsString>) -> Command {
        Command {
            argv: vec![program.into()],
            env: std::env::vars_os().collect(),
            set: Vec::new(),
            cwd: None,
            name: None,
            group: None,
            ladder: None,
            grace: None,
            agent: Agent::Auto,
            timeout: None,
            no_output: None,
            idle: None,
            streams: Asked::default(),
            secrets: Vec::new(),
            keep_fds: Vec::new(),
            on_exit: OnExit::Stop,
            on_host_exit: HostPolicy::Guess,
            cage: Wanted::Auto,
            report: None,
            runs: None,
            keeper: None,
        }
    }

    fn plan(&self) -> Result<Plan> {
        Ok(Plan {
            ladder: self.whole_ladder()?,
            on_exit: self.on_exit,
            timeout: self.timeout,
            no_output: self.no_output,
            idle: self.idle,
        })
    }

    /// The ladder this will be stopped by.
    pub fn whole_ladder(&self) -> Result<Ladder> {
        if let Some(ladder) = &self.ladder {
            return Ok(ladder.clone());
        }
        let preset = match &self.agent {
            Agent::None => None,
            Agent::Auto => preset::for_command(&self.argv),
            Agent::Named(name) => Some(preset::by_name(name).ok_or_else(|| {
                let known = preset::names().join(", ");
                Error::Unfit(format!("--agent: {name:?} is not known; known: {known}"))
            })?),
        };
        let ladder = preset.map(|preset| preset.ladder).unwrap_or_default();
        Ok(self.grace.map_or_else(|| ladder.clone(), |total| ladder.scaled(total)))
    }
}
