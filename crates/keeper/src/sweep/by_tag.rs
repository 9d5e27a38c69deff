//! What the kernel shows of a lost run, whatever is written down of it: the cgroup that
//! carries its tag.
//!
//! The rule: no run is said to be over, is put away, removed or forgotten while processes live
//! in the cgroup that carries its tag. Where that is all there is to go by, nobody is killed
//! while a process shows the title of the run's keeper or guard: the lock may have been
//! replaced under them.

use super::{Mode, NAP, SweepFinding, passing};
use crate::name::{GUARD, KEEPER};
use crate::notes::answers;
use fullstop_cage::Witness;
use fullstop_cage::linux::{LostCage, Marked, MemberEvidence, inside, now, probe, titled_founders};
use fullstop_core::cage::CageKind;
use fullstop_core::id::Id;
use fullstop_core::words::Reason;
use fullstop_protocol::{REPORT_VERSION, Report, RunState, Timestamp};
use fullstop_store::{Store, Tag};
use std::path::{Path, PathBuf};
use std::thread::sleep;

/// The cgroup beneath our own that carries the tag of this run, if processes live in it.
pub fn living_cgroup(store: &Store, id: &Id) -> Option<PathBuf> {
    let path = probe::own_cgroup()?.join(Tag::new(id, store.path()).cgroup());
    probe::is_populated(&path).then_some(path)
}

/// Ends a run of which nothing can be read. `None`, if no process lives in the cgroup that
/// carries its tag.
pub(super) fn end_unread(store: &Store, id: &Id, mode: Mode) -> Option<SweepFinding> {
    let cgroup = living_cgroup(store, id)?;
    if let Some(why) = why_not_killed(store, id, &cgroup) {
        return Some(SweepFinding::left(&why));
    }
    let alive = inside(&cgroup).len();
    if mode == Mode::DryRun {
        return Some(SweepFinding::WouldEnd { alive });
    }
    if !kill_all(&cgroup) {
        return Some(SweepFinding::left(&unkilled(&cgroup)));
    }
    Some(match LostCage::new(Some(&cgroup), MemberEvidence::default()).remove_if_empty() {
        Some(witness) => {
            SweepFinding::Ended { killed: alive, report: Box::new(unread_report(id, witness)) }
        }
        None => SweepFinding::left(&unkilled(&cgroup)),
    })
}

/// Why the processes in the cgroup are not killed, although nothing that is written down says
/// that the run is looked after.
pub(super) fn why_not_killed(store: &Store, id: &Id, cgroup: &Path) -> Option<String> {
    if let Some(pid) = keeper_or_guard(store, id) {
        return Some(format!("pid {pid} shows the title of its keeper or guard"));
    }
    let unseen = inside(cgroup).is_empty();
    unseen.then(|| {
        format!("processes that cannot be seen from here live in its cgroup {}", cgroup.display())
    })
}

/// A process that shows the title of the run's keeper or guard. Any process can show any
/// title, so that it tells whom not to kill, and no more.
pub fn keeper_or_guard(store: &Store, id: &Id) -> Option<i32> {
    let tag = Tag::new(id, store.path()).to_string();
    let mut shown =
        [KEEPER, GUARD].into_iter().flat_map(|name| titled_founders(name).unwrap_or_default());
    shown.find_map(|(pid, shown)| (shown == tag).then_some(pid))
}

/// Whether that process shows the title of the run's keeper.
pub fn shows_title_of_keeper(store: &Store, id: &Id, pid: i32) -> bool {
    let tag = Tag::new(id, store.path()).to_string();
    titled_founders(KEEPER).unwrap_or_default().contains(&(pid, tag))
}

/// Kills everybody in a cgroup; whether nobody is left in it, by the kernel's own count.
pub(super) fn kill_all(path: &Path) -> bool {
    let lost_cage = LostCage::new(Some(path), MemberEvidence::default());
    let until = now() + passing::PATIENCE;
    loop {
        let found = lost_cage.find(&Marked::default());
        if lost_cage.cgroup_is_empty() || now() >= until {
            return lost_cage.cgroup_is_empty();
        }
        lost_cage.kill(&found);
        sleep(NAP);
    }
}

fn unkilled(cgroup: &Path) -> String {
    format!(
        "its record and its spec are gone, and processes live in its cgroup {}",
        cgroup.display()
    )
}

/// All that is known of it is that it lived, and that its cgroup is empty now.
fn unread_report(id: &Id, witness: Witness) -> Report {
    Report {
        version: REPORT_VERSION,
        id: id.clone(),
        name: None,
        generation: 1,
        command: Vec::new(),
        cage: CageKind::Cgroup.into(),
        state: RunState::Ended { reason: Reason::KeeperDied.into() },
        at: Timestamp::now(),
        asked: None,
        exit: None,
        steps: Vec::new(),
        leftovers: Vec::new(),
        survivors: Vec::new(),
        released: Vec::new(),
        proof: Some(witness.proof().into()),
        kernel: Some(answers(witness)),
        output: Vec::new(),
        drained: None,
        holders: Vec::new(),
        error: Some("its record was gone; a sweep ended the run by its cgroup".to_owned()),
        started_at: Timestamp::default(),
        elapsed_ms: 0,
    }
}
