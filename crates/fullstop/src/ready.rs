//! When a run that serves others is ready for them.

use crate::error::{Error, Result};
use crate::run::Run;
use fullstop_core::report::Report;
use fullstop_store::Standing;
use std::ffi::OsString;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout_at};

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

impl Ready {
    /// An error, where there is no output to look into.
    async fn is(&self, run: &Run) -> Result<bool> {
        Ok(match self {
            Ready::Line(text) => {
                let (out, err) = run.output()?;
                out.lines().chain(err.lines()).any(|line| line.contains(text))
            }
            Ready::File(path) => Path::new(path).exists(),
            Ready::Port(port) => {
                TcpStream::connect((Ipv4Addr::LOCALHOST, *port)).await.is_ok()
                    || TcpStream::connect((Ipv6Addr::LOCALHOST, *port)).await.is_ok()
            }
        })
    }
}

impl Run {
    /// Waits until it is ready. An error, if it ends before, or the time is over;
    /// it is not stopped by that.
    pub async fn wait_ready(&self, ready: &Ready, patience: Duration) -> Result<()> {
        let until = Instant::now() + patience;
        loop {
            // Asked before, or its last words would be missed.
            let over = self.standing()? != Standing::Live;
            if timeout_at(until, ready.is(self)).await.unwrap_or(Ok(false))? {
                return Ok(());
            }
            if over {
                return Err(ended_before(self));
            }
            if Instant::now() >= until {
                let time = fullstop_core::duration::format(patience);
                return Err(Error::TimedOut(format!(
                    "run {} is not ready after {time}",
                    self.id()
                )));
            }
            sleep(LOOK_EVERY).await;
        }
    }
}

fn ended_before(run: &Run) -> Error {
    let report = run.record().ok().and_then(|record| record.report);
    let why = report.map_or_else(String::new, |report: Report| format!(" ({})", report.reason));
    Error::Failed { status: 125, why: format!("run {} ended before it was ready{why}", run.id()) }
}
