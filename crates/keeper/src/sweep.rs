//! Sweep: find runs whose keeper and guard are gone, and end them.
//!
//! A run is lost if it is listed as unfinished and its lock is free. A sweep holds a second lock
//! on it, so that two sweeps do not meet. Records of another machine or pid namespace are left
//! alone.

mod by_tag;
mod elsewhere;
mod passing;

pub use by_tag::{keeper_or_guard, living_cgroup, shows_title_of_keeper};
pub use elsewhere::{ForgetError, LostElsewhere, forget, is_forgettable};
pub use passing::{
    MOST_LOOKS, lost_in_passing, sweep_before_list, sweep_beside_run, sweep_in_passing,
};

use crate::assignment::MARKER;
use crate::notes::answers;
use by_tag::{end_unread, kill_all, why_not_killed};
use fullstop_cage::linux::{
    LostCage, Marked, MemberEvidence, PinnedProcess, inside, last_born, members, now,
};
use fullstop_cage::{Round, Witness};
use fullstop_core::id::Id;
use fullstop_core::ladder::KILL_PATIENCE;
use fullstop_core::words::{Exit, Proof, Reason};
use fullstop_protocol::{
    Event, EventKind, REPORT_VERSION, Record, Report, RunState, StepRecord, Timestamp,
    TrackedMember, Whereabouts, Word,
};
use fullstop_store::format::SpecFile;
use fullstop_store::{KnownMembers, Result, RunDir, Standing, Store, StoreError, Tag, world};
use serde::Serialize;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

/// After a round that found no new process.
const NAP: Duration = Duration::from_micros(300);
/// So many searches in a row must find no member while processes are being born: a member that
/// hops from pid to pid can be missed by any single search.
const CLEAN_SEARCHES: usize = 10;

/// What a sweep made of one lost run.
///
/// ```
/// use fullstop_keeper::sweep::{Mode, sweep};
/// use fullstop_store::Store;
///
/// let dir = std::env::temp_dir().join(format!("fullstop-doc-swept-{}", std::process::id()));
/// let swept = sweep(&Store::at(&dir)?, Mode::DryRun)?;
/// assert!(swept.is_empty());
/// # let _ = std::fs::remove_dir_all(&dir);
/// # Ok::<(), fullstop_store::StoreError>(())
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct Swept {
    /// The id of the run.
    pub id: Id,
    /// The name that it was given.
    pub name: Option<String>,
    /// What was found, and done.
    pub found: SweepFinding,
}

/// What a sweep found.
///
/// ```
/// use fullstop_keeper::sweep::SweepFinding;
///
/// let found = SweepFinding::WouldEnd { alive: 3 };
/// assert_eq!(serde_json::to_string(&found)?, r#"{"found":"would-end","alive":3}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "found", rename_all = "kebab-case")]
pub enum SweepFinding {
    /// Nothing of it is alive any more.
    Ended {
        /// How many were alive, and were killed.
        killed: usize,
        /// How it ended.
        report: Box<Report>,
    },
    /// A member could not be killed; the run stays listed and is tried again.
    Stuck {
        /// It names the survivors.
        report: Box<Report>,
    },
    /// It was over, and only had not been put away.
    PutAway,
    /// It would have been ended; nothing was done.
    WouldEnd {
        /// How many are known to live.
        alive: usize,
    },
    /// It cannot be judged from here.
    LeftAlone {
        /// Why not.
        why: String,
        /// It belongs to another machine or pid namespace, and could be forgotten.
        #[serde(skip_serializing_if = "Option::is_none")]
        elsewhere: Option<Whereabouts>,
    },
}

/// How a sweep is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// End what is lost.
    End,
    /// As that, but the dying are waited for no longer than this.
    Within(Duration),
    /// Only look.
    DryRun,
}

impl SweepFinding {
    /// Left alone, because of this.
    fn left(why: &impl ToString) -> SweepFinding {
        SweepFinding::LeftAlone { why: why.to_string(), elsewhere: None }
    }

    /// Left alone, because of where it belongs.
    fn left_elsewhere(whereabouts: Whereabouts) -> SweepFinding {
        let elsewhere = Some(whereabouts).filter(|it| it.is_elsewhere());
        SweepFinding::LeftAlone { why: whereabouts.to_string(), elsewhere }
    }
}

