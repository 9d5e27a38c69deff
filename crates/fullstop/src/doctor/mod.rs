//! What this machine offers, which cage a run would get, what could escape it, what
//! is left over, and what to do next.
//!
//! Everything is tried out, not read off a version: see `fullstop_cage`'s probes.

mod cage;
mod escape;
mod finding;
mod kernel;
mod leftover;
mod limits;
mod pids;
mod place;
mod records;
mod state;

pub use finding::{Area, Doctor, Finding, Level};

use crate::error::Result;
use crate::helpers::help_long;
use crate::runs::Runs;
use place::Place;

/// Examines this machine, and the state directory that runs usually have.
///
/// ```
/// # let dir = std::env::temp_dir().join(format!("fullstop-doc-doctor-{}", std::process::id()));
/// # let runs = fullstop::Runs::at(&dir)?;
/// # let doctor = || runs.doctor();
/// let doctor = fullstop::blocking::wait(doctor())?;
/// println!("{}: {}", doctor.verdict, doctor.next.as_deref().unwrap_or("nothing to do"));
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub async fn doctor() -> Result<Doctor> {
    help_long((), |()| Ok(examine(&Runs::open()))).await
}

impl Runs {
    /// Examines this machine and this directory.
    pub async fn doctor(&self) -> Result<Doctor> {
        help_long(self.clone(), |runs| Ok(examine(&Ok(runs.clone())))).await
    }
}

fn examine(runs: &Result<Runs>) -> Doctor {
    let place = Place::here();
    let had = cage::Had::here();
    let mut findings = place.findings();
    findings.extend(kernel::findings(&had));
    findings.push(had.finding(&place));
    findings.extend(escape::findings(had.kind(), &place, &had.way_out(&place)));
    findings.extend(state::findings(runs));
    if let Ok(runs) = runs {
        findings.extend(records::findings(runs));
        findings.extend(leftover::finding(runs));
        findings.push(leftover::unlisted(runs));
    }
    findings.extend(limits::findings());
    Doctor::new(had.kind(), findings)
}
