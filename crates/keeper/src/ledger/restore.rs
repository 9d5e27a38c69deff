//! Making anew what was removed under a live run.
//!
//! A confused agent may remove the state directory, or a part of it. The run is restored
//! and not stopped: a careless `rm -rf` shall not cost an agent its work, and a run that
//! others can find again can be stopped by them again.
//!
//! Nothing tells a keeper of the removal: a user has few inotify watches. So it looks at
//! the names by which others find its run, at most once a second, whenever it is awake
//! anyway, and every ten minutes.

use super::Ledger;
use crate::assignment::Assignment;
use crate::capture::Capture;
use fullstop_cage::linux::now;
use fullstop_core::words::{Moment, Stream};
use fullstop_protocol::EventKind;
use fullstop_store::format::SpecFile;
use fullstop_store::{Name, Result, StoreError};
use std::os::fd::OwnedFd;
use std::time::Duration;

/// How soon the names are looked at again, if the keeper is awake anyway or has failed to
/// restore them.
const SOONEST: Duration = Duration::from_secs(1);
/// How soon they are looked at if it is not.
const LATEST: Duration = Duration::from_mins(10);

/// What is needed to make the names of a run anew.
#[derive(Debug)]
pub(super) struct Names {
    /// A record was written: that there is none is a loss.
    pub(super) has_record: bool,
    /// The spec that is written down names another lock.
    spec_is_stale: bool,
    looked: Moment,
    failed: bool,
}

impl Names {
    pub(super) fn new() -> Names {
        Names { has_record: false, spec_is_stale: false, looked: now(), failed: false }
    }

    /// When they must be looked at.
    pub(super) fn look_at(&self) -> Moment {
        self.looked + if self.failed { SOONEST } else { LATEST }
    }
}

/// What the keeper of a restored run has to do.
#[derive(Debug)]
pub struct Restored {
    /// Where it is to listen from now on.
    pub socket: Option<OwnedFd>,
    /// Its group was closed meanwhile: it may not live on.
    pub group_is_closed: bool,
}

impl Ledger {
    /// Looks at the names if it is time to, and makes anew what was removed; nothing, if
    /// all is there. What fails is tried again.
    pub fn look_after_names(
        &mut self,
        assigned: &Assignment,
        listens: bool,
        capture: Option<&mut Capture>,
    ) -> Option<Restored> {
        if now() < self.names.looked + SOONEST {
            return None;
        }
        let restored = self.restore(assigned, listens, capture);
        self.names.looked = now();
        self.names.failed = restored.is_err();
        restored.ok().flatten()
    }

    /// The order is that of a birth: the lock is held before the run is listed, and it
    /// listens before it joins its group.
    pub(super) fn restore(
        &mut self,
        assigned: &Assignment,
        listens: bool,
        mut capture: Option<&mut Capture>,
    ) -> Result<Option<Restored>> {
        let names = self.run.lost_names(self.names.has_record, listens)?;
        let no_log = capture.as_mut().is_some_and(|it| it.logs().any(|(_, log)| log.is_unlinked()));
        if names.is_empty() && !no_log {
            return Ok(None);
        }
        let is_moved = self.run.restore_lock()?;
        self.record.lock = self.run.lock_inode();
        self.names.spec_is_stale |= is_moved;
        self.has_room &= !is_moved;
        let mut lost = self.begin_logs(capture)?;
        lost.extend((!self.run.has_events()).then(|| "events".to_owned()));
        if names.contains(&Name::Spec) || self.names.spec_is_stale {
            self.run.rewrite_spec(&self.spec_again(assigned))?;
            self.names.spec_is_stale = false;
        }
        // A full disk costs the room, and no run.
        let _ = self.take_room();
        if self.members.is_begun() {
            self.write_members()?;
        }
        self.run.write_record(&self.record)?;
        self.run.list_again()?;
        if names.contains(&Name::Name) {
            self.run.list_name_again()?;
        }
        let socket = if listens && (is_moved || names.contains(&Name::Socket)) {
            Some(self.run.listen()?)
        } else {
            None
        };
        let joins = is_moved || names.contains(&Name::Membership);
        let group_is_closed = match assigned.group()?.filter(|_| joins && listens) {
            None => false,
            Some(group) => match self.run.join(&group) {
                Err(StoreError::GroupClosed(_)) => {
                    self.run.leave_group();
                    true
                }
                joined => joined.map(|()| false)?,
            },
        };
        self.tell_restored(&names, lost);
        Ok(Some(Restored { socket, group_is_closed }))
    }

    /// Begins each log anew that was removed. Returns the streams whose output is lost.
    fn begin_logs(&self, capture: Option<&mut Capture>) -> Result<Vec<String>> {
        let mut lost = Vec::new();
        for (stream, log) in capture.into_iter().flat_map(Capture::logs) {
            if !log.is_in(&self.run) {
                log.begin_anew(&self.run)?;
                lost.push(Stream::to_string(&stream));
            }
        }
        Ok(lost)
    }

    /// It comes before what is still to be told: an end is the last event.
    fn tell_restored(&mut self, names: &[Name], lost: Vec<String>) {
        let restored = names.iter().map(|name| name.word().to_owned()).collect();
        let event = self.unnumbered(EventKind::Restored { restored, lost });
        self.events.insert(0, event);
        self.write();
    }

    /// The spec is written anew with another host: where there is no record, it alone tells whose
    /// run it is.
    pub fn adopted(&mut self, assigned: &Assignment) {
        self.know_host(assigned.launch.host.as_ref());
        self.names.spec_is_stale |= self.run.rewrite_spec(&self.spec_again(assigned)).is_err();
        self.write();
    }

    /// The spec as it was written, with the lock that there is now.
    fn spec_again(&self, assigned: &Assignment) -> SpecFile {
        let mut file = super::spec_file(assigned, self.record.started_at);
        file.cgroup.clone_from(&self.record.cgroup);
        file.ancestry.clone_from(&self.record.ancestry);
        file.lock = self.run.lock_inode();
        file
    }

    /// The guard takes over. What the keeper has made anew is found by its name; what it
    /// has not come to make is made now. Of a run that is over nothing is made: its
    /// directory is there.
    pub fn find_again(&mut self, assigned: &Assignment, capture: Option<&mut Capture>) {
        if !self.run.is_removed() || self.run.restore_lock().is_err() {
            return;
        }
        self.record.lock = self.run.lock_inode();
        for (_, log) in capture.into_iter().flat_map(Capture::logs) {
            let _ = log.move_to(&self.run);
        }
        if self.run.read_spec().is_err() {
            let _ = self.run.rewrite_spec(&self.spec_again(assigned));
            let lost = if self.run.has_events() { Vec::new() } else { vec!["events".to_owned()] };
            let restored = vec![Name::Lock.word().to_owned()];
            self.event(EventKind::Restored { restored, lost });
        }
        let _ = self.run.list_again();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_looked_at_seldom_and_after_a_failure_soon() {
        let mut names = Names::new();
        assert_eq!(names.look_at(), names.looked + LATEST);
        names.failed = true;
        assert_eq!(names.look_at(), names.looked + SOONEST);
    }
}