/// The runs without keeper and guard. A run whose lock cannot be read is among them: its sweep
/// says why it cannot be read.
pub fn lost(store: &Store) -> Result<Vec<Id>> {
    Ok(store.live()?.into_iter().filter(|id| is_lost(store, id)).collect())
}

fn is_lost(store: &Store, id: &Id) -> bool {
    !matches!(store.standing(id), Ok(Standing::Live | Standing::Over))
}

/// Ends every lost run of this store. What goes wrong with one hides no other.
pub fn sweep(store: &Store, mode: Mode) -> Result<Vec<Swept>> {
    let lost = lost(store)?;
    Ok(lost.iter().filter_map(|id| sweep_one(store, id, mode)).collect())
}

/// Ends a run that was found to be lost; nothing, if another sweep is at it, or it is lost no
/// more.
pub fn sweep_one(store: &Store, id: &Id, mode: Mode) -> Option<Swept> {
    if let Some(lost) = LostElsewhere::look(store, id).filter(|lost| !lost.may_be_proven()) {
        let LostElsewhere { id, name, whereabouts, .. } = lost;
        return Some(Swept { id, name, found: SweepFinding::left_elsewhere(whereabouts) });
    }
    let name = store.record(id).ok().and_then(|record| record.name);
    let swept = |found| Some(Swept { id: id.clone(), name: name.clone(), found });
    let unread = |why: StoreError| match end_unread(store, id, mode) {
        None => SweepFinding::left(&why),
        Some(found @ SweepFinding::Ended { .. }) => match store.put_away(id) {
            Ok(()) => found,
            Err(error) => SweepFinding::left(&error),
        },
        Some(found) => found,
    };
    match store.take_over(id) {
        Err(error) if error.is_missing() => swept(unread(error)),
        Err(error) => swept(SweepFinding::left(&error)),
        Ok(None) => None,
        Ok(Some(run)) if run.is_stillborn() => swept(undo_birth(store, run, mode)),
        Ok(Some(run)) => swept(match Lost::read(store, run) {
            Ok(lost) => lost.end(store, mode),
            Err(damage @ StoreError::Damaged { .. }) => unread(damage),
            Err(why) => SweepFinding::left(&why),
        }),
    }
}

/// Puts away a run of which nothing is written down. Its cgroup is made after its spec, so
/// that one with processes in it is not that of a birth: both files were removed.
fn undo_birth(store: &Store, run: RunDir, mode: Mode) -> SweepFinding {
    if let Some(pid) = keeper_or_guard(store, run.id()) {
        return SweepFinding::left(&format!("pid {pid} shows the title of its keeper or guard"));
    }
    let found = match end_unread(store, run.id(), mode) {
        Some(found) => found,
        None if run.was_begun() => {
            return SweepFinding::left(&format!(
                "its record and its spec are gone, so that some of it may live; fullstop rm {} \
                 forgets it",
                run.id()
            ));
        }
        None => SweepFinding::PutAway,
    };
    if mode != Mode::DryRun && matches!(found, SweepFinding::PutAway | SweepFinding::Ended { .. }) {
        run.abandon();
    }
    found
}

/// A process that was killed counts until it is dead, though nothing leads to it any more: its
/// parent may have died before it.
fn keep_the_dying(found: &mut Vec<PinnedProcess>, before: Vec<PinnedProcess>) {
    let again: HashSet<i32> = found.iter().map(PinnedProcess::pid).collect();
    let dying = |held: &PinnedProcess| held.stat().is_some_and(|stat| stat.is_alive());
    found.extend(before.into_iter().filter(|held| !again.contains(&held.pid()) && dying(held)));
}

/// The cgroup, if it is one that could have been made for this run: a record can be
/// edited, and must not name a stranger's cgroup, nor lead to one by a link.
fn own_cgroup(record: &Record) -> Option<&Path> {
    let is_own = |path: &&Path| {
        let run = path.file_name().and_then(OsStr::to_str).and_then(Tag::of_cgroup);
        run.is_some_and(|(id, _)| id == record.id) && !path.is_symlink()
    };
    record.cgroup.as_deref().filter(is_own)
}

/// Kills all processes in a run's cgroup, also if the run has a keeper. Returns whether there
/// is such a cgroup, and no process is left in it.
pub fn kill_cgroup(record: &Record) -> bool {
    own_cgroup(record).filter(|path| path.exists()).is_some_and(kill_all)
}

