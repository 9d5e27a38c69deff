//! What a run writes down as it goes: its spec before anybody is born, its record
//! soon after its state changes, its events.
//!
//! A record that cannot be written (a full disk) costs no run its keeper: it is
//! tried again, after a second at the latest, and said at the end.

mod restore;

use crate::assignment::Assignment;
use crate::notes::Notes;
use fullstop_cage::linux::{Blueprint, cgroup_of, glance, identify, now};
use fullstop_core::cage::CageKind;
use fullstop_core::identity::Identity;
use fullstop_core::machine::State;
use fullstop_core::words::{Moment, Reason, Stream};
use fullstop_protocol::{
    Ancestry, Asker, Event, EventKind, Host, Placement, Record, Report, RunState, StepRecord,
    Timestamp,
};
use fullstop_store::format::{Format as _, SpecFile};
use fullstop_store::{Log, MemberFile, Result, RunDir, Store, StoreError, world};
use std::os::fd::{OwnedFd, RawFd};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

#[derive(Debug)]
pub struct Ledger {
    run: RunDir,
    /// Boxed: it is large, and every start moves it around.
    record: Box<Record>,
    /// When the step ends that the record tells of.
    step_ends: Option<Moment>,
    /// What is not appended yet; numbered when it is.
    events: Vec<Event>,
    /// The process that wrote the record before us was cut short.
    taken_over: bool,
    /// When the record on disk, older than ours, is to be written next.
    due: Option<Moment>,
    /// Its last record can be written even on a disk that is full by then.
    has_room: bool,
    /// The members that only we can find, beyond the leader that the record names.
    members: MemberFile,
    /// What would have to be made anew if it were removed.
    names: restore::Names,
}

/// What is over sooner than this, a run or a stop, is written down at its end: a
/// replaced file costs more than many of them, and so does a wake-up.
pub const SETTLED: Duration = Duration::from_millis(50);
/// How often a full disk is tried again.
const WRITE_AGAIN: Duration = Duration::from_secs(1);

impl Ledger {
    /// Makes the run's directory and writes down what was asked for.
    pub fn open(
        store: &Store,
        assigned: &Assignment,
        blueprint: &Blueprint,
        started_at: Timestamp,
    ) -> Result<Ledger> {
        let run = if assigned.launch.generation == 1 {
            store.create(&assigned.launch.id)
        } else {
            store.reclaim(&assigned.launch.id)
        }?;
        if run.generation_before() + 1 != assigned.launch.generation {
            run.abandon();
            return Err(StoreError::Live { path: store.run_path(&assigned.launch.id) });
        }
        let mut file = spec_file(assigned, started_at);
        file.cgroup = blueprint.cgroup().map(ToOwned::to_owned);
        file.ancestry = if file.cgroup.is_none() { ancestry_of(own_pid()) } else { None };
        file.lock = run.lock_inode();
        if let Err(error) = run.write_spec(&file) {
            run.abandon();
            return Err(error);
        }
        let names = restore::Names::new();
        let mut record = file.first_record();
        if record.generation > 1 {
            record.events = run.read_record().map_or(0, |begun| begun.events);
        }
        let members = MemberFile::new(&record.id, record.generation);
        let mut ledger = Ledger {
            run,
            record: Box::new(record),
            step_ends: None,
            events: Vec::new(),
            taken_over: false,
            due: None,
            has_room: false,
            members,
            names,
        };
        // A run in the foreground tells how it ended, record or not, and has no time for this now.
        if assigned.launch.placement != Placement::Foreground
            && let Err(error) = ledger.take_room()
        {
            ledger.abandon();
            return Err(error);
        }
        Ok(ledger)
    }

    /// Takes the room for its last record, once.
    fn take_room(&mut self) -> Result<()> {
        if !self.has_room {
            self.run.take_room(&self.record)?;
            self.has_room = true;
        }
        Ok(())
    }

    /// Listens for orders, and joins the group: from here on the run can be stopped
    /// by others, and only now it may be born.
    pub fn listen(&mut self, assigned: &Assignment) -> Result<OwnedFd> {
        let socket = self.run.listen()?;
        match (assigned.group()?, &assigned.launch.group_generations) {
            (Some(group), Some(seen)) => self.run.join_as_asked(&group, seen)?,
            (Some(group), None) => self.run.join(&group)?,
            (None, _) => {}
        }
        Ok(socket)
    }

    /// Leaves no trace of a run, or of a generation, that never began.
    pub fn abandon(self) {
        self.run.abandon();
    }

    pub fn descriptors(&self) -> [RawFd; 3] {
        self.run.descriptors()
    }

    /// The log of a stream, behind what earlier generations wrote.
    pub fn log(&self, stream: Stream, max: Option<u64>) -> Result<Log> {
        self.run.log(stream, max)
    }

    /// The log as a plain file, for a command that writes to it without us.
    pub fn log_file(&self, stream: Stream) -> Result<OwnedFd> {
        self.run.log_file(stream).map(OwnedFd::from)
    }

