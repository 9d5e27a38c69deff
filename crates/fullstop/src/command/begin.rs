//! From a command to a run.

use super::Command;
use crate::error::{CommandError, Error, Result};
use crate::helpers::help;
use crate::host::Recruit;
use crate::offload::offload;
use crate::orders::await_there;
use crate::run::Run;
use crate::runs::Runs;
use crate::secret;
use crate::unanswered::Undelivered;
use fullstop_cage::linux::Mask;
use fullstop_keeper::{Assignment, Ending, Sink, Verbosity, fresh_id};
use fullstop_protocol::{
    FailureCode, Host, HostPolicy, Launch, Placement, Reply, ReplyKind, Sealed, Spec, Start, Stdin,
    Text,
};
use fullstop_store::{AskedGroup, GroupName, Store, Tag};
use std::io::{IsTerminal as _, stdin};
use std::path::PathBuf;

impl Command {
    /// Runs it beside this program, which it shares stdout and stderr with. It is
    /// stopped when this program dies, unless told otherwise.
    ///
    /// If the future is dropped, what was begun is stopped: no run is left whose id is unknown.
    pub async fn spawn(self) -> Result<Run> {
        self.begin(Placement::Beside).await
    }

    /// Runs it in the background, with logs in its directory. It lives on when this
    /// program dies, unless told otherwise.
    ///
    /// If the future is dropped, what was begun is stopped: no run is left whose id is unknown.
    pub async fn start(mut self) -> Result<Run> {
        self.spec.on_host_exit.get_or_insert(HostPolicy::Ignore);
        self.begin(Placement::Background).await
    }

    /// As [`Command::spawn`], for a command with a terminal of its own: what it writes is kept for
    /// the window that this program is to open at once, as its
    /// [owner](crate::AttachOptions::owner). After five seconds without one it is not waited for
    /// any more.
    pub async fn start_for_window(self) -> Result<Run> {
        self.begin(Placement::Window).await
    }

    async fn begin(self, placement: Placement) -> Result<Run> {
        let mask = Mask::current();
        let begin = async move {
            let prepared = help(move || PreparedRun::of(self, placement)).await??;
            let secrets = read_secrets(&prepared.spec).await?;
            let (runs, recruit, start, _group) =
                help(move || prepared.recruit(secrets, &mask)).await??;
            // The group is held until it is born.
            begin_run(&runs, recruit, start).await.map(Undelivered::new)
        };
        await_there(begin).await?.deliver()
    }

    /// Becomes the guard of the command, in place of this program: `fullstop run`.
    /// To be called while there is one thread. Returns how to end. For the command `fullstop`;
    /// not stable.
    #[doc(hidden)]
    pub fn run_here(self, report: Option<Sink>, verbosity: Verbosity) -> Result<Ending> {
        Ok(fullstop_keeper::run(self.assigned_here(report, verbosity)?))
    }

    /// Its stack is gone by the time that the guard begins, which stays on what is left of it.
    #[inline(never)]
    fn assigned_here(
        mut self,
        report: Option<Sink>,
        verbosity: Verbosity,
    ) -> Result<Box<Assignment>> {
        let runs = self.runs.take();
        let mut spec = self.into_spec(Placement::Foreground)?;
        if spec.ladder.needs_stdin() && spec.stdin == Stdin::Inherit && stdin().is_terminal() {
            return Err(CommandError::LadderClosesTerminal.into());
        }
        let asked = match (&spec.group, &runs) {
            (None, _) => None,
            (_, Some(runs)) => ask(&spec, runs.store())?,
            (_, None) => ask(&spec, &Store::open()?)?,
        };
        let secrets = spec.secrets.iter().map(secret::read).collect::<Result<Vec<_>>>()?;
        spec.hide_secret_names();
        let launch = Launch {
            state_dir: runs.map(|runs| Text(runs.path().as_os_str().to_owned())),
            // The guard keeps no descriptor but its own: it joins in a moment, or is refused.
            group_generations: asked.map(|asked| asked.generations),
            secrets,
            ..Launch::new(fresh_id(), Placement::Foreground)
        };
        Ok(Box::new(Assignment { spec, launch, report, verbosity }))
    }

