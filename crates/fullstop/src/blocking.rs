//! The same without an async runtime of one's own.
//!
//! ```no_run
//! fullstop::init();
//! let run = fullstop::blocking::spawn(fullstop::Command::new("claude"))?;
//! let report = fullstop::blocking::wait(run.stop())?;
//! # Ok::<(), fullstop::Error>(())
//! ```

use crate::command::Command;
use crate::error::{Error, Result};
use crate::run::Run;

/// Does what was asked for, to its end, on this thread.
///
/// ```no_run
/// let run = fullstop::Runs::open()?.find("research")?;
/// let report = fullstop::blocking::wait(run.kill())?;
/// # Ok::<(), fullstop::Error>(())
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
