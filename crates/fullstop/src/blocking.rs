//! The same without an async runtime of one's own: [`wait`] for any future of this library.
//!
//! ```no_run
//! let run = fullstop::blocking::spawn(fullstop::Command::new("claude"))?;
//! let report = fullstop::blocking::wait(run.stop())?;
//! # Ok::<(), fullstop::Error>(())
//! ```

pub use crate::background::Background;

use crate::command::Command;
use crate::error::{Error, Result};
use crate::helpers::InPlace;
use crate::run::Run;

/// Does what was asked for, to its end, on this thread. Files are read on this thread as well:
/// nothing else of this program waits for it, and no helper thread is needed.
///
/// As every runtime, it cannot be used inside another one, or inside itself.
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
    let runtime = runtime.map_err(Error::io("make a runtime"))?;
    let _in_place = InPlace::begin();
    runtime.block_on(what)
}

/// As [`Command::spawn`].
pub fn spawn(command: Command) -> Result<Run> {
    wait(command.spawn())
}

/// As [`Command::start`].
pub fn start(command: Command) -> Result<Run> {
    wait(command.start())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::helpers::help;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn to_wait_inside_of_a_wait_is_a_panic_and_leaves_the_outer_one_whole() {
        let waited = wait(async {
            let inner = catch_unwind(AssertUnwindSafe(|| wait(help(|| 1))));
            assert!(inner.is_err(), "one runtime inside another");
            let here = std::thread::current().id();
            // Still on this thread, as the outer one has promised.
            assert_eq!(help(|| std::thread::current().id()).await?, here);
            Ok(7)
        });
        assert_eq!(waited.ok(), Some(7));
        let threads: Vec<_> = (0..16)
            .map(|number| std::thread::spawn(move || wait(help(move || number)).ok()))
            .collect();
        for (number, thread) in threads.into_iter().enumerate() {
            assert_eq!(thread.join().ok().flatten(), Some(number));
        }
    }
}
