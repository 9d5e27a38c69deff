//! From a command to a run.

use super::Command;
use crate::error::{Error, Result};
use crate::host::Recruit;
use crate::offload::offload;
use crate::run::Run;
use crate::runs::Runs;
use crate::secret::{self, SecretFile};
use fullstop_core::id::Id;
use fullstop_core::machine::Plan;
use fullstop_keeper::commission::Commission;
use fullstop_keeper::{Ending, Ground, HostPolicy, Loudness, Secret, Sink, Spec, fresh_id};
use fullstop_store::{AskedGroup, GroupName, Reply, Stdin, Store, Streams, Tag};
use std::ffi::OsString;
use std::io::{IsTerminal as _, stdin};

const CLOSES_TERMINAL: &str = "this ladder writes or closes stdin, and a terminal is not ours to \
                               close; pipe something in, or use signals";

impl Command {
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

    /// Runs it on a terminal of its own, and keeps what it writes for the window that this
    /// program is about to open. For the command `fullstop`; not stable.
    #[doc(hidden)]
    pub async fn start_for_window(self) -> Result<Run> {
        self.begin(Ground::Window).await
    }

    async fn begin(self, ground: Ground) -> Result<Run> {
        let mut runs = self.runs.clone().map_or_else(Runs::open, Ok)?;
        if let Some(keeper) = &self.keeper {
            runs = runs.with_keeper(keeper);
        }
        // Before anything is begun.
        runs.keeper()?;
        self.check_descriptors()?;
        let (plan, streams) = self.fit_for(ground)?;
        // Kept until it is born.
        let asked = ask(self.group.as_ref(), runs.store())?;
        let secrets = read_secrets(self.secrets).await?;
        let env = without(self.env, &secrets);
        let id = fresh_id();
        let recruit = Recruit::spawn(&runs.keeper()?, &Tag::new(&id, runs.path()))?;
        let commission = Commission {
            id,
            generation: 1,
            plan,
            name: self.name,
            group: self.group.map(|group| group.to_string()),
            group_generations: asked.as_ref().map(|asked| asked.generations.clone()),
            argv: self.argv.into_iter().map(Into::into).collect(),
            env: env.into_iter().map(|(key, value)| (key.into(), value.into())).collect(),
            cwd: self.cwd.map(Into::into),
            cage: self.cage,
            on_host_exit: self.on_host_exit,
            report: self.report.map(|path| path.into_os_string().into()),
            store: runs.path().as_os_str().to_owned().into(),
            ground,
            streams,
            secrets,
            keep_fds: self.keep_fds,
        };
        commission_run(&runs, recruit, commission).await
    }

    /// Becomes the guard of the command, in place of this program: `fullstop run`.
    /// To be called while there is one thread. Returns how to end.
    pub fn run_here(self, report: Option<Sink>, loudness: Loudness) -> Result<Ending> {
        let (plan, streams) = self.fit_for(Ground::Front)?;
        if plan.ladder.needs_stdin() && streams.stdin == Stdin::Inherit && stdin().is_terminal() {
            return Err(Error::Unfit(CLOSES_TERMINAL.to_owned()));
        }
        let asked = match (&self.group, &self.runs) {
            (None, _) => None,
            (group, Some(runs)) => ask(group.as_ref(), runs.store())?,
            (group, None) => ask(group.as_ref(), &Store::open()?)?,
        };
        let secrets = self.secrets.iter().map(SecretFile::read).collect::<Result<Vec<_>>>()?;
        Ok(fullstop_keeper::run(Spec {
            id: fresh_id(),
            name: self.name,
            group: self.group,
            // The guard keeps no descriptor but its own: it joins in a moment, or is refused.
            group_generations: asked.map(|asked| asked.generations),
            generation: 1,
            argv: self.argv,
            env: without(self.env, &secrets),
            cwd: self.cwd,
            plan,
            cage: self.cage,
            on_host_exit: self.on_host_exit,
            report,
            store: self.runs.map(|runs| runs.path().to_owned()),
            ground: Ground::Front,
            streams,
            secrets,
            loudness,
        }))
    }

    /// What it comes to on this ground, before anything is begun or read.
    fn fit_for(&self, ground: Ground) -> Result<(Plan, Streams)> {
        check_name(self.name.as_deref())?;
        secret::check(&self.secrets, &self.set)?;
        Ok((self.plan()?, self.settled(ground)?))
    }
}

/// What the group is now, before anything takes time: a start that comes to its birth late
/// must notice that the group was closed since.
pub(crate) fn ask(group: Option<&GroupName>, store: &Store) -> Result<Option<AskedGroup>> {
    Ok(group.map(|group| group.ask(store.root())).transpose()?)
}

/// They may be pipes, and whoever writes into those may take a while.
async fn read_secrets(files: Vec<SecretFile>) -> Result<Vec<Secret>> {
    if files.is_empty() {
        return Ok(Vec::new());
    }
    let read = move || files.iter().map(SecretFile::read).collect();
    offload(read).await?
}

/// What was inherited under the name of a secret gives way to that.
fn without(mut env: Vec<(OsString, OsString)>, secrets: &[Secret]) -> Vec<(OsString, OsString)> {
    env.retain(|(key, _)| secrets.iter().all(|secret| secret.name.0 != *key));
    env
}

/// Hands a commission to a keeper and waits until the command runs.
pub(crate) async fn commission_run(
    runs: &Runs,
    recruit: Recruit,
    commission: Commission,
) -> Result<Run> {
    let mut line = recruit.hand_over(commission).await?;
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
        // A whole id always means its run, so that such a name could mean another one.
        Some(name) if name.parse::<Id>().is_ok() => {
            Err(Error::Unfit(format!("{name:?} is no name: it is written like the id of a run")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_is_written_like_an_id() {
        let refused = |name: &str| matches!(check_name(Some(name)), Err(Error::Unfit(_)));
        assert!(refused("0tfsgdc50f59n") && refused("") && refused("two\nlines"));
        assert!(!refused("0tfs") && !refused("research") && check_name(None).is_ok());
    }
}
