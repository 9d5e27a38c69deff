//! When a run that serves others is ready for them.

use crate::error::{Error, Result};
use crate::run::Run;
use fullstop_core::words::Stream;
use fullstop_protocol::StopReason;
use fullstop_store::{LogReader, Piece, Standing};
use std::ffi::OsString;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout_at};

/// How much of a log is looked through before the clock is looked at.
const AT_ONCE: usize = 1 << 20;
/// How often it is looked.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What is waited for.
///
/// ```standalone_crate
/// # fullstop::init();
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
enum Search<'a> {
    Line(Lines<'a>),
    Port(u16),
    File(&'a Path),
}

impl Ready {
    /// An error, where there is no output to look into.
    fn search(&self, run: &Run) -> Result<Search<'_>> {
        Ok(match self {
            Ready::Line(text) => Search::Line(Lines::of(run, text)?),
            Ready::Port(port) => Search::Port(*port),
            Ready::File(path) => Search::File(Path::new(path)),
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

impl Search<'_> {
    async fn look(&mut self) -> Result<Looked> {
        let found = match self {
            Search::Line(lines) => return lines.look(),
            Search::File(path) => path.exists(),
            Search::Port(port) => {
                TcpStream::connect((Ipv4Addr::LOCALHOST, *port)).await.is_ok()
                    || TcpStream::connect((Ipv6Addr::LOCALHOST, *port)).await.is_ok()
            }
        };
        Ok(if found { Looked::Found } else { Looked::NotYet })
    }
}

/// A text that is looked for in what comes; what was read is not read again.
struct Lines<'a> {
    text: &'a [u8],
    /// With the end of what was read, in which it may have begun.
    logs: Vec<(LogReader, Vec<u8>)>,
}

impl Lines<'_> {
    fn of<'a>(run: &Run, text: &'a str) -> Result<Lines<'a>> {
        let mut logs = Vec::new();
        for stream in Stream::ALL {
            let log = run.runs().store().log(run.id(), stream)?;
            logs.extend(log.map(|log| (log, Vec::new())));
        }
        if logs.is_empty() {
            return Err(Error::NoLog { id: run.id().clone(), stream: None });
        }
        Ok(Lines { text: text.as_bytes(), logs })
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
                if contains(seen, self.text) {
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
    pub async fn wait_ready(&self, ready: &Ready, patience: Duration) -> Result<()> {
        let until = Instant::now() + patience;
        let mut search = ready.search(self)?;
        loop {
            // Asked before, or its last words would be missed.
            let over = self.standing()? != Standing::Live;
            let looked = timeout_at(until, search.look()).await.unwrap_or(Ok(Looked::NotYet))?;
            if looked == Looked::Found {
                return Ok(());
            }
            if over && looked == Looked::NotYet {
                return Err(ended_before(self));
            }
            if Instant::now() >= until {
                return Err(Error::NotReady { id: self.id().clone(), patience });
            }
            if looked == Looked::Behind {
                tokio::task::yield_now().await;
                continue;
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// As [`Run::wait_ready`], but a run that is not ready in time is stopped by its
    /// ladder, for that reason.
    pub async fn ready_or_stop(&self, ready: &Ready, patience: Duration) -> Result<()> {
        let waited = self.wait_ready(ready, patience).await;
        match &waited {
            Ok(()) => {}
            Err(Error::NotReady { .. }) => {
                drop(self.stop_for(StopReason::StartTimeout, |_| ()).await?);
            }
            Err(_) => drop(self.stop().await?),
        }
        waited
    }
}

fn ended_before(run: &Run) -> Error {
    let report = run.record().ok().and_then(|record| record.report);
    Error::EndedBeforeReady { id: run.id().clone(), report: report.map(Box::new) }
}
