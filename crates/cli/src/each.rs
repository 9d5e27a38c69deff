//! One deed for each of several runs.

use crate::explain::explain;
use crate::fail::{FAILED, Fail, STUCK, complain};
use crate::stop::meant;
use fullstop::{Error, Run, Runs};
use fullstop_cli::args::Which;

/// What goes wrong with one run is said, and the others have their turn. The status is that
/// of the last failure.
pub fn each(
    words: &[String],
    status: fn(&Error) -> u8,
    mut act: impl FnMut(Run) -> Result<(), Error>,
) -> Result<(), Fail> {
    let runs = Runs::open()?;
    let mut failed = None;
    for word in words {
        if let Err(error) = runs.find(word).and_then(&mut act) {
            complain(format!("{word}: {}", explain(&error)));
            failed = Some(Fail::silent(status(&error)));
        }
    }
    failed.map_or(Ok(()), Err)
}

/// The same for all that are meant; those that have a label, if it is by that.
pub fn each_meant(
    which: &Which,
    status: fn(&Error) -> u8,
    mut act: impl FnMut(Run) -> Result<(), Error>,
) -> Result<(), Fail> {
    if let Which::Ids(words) = which {
        return each(words, status, act);
    }
    let (meant, unknown) = meant(&Runs::open()?, which)?;
    let mut failed = unknown.then(|| Fail::silent(FAILED));
    for run in meant {
        let id = run.id().clone();
        if let Err(error) = act(run) {
            complain(format!("{id}: {}", explain(&error)));
            failed = Some(Fail::silent(status(&error)));
        }
    }
    failed.map_or(Ok(()), Err)
}

/// The status of commands whose failures have one status, unless a run lives on.
pub fn failed(error: &Error) -> u8 {
    if let Error::LivesOn { .. } = error { STUCK } else { FAILED }
}