    /// What it comes to in this placement, before anything is begun or read.
    fn into_spec(mut self, placement: Placement) -> Result<Spec> {
        for (key, value) in std::mem::take(&mut self.labels) {
            self.spec.labels.insert(key, value)?;
        }
        if let Some(group) = &mut self.spec.group {
            let name = group.parse::<GroupName>();
            *group = name.map_err(|why| CommandError::GroupName(why.to_string()))?.to_string();
        }
        secret::check(&self.spec.secrets, &self.set)?;
        let mut spec = self.settled(placement)?;
        spec.check()?;
        // A restart may be asked for elsewhere.
        let given = spec.cwd.take().unwrap_or_else(|| ".".into());
        spec.cwd = Some(absolute(&given).unwrap_or(given));
        let paths = spec.secrets.iter_mut().map(|secret| &mut secret.path).chain(&mut spec.report);
        for path in paths {
            *path = absolute(path).map_err(Error::io("find a file"))?;
        }
        Ok(spec)
    }
}

/// A run that is ready to be started: its spec is checked, and nothing is begun.
struct PreparedRun {
    runs: Runs,
    keeper: PathBuf,
    spec: Spec,
    group: Option<AskedGroup>,
    placement: Placement,
}

impl PreparedRun {
    fn of(mut command: Command, placement: Placement) -> Result<PreparedRun> {
        let mut runs = command.runs.take().map_or_else(Runs::open, Ok)?;
        if let Some(keeper) = &command.keeper {
            runs = runs.with_keeper(keeper);
        }
        let keeper = runs.keeper()?;
        command.check_descriptors()?;
        let mut spec = command.into_spec(placement)?;
        let group = ask(&spec, runs.store())?;
        spec.hide_secret_names();
        Ok(PreparedRun { runs, keeper, spec, group, placement })
    }

    /// Starts the process that is to be the guard.
    fn recruit(
        self,
        secrets: Vec<Sealed>,
        mask: &Mask,
    ) -> Result<(Runs, Recruit, Start, Option<AskedGroup>)> {
        let PreparedRun { runs, keeper, spec, group, placement } = self;
        let app = runs.app().map(str::to_owned);
        let host = fullstop_cage::linux::identify(own_pid()).map(|process| Host { app, process });
        let launch = Launch {
            host,
            state_dir: Some(Text(runs.path().as_os_str().to_owned())),
            group_generations: group.as_ref().map(|asked| asked.generations.clone()),
            secrets,
            ..Launch::new(fresh_id(), placement)
        };
        let recruit = Recruit::spawn(&keeper, &Tag::new(&launch.id, runs.path()), mask)?;
        Ok((runs, recruit, Start::new(spec, launch), group))
    }
}

fn absolute(path: &Text) -> std::io::Result<Text> {
    std::path::absolute(&path.0).map(|path| Text(path.into_os_string()))
}

fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_pid()
}

/// What the group is now, before anything takes time: a start that comes to its birth late
/// must notice that the group was closed since.
pub(crate) fn ask(spec: &Spec, store: &Store) -> Result<Option<AskedGroup>> {
    let group: Option<GroupName> = spec.group.as_deref().map(str::parse).transpose()?;
    Ok(group.map(|group| group.ask(store.root())).transpose()?)
}

/// A secret's file may be a pipe, whose writer may take a while.
async fn read_secrets(spec: &Spec) -> Result<Vec<Sealed>> {
    if spec.secrets.is_empty() {
        return Ok(Vec::new());
    }
    let files = spec.secrets.clone();
    offload(move || files.iter().map(secret::read).collect()).await?
}

/// Hands a start to a keeper and waits until the command runs.
pub(crate) async fn begin_run(runs: &Runs, recruit: Recruit, start: Start) -> Result<Run> {
    let (group, id) = (start.spec.group.clone(), start.launch.id.clone());
    let (reply, line) = recruit.hand_over(start, runs.by()).await?.answer().await?;
    match reply.map(|Reply { kind, .. }| kind) {
        // What says that it has started another run is no keeper of this one.
        Some(ReplyKind::Accepted { run, generation, .. }) if run == id => {
            let line = line.into_std().map_err(Error::io("hold the line"))?;
            Ok(Run::hosted(runs.clone(), run, generation, line))
        }
        Some(ReplyKind::Failed(failure)) if failure.code == FailureCode::GroupClosed => {
            let (group, why) = (group.unwrap_or_default(), failure.message);
            let closed = match runs.group(&group) {
                Ok(group) => group.closed_by().await.ok().flatten(),
                Err(_) => None,
            };
            Err(Error::GroupClosed { group, closed, why })
        }
        Some(ReplyKind::Failed(failure)) => Err(Error::NotStarted(failure)),
        Some(_) => Err(Error::not_started("the keeper answered strangely")),
        None => Err(Error::not_started("the keeper died before the command ran")),
    }
}
