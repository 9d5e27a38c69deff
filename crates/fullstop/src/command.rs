//! What to run, and how.

use crate::error::{Error, Result};
use crate::host::hand_over;
use crate::line::Line;
use crate::run::Run;
use crate::runs::Runs;
use fullstop_core::id::Id;
use fullstop_core::ladder::Ladder;
use fullstop_core::machine::Plan;
use fullstop_core::preset;
use fullstop_core::report::Wanted;
use fullstop_core::words::OnExit;
use fullstop_keeper::commission::Commission;
use fullstop_keeper::{Ending, Ground, HostPolicy, Loudness, Sink, Spec};
use fullstop_store::{GroupName, Reply};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

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
    cwd: Option<OsString>,
    name: Option<String>,
    group: Option<GroupName>,
    ladder: Option<Ladder>,
    grace: Option<Duration>,
    agent: Agent,
    timeout: Option<Duration>,
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
            cwd: None,
            name: None,
            group: None,
            ladder: None,
            grace: None,
            agent: Agent::Auto,
            timeout: None,
            on_exit: OnExit::Stop,
            on_host_exit: HostPolicy::Guess,
            cage: Wanted::Auto,
            report: None,
            runs: None,
            keeper: None,
        }
    }

    #[must_use]
    pub fn arg(mut self, word: impl Into<OsString>) -> Command {
        self.argv.push(word.into());
        self
    }

    #[must_use]
    pub fn args<I: IntoIterator<Item: Into<OsString>>>(mut self, words: I) -> Command {
        self.argv.extend(words.into_iter().map(Into::into));
        self
    }

    #[must_use]
    pub fn env(self, key: impl Into<OsString>, value: impl Into<OsString>) -> Command {
        let key = key.into();
        let mut command = self.env_remove(&key);
        command.env.push((key, value.into()));
        command
    }

    #[must_use]
    pub fn env_remove(mut self, key: impl AsRef<OsStr>) -> Command {
        self.env.retain(|(known, _)| known != key.as_ref());
        self
    }

    #[must_use]
    pub fn env_clear(mut self) -> Command {
        self.env.clear();
        self
    }

    #[must_use]
    pub fn current_dir(mut self, dir: impl Into<OsString>) -> Command {
        self.cwd = Some(dir.into());
        self
    }

    /// A name by which it can be found, beside its id.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Command {
        self.name = Some(name.into());
        self
    }

    /// Joins a group; it is not born if that is closed.
    pub fn group(mut self, name: &str) -> Result<Command> {
        self.group = Some(name.parse()?);
        Ok(self)
    }

    /// The steps of a stop.
    #[must_use]
    pub fn ladder(mut self, ladder: Ladder) -> Command {
        self.ladder = Some(ladder);
        self
    }

    /// The usual ladder, scaled to this total.
    #[must_use]
    pub fn grace(mut self, total: Duration) -> Command {
        self.grace = Some(total);
        self
    }

    #[must_use]
    pub fn agent(mut self, agent: Agent) -> Command {
        self.agent = agent;
        self
    }

    /// Stops it after this time.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Command {
        self.timeout = Some(timeout);
        self
    }

    /// What happens to the rest when the leader exits and others live.
    #[must_use]
    pub fn on_exit(mut self, on_exit: OnExit) -> Command {
        self.on_exit = on_exit;
        self
    }

    /// What happens when this program dies.
    #[must_use]
    pub fn on_host_exit(mut self, policy: HostPolicy) -> Command {
        self.on_host_exit = policy;
        self
    }

    #[must_use]
    pub fn cage(mut self, cage: Wanted) -> Command {
        self.cage = cage;
        self
    }

    /// Writes the report there as well.
    #[must_use]
    pub fn report(mut self, path: impl Into<PathBuf>) -> Command {
        self.report = Some(path.into());
        self
    }

    /// Keeps its record among these runs, and not where records usually are.
    #[must_use]
    pub fn runs(mut self, runs: &Runs) -> Command {
        self.runs = Some(runs.clone());
        self
    }

    /// The executable to be its keeper: a `fullstop` binary, or any program that
    /// calls [`crate::init`].
    #[must_use]
    pub fn keeper(mut self, executable: impl Into<PathBuf>) -> Command {
        self.keeper = Some(executable.into());
        self
    }

    /// Runs it beside this program, which it shares stdout and stderr with. It is
    /// stopped when this program dies, unless told otherwise.
    pub async fn spawn(self) -> Result<Run> {
        self.begin(Ground::Aside).await
    }

    /// Runs it in the background, with logs in its directory. It lives on when this
    /// program dies, unless told otherwise.
    pub async fn start(mut self) -> Result<Run> {
        if self.on_host_exit == HostPolicy::Guess {
            self.on_host_exit = HostPolicy::Ignore;
        }
        self.begin(Ground::Back).await
    }

    async fn begin(self, ground: Ground) -> Result<Run> {
        let mut runs = self.runs.clone().map_or_else(Runs::open, Ok)?;
        if let Some(keeper) = &self.keeper {
            runs = runs.with_keeper(keeper);
        }
        // Before anything is begun.
        runs.keeper()?;
        check_name(self.name.as_deref())?;
        let commission = Commission {
            id: new_id(),
            generation: 1,
            plan: self.plan()?,
            name: self.name,
            group: self.group.map(|group| group.to_string()),
            argv: self.argv.into_iter().map(Into::into).collect(),
            env: self.env.into_iter().map(|(key, value)| (key.into(), value.into())).collect(),
            cwd: self.cwd.map(Into::into),
            cage: self.cage,
            on_host_exit: self.on_host_exit,
            report: self.report,
            store: runs.path().to_owned(),
            ground,
        };
        commission_run(&runs, commission).await
    }

    /// Becomes the guard of the command, in place of this program: `fullstop run`.
    /// To be called while there is one thread. Returns how to end.
    pub fn run_here(self, report: Option<Sink>, loudness: Loudness) -> Result<Ending> {
        let plan = self.plan()?;
        check_name(self.name.as_deref())?;
        Ok(fullstop_keeper::run(Spec {
            id: new_id(),
            name: self.name,
            group: self.group,
            generation: 1,
            argv: self.argv,
            env: self.env,
            cwd: self.cwd,
            plan,
            cage: self.cage,
            on_host_exit: self.on_host_exit,
            report,
            store: self.runs.map(|runs| runs.path().to_owned()),
            ground: Ground::Front,
            loudness,
        }))
    }

    fn plan(&self) -> Result<Plan> {
        Ok(Plan { ladder: self.whole_ladder()?, on_exit: self.on_exit, timeout: self.timeout })
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

/// Hands a commission to a keeper and waits until the command runs.
pub(crate) async fn commission_run(runs: &Runs, commission: Commission) -> Result<Run> {
    let mut line = Line::new(hand_over(&runs.keeper()?, commission).await?)?;
    let failed = |why: &str| Error::Failed { status: 125, why: why.to_owned() };
    match line.hear().await.map_err(Error::io("hear the keeper"))? {
        Some(Reply::Accepted { id, generation, .. }) => {
            let line = line.into_std().map_err(Error::io("hold the line"))?;
            Ok(Run::hosted(runs.clone(), id, generation, line))
        }
        Some(Reply::Failed { status, why }) => Err(Error::Failed { status, why }),
        Some(_) => Err(failed("the keeper answered strangely")),
        None => Err(failed("the keeper died before the command ran")),
    }
}

/// A name is typed and shown.
fn check_name(name: Option<&str>) -> Result<()> {
    const LONGEST: usize = 100;
    match name {
        Some(name)
            if name.is_empty() || name.len() > LONGEST || name.contains(char::is_control) =>
        {
            let why = format!("{name:?} is no name: it is empty, too long, or cannot be shown");
            Err(Error::Unfit(why))
        }
        _ => Ok(()),
    }
}

fn new_id() -> Id {
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut chance = [0; 8];
    // Where the kernel has no chance to give, the time alone must do.
    let _ = rustix::rand::getrandom(&mut chance, rustix::rand::GetRandomFlags::NONBLOCK);
    Id::new(u64::try_from(unix.as_millis()).unwrap_or_default(), u64::from_ne_bytes(chance))
}
