//! How a run stands, as it is shown.

use crate::error::Result;
use crate::helpers::help;
use fullstop_cage::linux::{Process as LiveProcess, below, inside};
use fullstop_core::id::Id;
use fullstop_core::identity::Identity;
use fullstop_protocol::{Host, Labels, Record, Report, RunState, Timestamp, Whereabouts, World};
use fullstop_store::format::SpecFile;
use fullstop_store::{Standing, Store, StoreError, world};
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;

/// The state of a run that cannot be read.
const DAMAGED: &str = "damaged";
/// The state of a run whose record a later fullstop has written: it is not looked into.
const NEWER: &str = "newer";

/// How a run stands, at one instant.
///
/// ```
/// # let dir = std::env::temp_dir().join(format!("fullstop-doc-status-{}", std::process::id()));
/// # let runs = fullstop::Runs::at(&dir)?;
/// for status in fullstop::blocking::wait(runs.list(false))? {
///     println!("{} {} {}", status.id, status.state, status.command.join(" "));
/// }
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// The id of the run.
    pub id: Id,
    /// The name that it was given.
    pub name: Option<String>,
    /// The group that it is in.
    pub group: Option<String>,
    /// Its labels.
    #[serde(skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// The program that it belongs to, and what that calls itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<Host>,
    /// How often it has been started.
    pub generation: u32,
    /// starting, running, stopping, stuck, ended, released; `lost` if keeper and guard are gone,
    /// `damaged` if its record cannot be read, `newer` if a later fullstop wrote it.
    pub state: String,
    /// Why it ends or has ended.
    pub reason: Option<String>,
    /// The step of a stop under way, and how long it waits.
    pub step: Option<String>,
    /// How long that step is still waited for.
    pub step_left_ms: Option<u64>,
    /// How long it has been there, or was.
    pub age_ms: u64,
    /// What runs, word by word.
    pub command: Vec<String>,
    /// When this generation began.
    pub started_at: Timestamp,
    /// How many events there were, through all generations.
    pub events: u64,
    /// How it ended, once it has; of a stuck one, how that went.
    pub report: Option<Report>,
    /// Its keeper or its guard lives, whatever can be read of it.
    pub live: bool,
    /// Why it cannot be read.
    pub damage: Option<String>,
    /// A lost run of another machine or pid namespace, which cannot be judged from here.
    pub elsewhere: Option<Whereabouts>,
    /// Where its members are to be looked for; nothing, where that is not known, or it is over.
    #[serde(skip)]
    place: Option<MemberPlace>,
}

/// Where the members of a run are to be looked for, by its record.
#[derive(Clone, Debug)]
struct MemberPlace {
    world: World,
    cgroup: Option<PathBuf>,
    keeper: Option<Identity>,
}

impl MemberPlace {
    fn of(record: &Record) -> MemberPlace {
        let (world, cgroup) = (record.world.clone(), record.cgroup.clone());
        MemberPlace { world, cgroup, keeper: record.keeper }
    }

    /// The members, found by the cgroup or below the keeper. Pids of another namespace mean nothing
    /// here.
    fn members(&self) -> Vec<LiveProcess> {
        if !world::is_here(&self.world) {
            return Vec::new();
        }
        match (&self.cgroup, self.keeper) {
            (Some(cgroup), _) => inside(cgroup),
            (None, Some(keeper)) => below(&keeper),
            (None, None) => Vec::new(),
        }
    }
}

/// One living process of a run, as it is shown.
///
/// ```
/// # let dir = std::env::temp_dir().join(format!("fullstop-doc-process-{}", std::process::id()));
/// # let runs = fullstop::Runs::at(&dir)?;
/// use fullstop::{Command, blocking};
///
/// let run = blocking::start(Command::new("sleep").arg("60").runs(&runs))?;
/// for process in blocking::wait(run.processes())? {
///     assert_eq!(process.command, "sleep 60");
/// }
/// blocking::wait(run.kill())?;
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct Process {
    /// Its pid.
    pub pid: i32,
    /// The pid of its parent.
    pub ppid: i32,
    /// The letter that `ps` shows for its state.
    pub state: char,
    /// How long it has lived.
    pub age_ms: u64,
    /// The processor time that it has had.
    pub cpu_ms: u64,
    /// The memory that it holds, in bytes; pages that several share are counted for each.
    pub memory: u64,
    /// Its command line.
    pub command: String,
}

/// What a run uses at this instant: its living processes, the processor time that these have
/// had, and the memory that they hold.
///
/// ```
/// # let dir = std::env::temp_dir().join(format!("fullstop-doc-usage-{}", std::process::id()));
/// # let runs = fullstop::Runs::at(&dir)?;
/// use fullstop::{Command, Usage, blocking};
///
/// let run = blocking::start(Command::new("sleep").arg("60").runs(&runs))?;
/// assert_eq!(blocking::wait(run.usage())?.processes, 1);
/// let listed = blocking::wait(runs.list(false))?;
/// assert_eq!(blocking::wait(listed[0].usage())?.processes, 1);
/// blocking::wait(run.kill())?;
/// assert_eq!(blocking::wait(run.usage())?, Usage::default());
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// How many are alive.
    pub processes: usize,
    /// The processor time that they have had.
    pub cpu_ms: u64,
    /// The memory that they hold, in bytes.
    pub memory: u64,
}

