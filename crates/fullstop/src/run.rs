//! One run: stop it, watch it, ask how it stands.

use crate::attach::AttachOptions;
use crate::error::{Error, Result};
use crate::files::RunFiles;
use crate::helpers::{help_long, help_with};
use crate::host_line::HostLine;
use crate::many::Order;
use crate::orders::{self, ProgressSender};
use crate::restart;
use crate::runs::Runs;
use crate::status::{Process, Status, Usage};
use crate::stop::{self, Progress};
use crate::window::Window;
use fullstop_cage::linux::Mask;
use fullstop_core::id::Id;
use fullstop_core::signal::Signal;
use fullstop_core::words::Stream;
use fullstop_protocol::{Record, Report, RequestKind, Spec, Whereabouts};
use fullstop_store::{Extent, Standing};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A run, in one generation: an order never hits its successor.
///
/// When the last handle (this, and its clones) of a run that [`crate::Command::spawn`] returned
/// is dropped, the run is asked to stop by its own ladder, and that is not waited for. It lives
/// on if `on_host_exit` says so, or after [`Run::stay`]; a run that was found or started lives on
/// anyway. If this program dies, the run is ended by the short ladder, within about a second.
///
/// An order is given, whole, by the first poll of its future, and is carried out on a thread of
/// the library's own: it does not depend on the caller's executor, and dropping the future does
/// not take it back. What a future only waits or looks for ends with it.
///
/// ```
/// # let dir = std::env::temp_dir().join(format!("fullstop-doc-run-{}", std::process::id()));
/// # let runs = fullstop::Runs::at(&dir)?;
/// use fullstop::{Command, blocking};
///
/// blocking::start(Command::new("sleep").arg("60").name("research").runs(&runs))?;
/// let run = blocking::wait(runs.find("research"))?;
/// assert_eq!(blocking::wait(run.processes())?.len(), 1);
/// let report = blocking::wait(run.stop())?;
/// assert_eq!(report.reason(), fullstop::Reason::Stopped);
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Run {
    runs: Runs,
    id: Id,
    /// Unknown, if nothing of it can be read.
    generation: Option<u32>,
    /// Shared by all handles of a run of ours: what the last of them says is heard by the keeper.
    line: Option<Arc<HostLine>>,
}

impl Run {
    pub(crate) fn new(runs: Runs, id: Id, generation: Option<u32>) -> Run {
        Run { runs, id, generation, line: None }
    }

    /// A run of ours, with the line to its keeper.
    pub(crate) fn hosted(runs: Runs, id: Id, generation: u32, line: UnixStream) -> Run {
        let line = Arc::new(HostLine::new(line, runs.by()));
        Run { runs, id, generation: Some(generation), line: Some(line) }
    }

    /// The same run, without the line that makes this program its host: what holds it keeps
    /// nothing alive.
    pub(crate) fn unhosted(&self) -> Run {
        Run { line: None, ..self.clone() }
    }

    /// Says this to the keeper of a run of ours, without waiting for anything.
    pub(crate) fn say_as_host(&self, kind: RequestKind) {
        if let Some(line) = &self.line {
            line.say(kind);
        }
    }

    /// The same run, with the line that makes it ours.
    pub(crate) fn with_line(&self, line: UnixStream) -> Run {
        let line = Arc::new(HostLine::new(line, self.runs.by()));
        Run { line: Some(line), ..self.clone() }
    }

    /// The id, by which it is found again.
    pub fn id(&self) -> &Id {
        &self.id
    }

    /// The generation that this handle means. Unknown, if the files of the run cannot be read.
    pub fn generation(&self) -> Option<u32> {
        self.generation
    }

    pub(crate) fn runs(&self) -> &Runs {
        &self.runs
    }

    /// Where its record and its logs are.
    pub fn dir(&self) -> PathBuf {
        self.runs.store().run_path(&self.id)
    }

    /// It reads in place.
    pub(crate) fn standing(&self) -> Result<Standing> {
        self.files().standing()
    }

    /// How it stands, as its keeper wrote it last.
    pub async fn record(&self) -> Result<Record> {
        help_with(self.files(), RunFiles::record).await
    }

    /// What was asked for. It holds the whole environment, secrets included.
    pub async fn spec(&self) -> Result<Spec> {
        help_with(self.files(), RunFiles::spec).await
    }