struct Lost {
    run: RunDir,
    record: Record,
    /// The cgroup that carries its tag, if processes live in it.
    living: Option<PathBuf>,
    /// What keeper and guard have told of this generation.
    told: Vec<Event>,
    /// The members that are known to have been in it.
    known: KnownMembers,
}

/// The record, or what the spec says if that is damaged: it still tells where the cgroup is.
/// A record of a newer fullstop may mean other things by the same words.
fn read_record_or_spec(run: &RunDir) -> Result<Record> {
    match run.read_record() {
        Err(damage @ StoreError::Damaged { .. }) => {
            run.read_spec().map(SpecFile::first_record).map_err(|_| damage)
        }
        other => other,
    }
}

impl Lost {
    fn read(store: &Store, mut run: RunDir) -> Result<Lost> {
        let record = read_record_or_spec(&run)?;
        if record.id != *run.id() {
            let why = format!("its record is that of run {}", record.id);
            return Err(StoreError::Damaged { path: run.path().to_owned(), why });
        }
        run.rejoin(&record);
        let mut told = run.events();
        told.retain(|event| event.generation == record.generation);
        let known = run.read_members(&record);
        let living = living_cgroup(store, run.id());
        Ok(Lost { run, record, living, told, known })
    }

    fn end(mut self, store: &Store, mode: Mode) -> SweepFinding {
        if self.is_over() {
            return self.put_away(mode);
        }
        let whereabouts = world::whereabouts(&self.record.world);
        if whereabouts == Whereabouts::BeforeReboot && self.living.is_none() {
            return self.rebooted(mode);
        }
        if let Some(why) = self.why_its_lock_says_nothing() {
            return SweepFinding::left(&why);
        }
        match (whereabouts, &self.living) {
            (Whereabouts::Here, None) => {}
            (elsewhere, None) => return self.elsewhere(elsewhere, mode),
            (elsewhere, Some(cgroup)) if elsewhere.is_elsewhere() => {
                let cgroup = cgroup.display();
                return SweepFinding::left(&format!(
                    "{elsewhere}, but processes live in its cgroup {cgroup}"
                ));
            }
            (_, Some(cgroup)) => {
                if !self.tells_of(cgroup)
                    && let Some(why) = why_not_killed(store, self.run.id(), cgroup)
                {
                    return SweepFinding::left(&why);
                }
            }
        }
        let mut lost_cage = self.lost_cage();
        let found = lost_cage.find(&self.marked());
        if mode == Mode::DryRun {
            return SweepFinding::WouldEnd { alive: found.len() };
        }
        let patience = match mode {
            Mode::Within(patience) => patience.min(KILL_PATIENCE),
            Mode::End | Mode::DryRun => KILL_PATIENCE,
        };
        self.kill(&mut lost_cage, found, patience)
    }

    /// A free lock is that of a copy: of a directory, or of a whole disk.
    fn why_its_lock_says_nothing(&self) -> Option<String> {
        let lock = self.record.lock.or_else(|| self.run.read_spec().ok()?.lock);
        let id = &self.record.id;
        if lock.is_some() && lock != self.run.lock_inode() {
            return Some(format!(
                "its directory is a copy, whose lock says nothing; fullstop rm {id} forgets it"
            ));
        }
        let pid = self.living_keeper()?;
        Some(format!(
            "its keeper or guard lives (pid {pid}), so that this is a copy of its directory"
        ))
    }

    /// The keeper or the guard that is written down, if it lives. A process that is killed lets
    /// go of its lock a moment before it is dead. A member of the run is no keeper.
    fn living_keeper(&self) -> Option<i32> {
        let is_here = world::is_here(&self.record.world);
        let until = now() + passing::PATIENCE;
        let members = self.living.as_deref().map(inside).unwrap_or_default();
        let written = [self.record.keeper, self.record.guard].into_iter().flatten();
        let mut others = written.filter(|one| !members.iter().any(|it| it.pid() == one.pid));
        others.find_map(|identity| {
            let held = PinnedProcess::known(&identity, |_| false).filter(|_| is_here)?;
            while !held.is_dead() {
                if now() >= until {
                    return Some(identity.pid);
                }
                sleep(NAP);
            }
            None
        })
    }

    /// Its record says so, and the kernel does not deny it. Released members live on.
    fn is_over(&self) -> bool {
        let is_released = self.record.state == RunState::Released;
        self.record.state.is_over() && (is_released || self.living.is_none())
    }