impl Usage {
    /// Of a run that is over, nothing. A damaged one is known by its spec.
    pub(crate) fn of(store: &Store, id: &Id) -> fullstop_store::Result<Usage> {
        if store.standing(id)? == Standing::Over {
            return Ok(Usage::default());
        }
        let by_spec = |_| store.spec(id).map(SpecFile::first_record);
        Ok(Usage::of_members(&members(&store.record(id).or_else(by_spec)?)))
    }

    fn of_members(members: &[LiveProcess]) -> Usage {
        Usage {
            processes: members.len(),
            cpu_ms: members.iter().map(|process| millis(process.cpu())).sum(),
            memory: members.iter().map(LiveProcess::memory).sum(),
        }
    }
}

impl Status {
    /// Whether it has ended, or was released.
    pub fn is_over(&self) -> bool {
        self.report.as_ref().is_some_and(|report| report.state.is_over())
    }

    /// What it uses now. As [`Run::usage`](crate::Run::usage), without reading the record once
    /// more: its members are looked for where they were when it was listed.
    pub async fn usage(&self) -> Result<Usage> {
        match self.place.clone().filter(|_| !self.is_over()) {
            Some(place) => help(move || Usage::of_members(&place.members())).await,
            None => Ok(Usage::default()),
        }
    }

    /// Nothing, if it has just been removed, or is being born just now. Whatever cannot
    /// be read is there, and is shown as damaged.
    pub(crate) fn of(store: &Store, id: &Id) -> Option<Status> {
        let (record, standing) = (store.record(id), store.standing(id));
        match (record, standing) {
            (Ok(record), Ok(standing)) => Some(from_record(record, standing)),
            (Err(error), Ok(standing)) => {
                let passing = store.is_gone(id).and_then(|gone| {
                    Ok(gone || standing == Standing::Live && store.is_being_born(id)?)
                });
                let is_there = !passing.unwrap_or(false);
                is_there.then(|| damaged(store, id, standing, &error))
            }
            // Whether it is live cannot be told: it is not said to be.
            (_, Err(error)) => Some(damaged(store, id, Standing::Lost, &error)),
        }
    }
}

fn from_record(record: Record, standing: Standing) -> Status {
    let now = Timestamp::now();
    let reason = match &record.state {
        // It has no reason but that its leader has left.
        RunState::Released => None,
        state => state.reason().map(ToString::to_string),
    };
    let (step, left) = match &record.state {
        RunState::Stopping { step, left, .. } => {
            (Some(step.clone()), Some(left.saturating_sub(now.since(record.at))))
        }
        _ => (None, None),
    };
    // One that is not over was taken off the list if it is not listed.
    let lost = standing != Standing::Live && !record.state.is_over();
    let elsewhere = lost.then(|| world::whereabouts(&record.world)).filter(|it| it.is_elsewhere());
    let ended = record.report.as_ref().filter(|_| record.state.is_over());
    Status {
        state: if lost { "lost" } else { record.state.word() }.to_owned(),
        reason,
        step,
        step_left_ms: left.map(millis),
        place: Some(MemberPlace::of(&record)),
        age_ms: ended
            .map_or_else(|| millis(now.since(record.started_at)), |report| report.elapsed_ms),
        id: record.id,
        name: record.name,
        group: record.group,
        labels: record.labels,
        host: record.host,
        generation: record.generation,
        command: record.command,
        started_at: record.started_at,
        events: record.events,
        report: record.report,
        live: standing == Standing::Live,
        damage: None,
        elsewhere,
    }
}

/// What the spec of a run tells whose record cannot be read; if not even that, its id.
fn damaged(store: &Store, id: &Id, standing: Standing, error: &StoreError) -> Status {
    let blank = || Status {
        id: id.clone(),
        name: None,
        group: None,
        labels: Labels::default(),
        host: None,
        generation: 0,
        state: String::new(),
        reason: None,
        step: None,
        step_left_ms: None,
        age_ms: 0,
        command: Vec::new(),
        started_at: Timestamp::default(),
        events: 0,
        report: None,
        live: standing == Standing::Live,
        damage: None,
        elsewhere: None,
        place: None,
    };
    let is_newer = matches!(error, StoreError::Newer { .. });
    let known = store.spec(id).map(|spec| from_record(SpecFile::first_record(spec), standing));
    Status {
        id: id.clone(),
        state: if is_newer { NEWER } else { DAMAGED }.to_owned(),
        damage: Some(error.to_string()),
        elsewhere: None,
        ..known.unwrap_or_else(|_| blank())
    }
}

pub(crate) fn members(record: &Record) -> Vec<LiveProcess> {
    MemberPlace::of(record).members()
}

impl Process {
    pub(crate) fn of(process: &LiveProcess) -> Process {
        Process {
            pid: process.pid(),
            ppid: process.ppid(),
            state: process.state(),
            age_ms: millis(process.age()),
            cpu_ms: millis(process.cpu()),
            memory: process.memory(),
            command: process.command(),
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
