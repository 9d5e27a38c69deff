//! The files of one run.

use crate::error::{Error, Result};
use crate::run::Run;
use crate::runs::Runs;
use crate::status::{Process, Status, Usage, members};
use fullstop_core::id::Id;
use fullstop_core::words::Stream;
use fullstop_keeper::sweep::{self, ForgetError, Mode, SweepFinding, living_cgroup, sweep_one};
use fullstop_protocol::{Record, RunState, Spec, Whereabouts};
use fullstop_store::{Extent, Standing, Store};

/// Holds nothing of the run: not its directory, and not the line to its keeper.
#[derive(Clone, Debug)]
pub(crate) struct RunFiles {
    runs: Runs,
    id: Id,
}

impl Run {
    pub(crate) fn files(&self) -> RunFiles {
        RunFiles { runs: self.runs().clone(), id: self.id().clone() }
    }
}

impl RunFiles {
    pub fn new(runs: &Runs, id: &Id) -> RunFiles {
        RunFiles { runs: runs.clone(), id: id.clone() }
    }

    pub fn id(&self) -> &Id {
        &self.id
    }

    pub fn store(&self) -> &Store {
        self.runs.store()
    }

    pub fn standing(&self) -> Result<Standing> {
        Ok(self.store().standing(&self.id)?)
    }

    pub fn record(&self) -> Result<Record> {
        Ok(self.store().record(&self.id)?)
    }

    pub fn spec(&self) -> Result<Spec> {
        Ok(self.store().spec(&self.id)?.spec)
    }

    pub fn status(&self) -> Result<Status> {
        if let Some(status) = Status::of(self.store(), &self.id) {
            return Ok(status);
        }
        let id = self.id.clone();
        Err(if self.is_gone()? { Error::Removed { id } } else { Error::BeingBorn { id } })
    }

    pub fn is_gone(&self) -> Result<bool> {
        Ok(self.store().is_gone(&self.id)?)
    }

    pub fn usage(&self) -> Result<Usage> {
        Ok(Usage::of(self.store(), &self.id)?)
    }

    pub fn processes(&self) -> Result<Vec<Process>> {
        Ok(members(&self.record()?).iter().map(Process::of).collect())
    }

    pub fn output(&self) -> Result<(Vec<u8>, Vec<u8>)> {
        let read = |stream| self.store().output(&self.id, stream);
        match read(Stream::Tty) {
            Err(error) if error.is_missing() => Ok((read(Stream::Out)?, read(Stream::Err)?)),
            other => Ok((other?, Vec::new())),
        }
    }

    pub fn log_extents(&self) -> Result<Vec<(Stream, Extent)>> {
        let mut extents = Vec::new();
        for stream in Stream::ALL {
            if let Some(log) = self.store().log(&self.id, stream)? {
                extents.push((stream, log.extent()?));
            }
        }
        Ok(extents)
    }

    pub fn remove(&self) -> Result<()> {
        let store = self.store();
        let is_lost = match self.standing()? {
            Standing::Live => false,
            Standing::Lost => true,
            Standing::Over => store.list_lost(&self.id).unwrap_or(false),
        };
        if is_lost {
            match sweep_one(store, &self.id, Mode::End).map(|swept| swept.found) {
                Some(SweepFinding::LeftAlone { elsewhere: Some(whereabouts), .. }) => {
                    return Err(Error::LostElsewhere { id: self.id.clone(), whereabouts });
                }
                Some(SweepFinding::LeftAlone { .. }) => {
                    self.check_cgroup()?;
                    store.put_away(&self.id)?;
                }
                _ => {}
            }
            // There was only the listing.
            if self.is_gone()? {
                return Ok(());
            }
        }
        self.check_cgroup()?;
        Ok(store.remove(&self.id)?)
    }

    /// An error, if processes live in the cgroup that carries the tag of this run, which is
    /// over by all that is written down. Those of a released one may.
    pub fn check_cgroup(&self) -> Result<()> {
        let is_released = || self.record().is_ok_and(|record| record.state == RunState::Released);
        match living_cgroup(self.store(), &self.id) {
            Some(cgroup) if !is_released() && self.standing()? != Standing::Live => {
                Err(Error::LivesOn { id: self.id.clone(), cgroup })
            }
            _ => Ok(()),
        }
    }

    pub fn forget(&self) -> Result<Whereabouts> {
        self.forgotten(sweep::forget)
    }

    pub fn is_forgettable(&self) -> Result<Whereabouts> {
        self.forgotten(sweep::is_forgettable)
    }

    fn forgotten(
        &self,
        act: fn(&Store, &Id) -> std::result::Result<Whereabouts, ForgetError>,
    ) -> Result<Whereabouts> {
        let why = |why| Error::NotForgotten { id: self.id.clone(), why };
        act(self.store(), &self.id).map_err(why)
    }
}