    /// How it stands, as it is shown: also if its keeper is gone, or its record is damaged.
    pub async fn status(&self) -> Result<Status> {
        help_with(self.files(), RunFiles::status).await
    }

    /// Whether nothing of it is written down any more: it was removed, or never began. A
    /// live run is there even if its directory is not.
    pub async fn is_gone(&self) -> Result<bool> {
        help_with(self.files(), RunFiles::is_gone).await
    }

    /// What it uses now.
    pub async fn usage(&self) -> Result<Usage> {
        help_with(self.files(), RunFiles::usage).await
    }

    /// The processes that are alive in it, parents before children.
    pub async fn processes(&self) -> Result<Vec<Process>> {
        help_with(self.files(), RunFiles::processes).await
    }

    /// What it has written so far, stdout and stderr, if that was captured. A terminal
    /// knows no difference: all it has shown is in the first.
    pub async fn output(&self) -> Result<(Vec<u8>, Vec<u8>)> {
        help_with(self.files(), RunFiles::output).await
    }

    /// How much there is of each stream that was captured.
    pub async fn log_extents(&self) -> Result<Vec<(Stream, Extent)>> {
        help_with(self.files(), RunFiles::log_extents).await
    }

    /// Stops it by its ladder, and returns once that is proven, or it is stuck: the
    /// report says. A keeper that hangs is continued, has the time of the ladder, and is
    /// then gone around.
    ///
    /// The first poll gives the order, whole: if the future is dropped then, the stop goes on
    /// all the same. If it is dropped before, nothing was ordered.
    pub async fn stop(&self) -> Result<Report> {
        self.stop_with(|_| ()).await
    }

    /// As [`Run::stop`], telling how it goes: in the polls of the caller, and so only for as long
    /// as the future is polled.
    pub async fn stop_with(&self, tell: impl FnMut(Progress) + Send) -> Result<Report> {
        self.end(Order::Stop.request(), tell).await
    }