    pub fn born(&mut self, leader: Option<i32>, cage: CageKind) {
        self.record.cage = cage.into();
        if cage == CageKind::Tree {
            self.record.cgroup = None;
        }
        self.event(EventKind::Started { command: self.record.command.clone(), leader });
    }

    /// Writes down the identities of the run's processes, for a client that must go around us and
    /// for a sweep that comes after us.
    pub fn identities(
        &mut self,
        leader: Option<i32>,
        guard: Option<i32>,
        cgroup: Option<(u64, u64)>,
    ) {
        (self.record.cgroup_inode, self.record.cgroup_parent_inode) = cgroup.unzip();
        self.record.leader = leader.and_then(identify);
        self.record.keeper = identify(own_pid());
        self.record.guard = guard.and_then(identify);
        if self.record.cage == CageKind::Tree && self.record.ancestry.is_none() {
            self.record.ancestry = guard.and_then(ancestry_of);
        }
        let _ = self.take_room();
        self.write();
    }

    /// Writes down what has happened, and the state if it is another one; that of a stop
    /// a little later.
    pub fn state(&mut self, state: &State, notes: &Notes) {
        let shown = notes.state(state);
        if shown.is_over() {
            return;
        }
        let step_ends = state.deadline().filter(|_| matches!(state, State::Stopping(_)));
        let changed = step_ends != self.step_ends || is_news(&self.record.state, &shown);
        if changed {
            self.step_ends = step_ends;
            // A run that is tried again has been stuck since the first time.
            let since = self.record.at;
            let was_stuck = self.record.state.is_stuck() && shown.is_stuck();
            self.stands(shown);
            if was_stuck {
                self.record.at = since;
            }
        }
        if changed && !matches!(state, State::Stopping(_)) {
            self.write();
            return;
        }
        let has_events = !self.events.is_empty();
        let appended = self.append();
        if changed || appended.is_err() {
            self.due.get_or_insert_with(|| now() + SETTLED);
        } else if has_events && self.due.is_none() {
            // No record is about to be written whose notice would name these events.
            self.run.notify(&self.record);
        }
    }

    /// Writes down the members, as far as they have changed.
    pub fn census(&mut self, roll: impl FnOnce(&mut Vec<Identity>) -> bool) {
        let leader = self.record.leader;
        let mut known: Vec<Identity> = leader.into_iter().collect();
        known.extend(self.members.iter());
        if roll(&mut known) {
            self.members.update(known.into_iter().filter(|one| Some(*one) != leader));
        }
        let is_new = !self.record.has_members_file;
        match self.write_members() {
            // The record names the file once it is there.
            Ok(()) if is_new && self.record.has_members_file => self.write(),
            Ok(()) => {}
            Err(_) => {
                self.due.get_or_insert_with(|| now() + WRITE_AGAIN);
            }
        }
    }

    fn write_members(&mut self) -> Result<()> {
        self.run.write_members(&mut self.members)?;
        self.record.has_members_file |= self.members.is_begun();
        Ok(())
    }

    /// Writes down that this process alone looks after the run from here on: a client that would
    /// go around it can see that.
    pub fn take_over(&mut self, shown: RunState) {
        self.record.keeper = identify(own_pid());
        self.record.guard = None;
        self.stands(shown);
        self.write();
    }

    fn stands(&mut self, shown: RunState) {
        self.record.state = shown;
        self.record.at = Timestamp::now();
    }

    /// Notes the process that first asked for the end. What is known already stays.
    pub fn asked(&mut self, asker: Option<&Asker>) {
        if let (None, Some(asker)) = (&self.record.asked, asker) {
            self.record.asked = Some(asker.clone());
            self.event(EventKind::Asked { asker: asker.clone() });
        }
    }

    pub fn asker(&self) -> Option<&Asker> {
        self.record.asked.as_ref()
    }

    /// Notes the host that the run has from now on. It is written with what is written next.
    pub fn know_host(&mut self, host: Option<&Host>) {
        self.record.host = host.cloned();
    }

    pub fn steps(&mut self, steps: &[StepRecord], state: &State) {
        let reason = state.reason().unwrap_or(Reason::Exited);
        for StepRecord { step, alive, signalled, .. } in steps.iter().cloned() {
            self.event(EventKind::Step { step, alive, signalled, reason: reason.into() });
        }
    }

    pub fn event(&mut self, kind: EventKind) {
        self.events.push(self.unnumbered(kind));
    }

    fn unnumbered(&self, kind: EventKind) -> Event {
        let (id, generation) = (self.record.id.clone(), self.record.generation);
        Event { number: 0, at: Timestamp::now(), id, generation, kind }
    }

    /// The guard begins where the keeper was cut short.
    pub fn reload(&mut self) {
        self.taken_over = true;
        self.run.expect_members();
        if let Ok(record) = self.run.read_record()
            && record.generation == self.record.generation
        {
            *self.record = record;
        }
        self.record.events = self.record.events.max(self.run.count_events());
        self.run.rejoin(&self.record);
    }

