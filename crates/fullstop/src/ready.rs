//! When a run that serves others is ready for them.

use crate::error::{Error, Result};
use crate::files::RunFiles;
use crate::helpers::help_with;
use crate::orders::await_there;
use crate::run::Run;
use fullstop_core::duration;
use fullstop_core::words::Stream;
use fullstop_protocol::{RequestKind, StopReason};
use fullstop_store::{LogReader, Piece, Standing};
use std::ffi::OsString;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout_at};

/// How much of a log is looked through before the clock is looked at.
const AT_ONCE: usize = 1 << 20;
/// How often it is looked.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What is waited for.
///
/// ```
/// # let dir = std::env::temp_dir().join(format!("fullstop-doc-ready-{}", std::process::id()));
/// # let runs = fullstop::Runs::at(&dir)?;
/// use fullstop::{Command, Ready, blocking};
///
/// let server = Command::new("sh").args(["-c", "echo listening; exec sleep 60"]).runs(&runs);
/// let run = blocking::start(server)?;
/// let ready = Ready::Line("listening".to_owned());
/// blocking::wait(run.wait_ready(&ready, std::time::Duration::from_secs(30)))?;
/// blocking::wait(run.stop())?;
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ready {
    /// A line of output has this in it.
    Line(String),
    /// This port of this machine accepts.
    Port(u16),
    /// This file exists.
    File(OsString),
}

/// How it is looked for, and how far that has come.
enum Search {
    Line(Lines),
    Port(u16),
    File(PathBuf),
}

impl Ready {
    /// An error, where there is no output to look into.
    fn search(self, run: &RunFiles) -> Result<Search> {
        Ok(match self {
            Ready::Line(text) => Search::Line(Lines::of(run, text)?),
            Ready::Port(port) => Search::Port(port),
            Ready::File(path) => Search::File(path.into()),
        })
    }
}

/// What came of a look.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Looked {
    Found,
    NotYet,
    /// There is more to look at already.
    Behind,
}

impl Looked {
    fn of(found: bool) -> Looked {
        if found { Looked::Found } else { Looked::NotYet }
    }
}

impl Search {
    /// Looks in place. A port is not looked at by this.
    fn look_at_files(&mut self) -> Result<Looked> {
        match self {
            Search::Line(lines) => lines.look(),
            Search::File(path) => Ok(Looked::of(path.exists())),
            Search::Port(_) => Ok(Looked::NotYet),
        }
    }
}

async fn look_at_port(port: u16) -> Looked {
    Looked::of(
        TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.is_ok()
            || TcpStream::connect((Ipv6Addr::LOCALHOST, port)).await.is_ok(),
    )
}

/// A text that is looked for in what comes; what was read is not read again.
struct Lines {
    text: Vec<u8>,
    /// With the end of what was read, in which it may have begun.
    logs: Vec<(LogReader, Vec<u8>)>,
}

impl Lines {
    fn of(run: &RunFiles, text: String) -> Result<Lines> {
        let mut logs = Vec::new();
        for stream in Stream::ALL {
            let log = run.store().log(run.id(), stream)?;
            logs.extend(log.map(|log| (log, Vec::new())));
        }
        if logs.is_empty() {
            return Err(Error::NoLog { id: run.id().clone(), stream: None });
        }
        Ok(Lines { text: text.into_bytes(), logs })
    }

    /// Looks through what has come since the last look; not through all of it at once,
    /// if that is much.
    fn look(&mut self) -> Result<Looked> {
        let mut behind = false;
        for (log, seen) in &mut self.logs {
            let mut left = AT_ONCE;
            while let Some(piece) = log.next()? {
                match piece {
                    Piece::Cut { .. } => seen.clear(),
                    Piece::Bytes { bytes, .. } => {
                        left = left.saturating_sub(bytes.len());
                        seen.extend(bytes);
                    }
                }
                if contains(seen, &self.text) {
                    return Ok(Looked::Found);
                }
                seen.drain(..seen.len().saturating_sub(self.text.len()));
                if left == 0 {
                    behind = true;
                    break;
                }
            }
        }
        Ok(if behind { Looked::Behind } else { Looked::NotYet })
    }
}

fn contains(bytes: &[u8], text: &[u8]) -> bool {
    text.is_empty() || bytes.windows(text.len()).any(|window| window == text)
}

impl Run {
    /// Waits until it is ready. An error, if it ends before, or the time is over;
    /// it is not stopped by that.
    ///
    /// Nothing is ordered by that: if the future is dropped, it is only waited no longer.
    pub async fn wait_ready(&self, ready: &Ready, patience: Duration) -> Result<()> {
        await_there(wait_ready(self.unhosted(), ready.clone(), patience)).await
    }

    /// As [`Run::wait_ready`], but a run that is not ready in time is stopped by its
    /// ladder, for that reason.
    ///
    /// If the future is dropped while it is waited, the run is left as it is; a stop that was
    /// begun by then goes on.
    pub async fn ready_or_stop(&self, ready: &Ready, patience: Duration) -> Result<()> {
        let waited = self.wait_ready(ready, patience).await;
        match &waited {
            Ok(()) => {}
            Err(Error::NotReady { .. }) => {
                let reason = StopReason::StartTimeout;
                let request = RequestKind::Stop { reason, signal: None, within: None };
                drop(self.end(request, |_| ()).await?);
            }
            Err(_) => drop(self.stop().await?),
        }
        waited
    }
}

async fn wait_ready(run: Run, ready: Ready, patience: Duration) -> Result<()> {
    let until = Instant::now() + patience.min(duration::LONGEST);
    let mut search = help_with(run.files(), move |files| ready.search(files)).await?;
    loop {
        let look = move |files: &RunFiles| {
            // Asked before, or its last words would be missed.
            let over = files.standing()? != Standing::Live;
            let looked = search.look_at_files()?;
            Ok((over, looked, search))
        };
        let (over, mut looked, again) = help_with(run.files(), look).await?;
        search = again;
        if let Search::Port(port) = &search {
            let accepts = timeout_at(until, look_at_port(*port));
            looked = accepts.await.unwrap_or(Looked::NotYet);
        }
        if looked == Looked::Found {
            return Ok(());
        }
        if over && looked == Looked::NotYet {
            return Err(ended_before(&run).await);
        }
        if Instant::now() >= until {
            return Err(Error::NotReady { id: run.id().clone(), patience });
        }
        if looked == Looked::Behind {
            tokio::task::yield_now().await;
            continue;
        }
        sleep(LOOK_EVERY).await;
    }
}

async fn ended_before(run: &Run) -> Error {
    let report = run.record().await.ok().and_then(|record| record.report);
    Error::EndedBeforeReady { id: run.id().clone(), report: report.map(Box::new) }
}