    /// Whether the record says that the run lives here, in this cgroup.
    fn tells_of(&self, cgroup: &Path) -> bool {
        let is_here = world::whereabouts(&self.record.world) == Whereabouts::Here;
        is_here && !self.record.state.is_over() && own_cgroup(&self.record) == Some(cgroup)
    }

    fn put_away(&mut self, mode: Mode) -> SweepFinding {
        if mode != Mode::DryRun
            && let Err(error) = self.run.finish()
        {
            return SweepFinding::left(&error);
        }
        SweepFinding::PutAway
    }

    /// No process outlives its kernel, so none is signalled.
    fn rebooted(mut self, mode: Mode) -> SweepFinding {
        if mode == Mode::DryRun {
            return SweepFinding::WouldEnd { alive: 0 };
        }
        let reason = match self.first_reason() {
            Word::Known(Reason::KeeperDied) => Reason::Rebooted.into(),
            reason => reason,
        };
        let mut report = self.report(RunState::Ended { reason }, None);
        report.proof = Some(Proof::Rebooted.into());
        report.error = Some("the machine was started anew while the run was live".to_owned());
        self.finish(0, report)
    }

    /// Pids of another namespace mean nothing here. But an empty cgroup says enough.
    fn elsewhere(mut self, whereabouts: Whereabouts, mode: Mode) -> SweepFinding {
        let left = SweepFinding::left_elsewhere(whereabouts);
        if self.record.world.machine != world::here().machine {
            return left;
        }
        let mut lost_cage = LostCage::new(own_cgroup(&self.record), MemberEvidence::default());
        if mode == Mode::DryRun {
            let is_empty = lost_cage.cgroup_is_empty();
            return if is_empty { SweepFinding::WouldEnd { alive: 0 } } else { left };
        }
        match lost_cage.remove_if_empty() {
            Some(witness) => {
                let report = self.ended(witness, None);
                self.finish(0, report)
            }
            None => left,
        }
    }

    fn lost_cage(&self) -> LostCage {
        let ancestry = self.record.ancestry.clone();
        let evidence = MemberEvidence {
            variable: MARKER.to_owned(),
            id: self.record.id.to_string(),
            known: self.known.identities.clone(),
            place: ancestry.as_ref().and_then(|it| it.place.clone()),
            since: ancestry.as_ref().map(|it| it.guard.start_ticks),
            line: ancestry.map(|it| it.line).unwrap_or_default(),
        };
        let cgroup = self.living.as_deref().or_else(|| own_cgroup(&self.record));
        LostCage::new(cgroup, evidence)
    }

    /// The processes with the run's marker; none, if no member can have left the cgroup.
    fn marked(&self) -> Marked {
        if self.record.ancestry.is_none() { Marked::default() } else { Marked::scan(MARKER) }
    }

    /// Kills the members that are found, until a whole search finds none.
    fn kill(
        mut self,
        lost_cage: &mut LostCage,
        mut found: Vec<PinnedProcess>,
        patience: Duration,
    ) -> SweepFinding {
        let until = now() + patience;
        let mut killed = HashSet::new();
        let mut taken = None;
        let mut clean = 0;
        // In a cgroup the kernel counts; elsewhere it is searched.
        let counted = self.record.ancestry.is_none();
        let mut needed = if counted { 1 } else { CLEAN_SEARCHES };
        loop {
            clean = if found.is_empty() { clean + 1 } else { 0 };
            let round = lost_cage.kill(&found);
            let new = found.iter().filter(|held| killed.insert(held.pid())).count();
            taken.get_or_insert(round);
            if clean >= needed
                && let Some(witness) = lost_cage.proof()
            {
                if let Some(why) = self.unproven(witness.proof(), killed.len()) {
                    return SweepFinding::left(&why);
                }
                let step = taken.filter(|round| round.alive > 0);
                let report = self.ended(witness, step);
                return self.finish(killed.len(), report);
            }
            if now() >= until {
                let survivors: Vec<TrackedMember> =
                    members(&found).into_iter().map(Into::into).collect();
                let state = RunState::Stuck {
                    reason: self.first_reason(),
                    alive: Some(survivors.len()),
                    tries: 1,
                    tried_at: Timestamp::now(),
                };
                return self.stuck(Report { survivors, ..self.report(state, taken) });
            }
            if new == 0 {
                sleep(NAP);
            }
            let born = last_born();
            let before = std::mem::replace(&mut found, lost_cage.find(&self.marked()));
            keep_the_dying(&mut found, before);
            // A search during which no process was born has missed none.
            let quiet = born.is_some() && born == last_born();
            let certain = quiet || counted;
            needed = if certain { 1 } else { CLEAN_SEARCHES };
        }
    }

