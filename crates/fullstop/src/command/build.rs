//! Whatever can be said about a command, but for its streams.

use super::{Agent, Command};
use crate::runs::Runs;
use fullstop_core::cage::CagePreference;
use fullstop_core::ladder::Ladder;
use fullstop_core::words::OnExit;
use fullstop_protocol::{HostPolicy, Text};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

impl Command {
    #[must_use]
    pub fn arg(mut self, word: impl Into<OsString>) -> Command {
        self.spec.argv.push(Text(word.into()));
        self
    }

    #[must_use]
    pub fn args<I: IntoIterator<Item: Into<OsString>>>(mut self, words: I) -> Command {
        self.spec.argv.extend(words.into_iter().map(|word| Text(word.into())));
        self
    }

    #[must_use]
    pub fn env(self, key: impl Into<OsString>, value: impl Into<OsString>) -> Command {
        let key = key.into();
        let mut command = self.env_remove(&key);
        command.set.push(key.clone());
        command.spec.env.push((Text(key), Text(value.into())));
        command
    }

    #[must_use]
    pub fn env_remove(mut self, key: impl AsRef<OsStr>) -> Command {
        self.spec.env.retain(|(known, _)| known.0 != key.as_ref());
        self.set.retain(|known| known != key.as_ref());
        self
    }

    #[must_use]
    pub fn env_clear(mut self) -> Command {
        self.spec.env.clear();
        self.set.clear();
        self
    }

    #[must_use]
    pub fn current_dir(mut self, dir: impl Into<OsString>) -> Command {
        self.spec.cwd = Some(Text(dir.into()));
        self
    }

    /// A name by which it can be found, beside its id.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Command {
        self.spec.name = Some(name.into());
        self
    }

    /// A label by which it can be found, as others can that have it too. What is no label is
    /// an error when the command is begun.
    #[must_use]
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Command {
        self.labels.push((key.into(), value.into()));
        self
    }

    /// Joins a group (`plan/research` lies inside `plan`); it is not born if that is closed. What
    /// is no name of a group is an error when the command is begun.
    #[must_use]
    pub fn group(mut self, name: impl Into<String>) -> Command {
        self.spec.group = Some(name.into());
        self
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
        self.spec.timeout = Some(timeout);
        self
    }

    /// What happens to the rest when the leader exits and others live.
    #[must_use]
    pub fn on_exit(mut self, on_exit: OnExit) -> Command {
        self.spec.on_exit = on_exit;
        self
    }

    /// What happens when this program dies.
    #[must_use]
    pub fn on_host_exit(mut self, policy: HostPolicy) -> Command {
        self.spec.on_host_exit = Some(policy);
        self
    }

    #[must_use]
    pub fn cage(mut self, cage: CagePreference) -> Command {
        self.spec.cage = cage;
        self
    }

    /// Writes the report there as well.
    #[must_use]
    pub fn report(mut self, path: impl Into<PathBuf>) -> Command {
        self.spec.report = Some(Text(path.into().into_os_string()));
        self
    }

    /// Keeps its record among these runs, and not where records usually are.
    #[must_use]
    pub fn runs(mut self, runs: &Runs) -> Command {
        self.runs = Some(runs.clone());
        self
    }

    /// The executable to be its keeper: a `fullstop` binary, or any program that
    /// links this library.
    #[must_use]
    pub fn keeper(mut self, executable: impl Into<PathBuf>) -> Command {
        self.keeper = Some(executable.into());
        self
    }
}
