//! One deed for each of several runs.

use crate::explain::explain;
use crate::fail::{FAILED, Fail, STUCK, complain};
use fullstop::{Error, Run, Runs};

/// What goes wrong with one run is said, and the others have their turn. The status is that
/// of the last failure.
pub async fn each(
    words: &[String],
    status: fn(&Error) -> u8,
    mut act: impl AsyncFnMut(Run) -> Result<(), Error>,
) -> Result<(), Fail> {
    let runs = Runs::open()?;
    let mut failed = None;
    for word in words {
        let done = match runs.find(word).await {
            Ok(run) => act(run).await,
            Err(error) => Err(error),
        };
        if let Err(error) = done {
            complain(format!("{word}: {}", explain(&error)));
            failed = Some(Fail::silent(status(&error)));
        }
    }
    failed.map_or(Ok(()), Err)
}

/// The status of commands whose failures have one status, unless a run lives on.
pub fn failed(error: &Error) -> u8 {
    if let Error::LivesOn { .. } = error { STUCK } else { FAILED }
}