    /// Why a search that finds no process proves nothing: not all members that were written down,
    /// to be found by it, can still be read. In a cgroup the kernel has counted.
    fn unproven(&self, proof: Proof, killed: usize) -> Option<String> {
        let lost = self.known.lost.as_ref().filter(|_| proof != Proof::CgroupEmpty)?;
        let found =
            if killed > 0 { format!(" (found and killed: {killed})") } else { String::new() };
        let id = &self.record.id;
        Some(format!("{lost}, so that some of it may live{found}; fullstop rm {id} forgets it"))
    }

    /// How it ended, as the kernel has just confirmed.
    fn ended(&self, witness: Witness, round: Option<Round>) -> Report {
        let state = RunState::Ended { reason: self.first_reason() };
        let (proof, kernel) = (Some(witness.proof().into()), Some(answers(witness)));
        Report { proof, kernel, ..self.report(state, round) }
    }

    fn report(&self, state: RunState, round: Option<Round>) -> Report {
        let at = Timestamp::now();
        let elapsed = at.since(self.record.started_at);
        let elapsed_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        let step = round.map(|round| StepRecord {
            step: "kill".to_owned(),
            at_ms: elapsed_ms,
            alive: round.alive,
            signalled: round.signalled,
        });
        Report {
            version: REPORT_VERSION,
            id: self.record.id.clone(),
            name: self.record.name.clone(),
            generation: self.record.generation,
            command: self.record.command.clone(),
            cage: self.record.cage.clone(),
            state,
            at,
            asked: self.record.asked.clone(),
            exit: self.record.leader.map(|_| Exit::Unknown),
            steps: step.into_iter().collect(),
            leftovers: Vec::new(),
            survivors: Vec::new(),
            released: Vec::new(),
            proof: None,
            kernel: None,
            output: Vec::new(),
            drained: None,
            holders: Vec::new(),
            error: Some("keeper and guard were killed; a sweep ended the run".to_owned()),
            started_at: self.record.started_at,
            elapsed_ms,
        }
    }

    /// Why it was to be stopped, if it was. A step is told before the record knows.
    fn first_reason(&self) -> Word<Reason> {
        if let Some(reason) = self.record.state.reason().filter(|_| !self.record.state.is_over()) {
            return reason.clone();
        }
        let told = self.told.iter().find_map(|event| match &event.kind {
            EventKind::Step { reason, .. } => Some(reason.clone()),
            _ => None,
        });
        told.unwrap_or(Reason::KeeperDied.into())
    }

    fn finish(&mut self, killed: usize, mut report: Report) -> SweepFinding {
        // A keeper that told the end, and was cut short after it, told the truth, unless the
        // kernel denies it.
        if let Some(Event { kind: EventKind::Ended { reason, exit, .. }, .. }) = self.told.last()
            && self.living.is_none()
        {
            let state = RunState::Ended { reason: reason.clone() };
            report = Report { state, exit: *exit, ..report };
        }
        match self.write(&report).and_then(|()| self.run.finish()) {
            Ok(()) => SweepFinding::Ended { killed, report: Box::new(report) },
            Err(error) => SweepFinding::left(&error),
        }
    }

    fn stuck(&mut self, report: Report) -> SweepFinding {
        // It is told again by the next sweep, whether or not this can be written.
        let _ = self.write(&report);
        SweepFinding::Stuck { report: Box::new(report) }
    }

    fn write(&mut self, report: &Report) -> Result<()> {
        self.record.state = report.state.clone();
        self.record.at = report.at;
        self.record.report = Some(report.clone());
        self.record.events = self.record.events.max(self.run.count_events());
        if !self.told.last().is_some_and(|event| event.is_end_of(report)) {
            self.record.events += 1;
            let end = Event {
                number: self.record.events,
                at: report.at,
                id: self.record.id.clone(),
                generation: self.record.generation,
                kind: EventKind::end(report),
            };
            // The record tells it as well.
            let _ = self.run.append(&[end]);
        }
        self.run.write_record(&self.record)
    }
}
