//! The same without an async runtime of one's own.
//!
//! ```no_run
//! let run = fullstop::blocking::spawn(fullstop::Command::new("claude"))?;
//! let report = fullstop::blocking::wait(run.stop())?;
//! # Ok::<(), fullstop::Error>(())
//! ```

pub use crate::background::Background;

use crate::command::Command;
use crate::error::{Error, Result};
use crate::run::Run;

/// Does what was asked for, to its end, on this thread.
///
/// ```
/// # let dir = std::env::temp_dir().join(format!("fullstop-doc-blocking-{}", std::process::id()));
/// # let runs = fullstop::Runs::at(&dir)?;
/// use fullstop::{Command, blocking};
///
/// let run = blocking::spawn(Command::new("true").runs(&runs))?;
/// let report = blocking::wait(run.wait())?;
/// assert_eq!(report.exit, Some(fullstop::Exit::Code(0)));
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn wait<T>(what: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(Error::io("make a runtime"))?.block_on(what)
}

/// As [`Command::spawn`].
pub fn spawn(command: Command) -> Result<Run> {
    wait(command.spawn())
}

/// As [`Command::start`].
pub fn start(command: Command) -> Result<Run> {
    wait(command.start())
}