    /// Ended, stuck or released. Returns what could not be written.
    pub fn report(&mut self, assigned: &Assignment, report: &Report) -> Option<String> {
        self.note_end(report);
        let mut written = self.write_end();
        if written.as_ref().is_err_and(StoreError::is_missing) {
            // The directory was removed since it was last looked for.
            written = self.restore(assigned, false, None).and_then(|_| self.write_end());
        }
        written.err().map(|error| error.to_string())
    }

    fn note_end(&mut self, report: &Report) {
        self.record.state = report.state.clone();
        self.record.at = report.at;
        self.record.report = Some(report.clone());
        // The keeper may have told the end, and no more.
        let told = self.taken_over
            && self.run.events().last().is_some_and(|event| event.is_end_of(report));
        if !told {
            self.event(EventKind::end(report));
        }
    }

    fn write_end(&mut self) -> Result<()> {
        let (written, appended) = self.write_both();
        written?;
        if self.record.state.is_over() {
            self.run.finish()?;
        }
        appended
    }

    /// Writes what was left for later, or could not be written.
    pub fn catch_up(&mut self) {
        if self.due.is_some_and(|at| at <= now()) {
            self.write();
        }
    }

    /// How long there is nothing to catch up with, or to look after.
    pub fn patience(&self) -> Duration {
        let looks = self.names.look_at();
        self.due.map_or(looks, |due| due.min(looks)).since(now())
    }

    /// Now, or later if it cannot be.
    pub fn write(&mut self) {
        let _ = self.write_both();
    }

    /// Writes the events before the record: a reader that sees a state finds how it came to that.
    /// A record is written whether or not its events could be.
    fn write_both(&mut self) -> (Result<()>, Result<()>) {
        let appended = self.append();
        // Of a run that is over no member is looked for.
        let is_behind = self.members.is_behind() && !self.record.state.is_over();
        let counted = if is_behind { self.write_members() } else { Ok(()) };
        let written = self.run.write_record(&self.record);
        self.names.has_record |= written.is_ok();
        let failed = appended.is_err() || counted.is_err() || written.is_err();
        self.due = failed.then(|| now() + WRITE_AGAIN);
        (written, appended)
    }

    fn append(&mut self) -> Result<()> {
        if !self.events.is_empty() {
            for (event, number) in self.events.iter_mut().zip(self.record.events + 1..) {
                event.number = number;
            }
            self.run.append(&self.events)?;
            self.record.events += self.events.len() as u64;
            self.events.clear();
        }
        Ok(())
    }
}

/// Whether it is worth a record that a run stands otherwise. That a stuck one was tried again
/// is, for a minute; then one try in sixty.
fn is_news(before: &RunState, now: &RunState) -> bool {
    const TRIES: u32 = 60;
    match (before, now) {
        (
            RunState::Stopping { reason, step, .. },
            RunState::Stopping { reason: reason_now, step: step_now, .. },
        ) => (reason, step) != (reason_now, step_now),
        (RunState::Stuck { tries: told, .. }, RunState::Stuck { tries, .. }) => {
            told != tries && (*tries < TRIES || tries % TRIES == 0)
        }
        _ => before != now,
    }
}

/// As far as the run itself tells, without its place: cgroup, ancestry and lock.
fn spec_file(assigned: &Assignment, started_at: Timestamp) -> SpecFile {
    SpecFile {
        version: SpecFile::VERSION,
        id: assigned.launch.id.clone(),
        generation: assigned.launch.generation,
        cgroup: None,
        ancestry: None,
        host: assigned.launch.host.clone(),
        lock: None,
        world: world::here().clone(),
        started_at,
        spec: assigned.spec.clone(),
        unknown: None,
    }
}

/// The line of processes above a guard, one of which gets its orphans.
fn ancestry_of(guard: i32) -> Option<Ancestry> {
    /// Deeper than any real line of ancestors.
    const DEEPEST: usize = 64;
    /// The process that forked the guard may be gone before its own parent is read: then the
    /// guard has another parent, and it is looked again.
    const LOOKS: usize = 10;
    let above = |(_, parent): &(Identity, i32)| glance(*parent);
    let look = || -> Vec<(Identity, i32)> {
        std::iter::successors(glance(guard), above).take(DEEPEST).collect()
    };
    let is_whole = |line: &[(Identity, i32)]| line.last().is_none_or(|(_, parent)| *parent == 0);
    let mut line = look();
    for _ in 1..LOOKS {
        if is_whole(&line) {
            break;
        }
        line = look();
    }
    let mut line = line.into_iter().map(|(identity, _)| identity);
    Some(Ancestry { guard: line.next()?, line: line.collect(), place: cgroup_of(guard) })
}

fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_pid()
}

/// Microseconds since 1970.
pub fn unix_us() -> u64 {
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(unix.as_micros()).unwrap_or_default()
}
