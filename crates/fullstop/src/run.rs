//! One run: stop it, watch it, ask how it stands.

use crate::command::commission_run;
use crate::error::{Error, Result};
use crate::runs::Runs;
use crate::status::{Process, Status, members};
use crate::stop::{self, Progress};
use fullstop_core::id::Id;
use fullstop_core::report::Report;
use fullstop_core::signal::Signal;
use fullstop_core::words::Reason;
use fullstop_keeper::commission::Commission;
use fullstop_keeper::{Ground, HostPolicy};
use fullstop_store::format::{RecordFile, SpecFile};
use fullstop_store::{Request, Standing};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A run, in one generation: an order never hits its successor.
///
/// Dropping the run that [`crate::Command::spawn`] returned stops it, unless
/// `on_host_exit` says otherwise; one that was found or started lives on.
///
/// ```standalone_crate
/// # fullstop::init();
/// # let dir = std::env::temp_dir().join(format!("fullstop-doc-run-{}", std::process::id()));
/// # let runs = fullstop::Runs::at(&dir)?;
/// use fullstop::{Command, blocking};
///
/// blocking::start(Command::new("sleep").arg("60").name("research").runs(&runs))?;
/// let run = runs.find("research")?;
/// assert_eq!(run.processes()?.len(), 1);
/// let report = blocking::wait(run.stop())?;
/// assert_eq!(report.reason, fullstop::Reason::Stopped);
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Run {
    runs: Runs,
    id: Id,
    generation: u32,
    /// Held for as long as this lives: its end tells the keeper of ours.
    _line: Option<Arc<UnixStream>>,
}

impl Run {
    pub(crate) fn new(runs: Runs, id: Id, generation: u32) -> Run {
        Run { runs, id, generation, _line: None }
    }

    /// A run of ours, with the line to its keeper.
    pub(crate) fn hosted(runs: Runs, id: Id, generation: u32, line: UnixStream) -> Run {
        Run { runs, id, generation, _line: Some(Arc::new(line)) }
    }

    pub fn id(&self) -> &Id {
        &self.id
    }

    pub fn generation(&self) -> u32 {
        self.generation
    }

    pub(crate) fn runs(&self) -> &Runs {
        &self.runs
    }

    /// Where its record and its logs are.
    pub fn dir(&self) -> PathBuf {
        self.runs.store().run_path(&self.id)
    }

    pub(crate) fn standing(&self) -> Result<Standing> {
        Ok(self.runs.store().standing(&self.id)?)
    }

    pub fn record(&self) -> Result<RecordFile> {
        Ok(self.runs.store().record(&self.id)?)
    }

    /// What was asked for. It holds the whole environment, secrets included.
    pub fn spec(&self) -> Result<SpecFile> {
        Ok(self.runs.store().spec(&self.id)?)
    }

    pub fn status(&self) -> Result<Status> {
        let gone = || Error::Unfit(format!("run {} was removed", self.id));
        Status::of(self.runs.store(), &self.id).ok_or_else(gone)
    }

    /// Who is alive in it, parents before children.
    pub fn processes(&self) -> Result<Vec<Process>> {
        Ok(members(&self.record()?).into_iter().map(Process::from).collect())
    }

    /// What it has written so far, stdout and stderr, if it was started in the
    /// background.
    pub fn output(&self) -> Result<(String, String)> {
        let store = self.runs.store();
        let read = |name| store.output(&self.id, name);
        Ok((read(fullstop_store::OUT)?, read(fullstop_store::ERR)?))
    }

    /// Stops it by its ladder, and returns once that is proven, or it is stuck: the
    /// report says. A keeper that does not answer is gone around.
    pub async fn stop(&self) -> Result<Report> {
        self.stop_for(Reason::Stopped, |_| ()).await
    }

    /// As [`Run::stop`], telling how it goes.
    pub async fn stop_with(&self, tell: impl FnMut(Progress)) -> Result<Report> {
        self.stop_for(Reason::Stopped, tell).await
    }

    pub(crate) async fn stop_for(
        &self,
        reason: Reason,
        tell: impl FnMut(Progress),
    ) -> Result<Report> {
        let request = Request::Stop { generation: Some(self.generation), reason };
        stop::order(self, &request, tell).await
    }

    /// The last step, now.
    pub async fn kill(&self) -> Result<Report> {
        self.kill_with(|_| ()).await
    }

    /// As [`Run::kill`], telling how it goes.
    pub async fn kill_with(&self, tell: impl FnMut(Progress)) -> Result<Report> {
        let request = Request::Kill { generation: Some(self.generation) };
        stop::order(self, &request, tell).await
    }

    /// Asks for a stop, and returns once that was accepted.
    pub async fn ask_to_stop(&self) -> Result<()> {
        let request = Request::Stop { generation: Some(self.generation), reason: Reason::Stopped };
        stop::accept(self, &request).await.map(drop)
    }

    /// Asks for the last step, and returns once that was accepted.
    pub async fn ask_to_kill(&self) -> Result<()> {
        let request = Request::Kill { generation: Some(self.generation) };
        stop::accept(self, &request).await.map(drop)
    }

    /// Waits for its end, however it comes. A stuck run is waited for.
    pub async fn wait(&self) -> Result<Report> {
        stop::wait(self).await
    }

    /// As [`Run::wait`], but no longer than this.
    pub async fn wait_for(&self, patience: Option<Duration>) -> Result<Report> {
        let Some(patience) = patience else { return self.wait().await };
        let time = || fullstop_core::duration::format(patience);
        let late = |_| Error::TimedOut(format!("run {} has not ended after {}", self.id, time()));
        tokio::time::timeout(patience, self.wait()).await.map_err(late)?
    }

    /// Sends a signal to its leader; it is no part of a stop.
    pub async fn signal(&self, signal: Signal) -> Result<()> {
        let request = Request::Signal { generation: Some(self.generation), signal };
        stop::accept(self, &request).await.map(drop)
    }

    /// Stops it, and once that is proven starts its next generation, in the
    /// background. The id stays.
    pub async fn restart(&self) -> Result<Run> {
        let report = self.stop().await?;
        if report.proof.is_none() {
            let why = format!("run {} is {}; it is not started again", self.id, report.state);
            return Err(Error::Unfit(why));
        }
        let spec = self.spec()?;
        let commission = Commission {
            id: spec.id,
            name: spec.name,
            group: spec.group,
            generation: spec.generation + 1,
            argv: spec.argv,
            env: spec.env,
            cwd: spec.cwd,
            plan: spec.plan,
            cage: spec.cage,
            on_host_exit: HostPolicy::Ignore,
            report: None,
            store: self.runs.path().to_owned(),
            ground: Ground::Back,
        };
        commission_run(&self.runs, commission).await
    }

    /// Forgets a run that is over.
    pub fn remove(&self) -> Result<()> {
        Ok(self.runs.store().remove(&self.id)?)
    }
}
