//! What to run, and how: said piece by piece (`build`, `streams`), then begun (`begin`).

mod begin;
mod build;
mod captured;
mod streams;

pub(crate) use begin::{ask, begin_run};
pub use captured::CapturedOutput;

use crate::error::{CommandError, Result};
use crate::runs::Runs;
use fullstop_core::ladder::Ladder;
use fullstop_core::preset;
use fullstop_protocol::{Spec, Text};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use streams::StreamOptions;

/// A command to be run so that stopping it stops everything it starts.
///
/// | begun by | its output | when this program ends, or lets go of it | returns |
/// |---|---|---|---|
/// | [`spawn`](Command::spawn) | this program's own, or [captured](Command::capture) | it is stopped | once it runs |
/// | [`start`](Command::start) | in its logs | it lives on | once it runs |
/// | [`output`](Command::output) | in its logs, and returned | it is stopped | once it is over |
///
/// ```
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
#[derive(Clone, Debug)]
pub struct Command {
    /// What was said so far; ladder and streams are settled when it is begun.
    spec: Spec,
    /// Which of the variables were set here, and not inherited.
    set: Vec<OsString>,
    labels: Vec<(String, String)>,
    ladder: Option<Ladder>,
    grace: Option<Duration>,
    agent: Agent,
    streams: StreamOptions,
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
    /// The default ladder, whatever the command is called.
    None,
    /// That of the agent of this name.
    Named(String),
}

impl Command {
    /// A command with this program's environment and working directory.
    pub fn new(program: impl Into<OsString>) -> Command {
        let variables = std::env::vars_os().map(|(name, value)| (Text(name), Text(value)));
        Command {
            spec: Spec { env: variables.collect(), ..Spec::new(vec![Text(program.into())]) },
            set: Vec::new(),
            labels: Vec::new(),
            ladder: None,
            grace: None,
            agent: Agent::Auto,
            streams: StreamOptions::default(),
            runs: None,
            keeper: None,
        }
    }

    /// The ladder this will be stopped by.
    pub fn whole_ladder(&self) -> Result<Ladder> {
        if let Some(ladder) = &self.ladder {
            return Ok(ladder.clone());
        }
        let preset = match &self.agent {
            Agent::None => None,
            Agent::Auto => preset::for_command(&self.spec.argv),
            Agent::Named(name) => Some(preset::by_name(name).ok_or_else(|| {
                let known = preset::names().join(", ");
                CommandError::UnknownAgent { name: name.clone(), known }
            })?),
        };
        let ladder = preset.map(|preset| preset.ladder).unwrap_or_default();
        Ok(self.grace.map_or_else(|| ladder.clone(), |total| ladder.scaled(total)))
    }
}