    /// As [`Run::stop`], in no more time than this: where its ladder takes longer it is cut
    /// short, and what lives by then is killed. The time counts from when its keeper has
    /// accepted the stop. A stop that is under way already is shortened, and never prolonged;
    /// with no time at all it is killed.
    ///
    /// If the future is dropped after its first poll, the stop goes on, and so does its clock,
    /// which the keeper holds.
    ///
    /// ```
    /// # let dir = std::env::temp_dir().join(format!("fullstop-doc-within-{}", std::process::id()));
    /// # let runs = fullstop::Runs::at(&dir)?;
    /// use fullstop::{Command, blocking};
    /// use std::time::Duration;
    ///
    /// let deaf = Command::new("sh").args(["-c", "trap '' TERM; while :; do sleep 1; done"]);
    /// let run = blocking::start(deaf.runs(&runs))?;
    /// let report = blocking::wait(run.stop_within(Duration::from_millis(200)))?;
    /// assert_eq!(report.reason(), fullstop::Reason::Stopped);
    /// assert_eq!(report.steps.last().map(|step| &*step.step), Some("kill"));
    /// # std::fs::remove_dir_all(&dir)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn stop_within(&self, total: Duration) -> Result<Report> {
        self.end(Order::StopWithin(total).request(), |_| ()).await
    }

    /// The last step, now.
    ///
    /// If the future is dropped after its first poll, the kill goes on; if before, nothing was
    /// ordered.
    pub async fn kill(&self) -> Result<Report> {
        self.kill_with(|_| ()).await
    }

    /// As [`Run::kill`], telling how it goes: in the polls of the caller, and so only for as long
    /// as the future is polled.
    pub async fn kill_with(&self, tell: impl FnMut(Progress) + Send) -> Result<Report> {
        self.end(RequestKind::Kill, tell).await
    }

    pub(crate) async fn end(
        &self,
        request: RequestKind,
        tell: impl FnMut(Progress) + Send,
    ) -> Result<Report> {
        let run = self.unhosted();
        let order = |sender: ProgressSender<Progress>| async move {
            stop::order(&run, &request, |progress| sender.send(progress)).await
        };
        orders::carry_out_telling(order, tell).await
    }

    /// Asks for a stop, and returns once that was accepted.
    ///
    /// If the future is dropped after its first poll, the run is asked all the same; if before,
    /// nothing was ordered.
    pub async fn ask_to_stop(&self) -> Result<()> {
        self.ask(Order::Stop.request()).await
    }

    /// Asks for the last step, and returns once that was accepted.
    ///
    /// If the future is dropped after its first poll, the run is asked all the same; if before,
    /// nothing was ordered.
    pub async fn ask_to_kill(&self) -> Result<()> {
        self.ask(RequestKind::Kill).await
    }

    pub(crate) async fn ask(&self, request: RequestKind) -> Result<()> {
        let run = self.unhosted();
        orders::carry_out(async move { stop::accept_living(&run, &request).await }).await
    }

    /// Waits for its end, however it comes. A stuck run is waited for.
    ///
    /// Nothing is ordered by that: if the future is dropped, it is only waited no longer.
    pub async fn wait(&self) -> Result<Report> {
        let run = self.unhosted();
        orders::await_there(async move { stop::wait(&run).await }).await
    }

    /// As [`Run::wait`], but no longer than this.
    pub async fn wait_for(&self, patience: Option<Duration>) -> Result<Report> {
        let Some(patience) = patience else { return self.wait().await };
        let run = self.unhosted();
        let waiting = async move {
            let late = |_| Error::NotEnded { id: run.id.clone(), patience };
            tokio::time::timeout(patience, stop::wait(&run)).await.map_err(late)?
        };
        orders::await_there(waiting).await
    }

    /// A window on its terminal, if it has one. A window keeps nothing alive: it is no handle.
    ///
    /// If the future is dropped, there is no window, and nothing else has changed.
    pub async fn attach(&self, options: AttachOptions) -> Result<Window> {
        Window::open(self, options).await
    }

    /// Lets it live on when this program leaves, whatever was said when it began. Only the
    /// program that spawned it may say so, through the run that it was given.
    ///
    /// If the future is dropped after its first poll, this is said all the same, and the last
    /// handle that is dropped then does not stop the run.
    pub async fn stay(&self) -> Result<()> {
        let Some(line) = self.line.clone() else {
            return Err(Error::NotHost { id: self.id.clone() });
        };
        let run = self.unhosted();
        // The line is held until that was heard.
        let order = async move { stop::tell_own(&run, line.stream(), &RequestKind::Stay).await };
        orders::carry_out(order).await
    }

    /// Sends a signal to its leader; it is no part of a stop.
    ///
    /// If the future is dropped after its first poll, the signal is sent all the same, once; if
    /// before, it is not.
    pub async fn signal(&self, signal: Signal) -> Result<()> {
        self.ask(RequestKind::Signal { signal }).await
    }

    /// Stops it, and once that is proven starts its next generation, in the
    /// background. The id stays. What the next generation needs is looked at first
    /// (its secrets are read, its program, working directory and input are looked for,
    /// room on the disk and a process are taken), and if that fails it goes on as it is.
    ///
    /// If the future is dropped after its first poll, the restart goes on, to the new generation,
    /// which has the same id; if before, nothing was ordered.
    pub async fn restart(&self) -> Result<Run> {
        let (run, mask) = (self.unhosted(), Mask::current());
        orders::carry_out(async move { restart::restart(&run, mask).await }).await
    }

    /// Removes a run that is over. A lost run is swept first; one of another machine or pid
    /// namespace is not removed: see [`Run::forget`]. What cannot be read is removed all
    /// the same, since that was asked for.
    ///
    /// If the future is dropped, the removal goes on.
    pub async fn remove(&self) -> Result<()> {
        help_long(self.files(), RunFiles::remove).await
    }

    /// As of its files, in place.
    pub(crate) fn check_cgroup(&self) -> Result<()> {
        self.files().check_cgroup()
    }

    /// Removes the record of a lost run that belongs to another machine or pid namespace,
    /// and so can neither be ended nor be proven gone from here. No process is signalled.
    /// Every other run is refused: if it is live, wherever its keeper is; if it can be judged from
    /// here; if its cgroup can be seen, and is not empty.
    pub async fn forget(&self) -> Result<Whereabouts> {
        help_long(self.files(), RunFiles::forget).await
    }

    /// Whether [`Run::forget`] would forget it.
    pub async fn is_forgettable(&self) -> Result<Whereabouts> {
        help_long(self.files(), RunFiles::is_forgettable).await
    }
}
