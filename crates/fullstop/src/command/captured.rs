//! A command whose output is wanted as a whole.

use super::Command;
use crate::error::Result;
use fullstop_protocol::Report;

/// How a command ended, and what it wrote.
///
/// ```
/// # let dir = std::env::temp_dir().join(format!("fullstop-doc-captured-{}", std::process::id()));
/// # let runs = fullstop::Runs::at(&dir)?;
/// use fullstop::blocking;
///
/// let done = blocking::wait(runs.command("sh").args(["-c", "echo out; echo err >&2"]).output())?;
/// assert!(done.report.is_proven());
/// assert_eq!((&done.stdout[..], &done.stderr[..]), (&b"out\n"[..], &b"err\n"[..]));
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CapturedOutput {
    /// How it ended.
    pub report: Report,
    /// Of a command with a terminal of its own, all that it has shown there.
    pub stdout: Vec<u8>,
    /// What it wrote to stderr.
    pub stderr: Vec<u8>,
}

impl Command {
    /// Runs it, captured, and waits until it is over with everything it has started. Of a log
    /// that is limited ([`Command::log_max`]) head and tail are returned.
    ///
    /// If the future is dropped, the run is stopped.
    pub async fn output(self) -> Result<CapturedOutput> {
        let run = self.capture().spawn().await?;
        let report = run.wait().await?;
        let (stdout, stderr) = run.output().await?;
        Ok(CapturedOutput { report, stdout, stderr })
    }
}
