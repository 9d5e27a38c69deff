//! How a run stands, as it is shown.

use fullstop_cage::linux::{Process as Seen, below, inside};
use fullstop_core::id::Id;
use fullstop_protocol::{Host, Labels, Record, Report, RunState, Timestamp, Whereabouts};
use fullstop_store::format::SpecFile;
use fullstop_store::{Standing, Store, StoreError, world};
use serde::Serialize;
use std::time::Duration;

/// The state of a run that cannot be read.
const DAMAGED: &str = "damaged";
/// The state of a run whose record a later fullstop has written: it is not looked into.
const NEWER: &str = "newer";

/// How a run stands, at one instant.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = std::env::temp_dir().join(format!("fullstop-doc-status-{}", std::process::id()));
/// # let runs = fullstop::Runs::at(&dir)?;
/// for status in runs.list(false)? {
///     println!("{} {} {}", status.id, status.state, status.command.join(" "));
/// }
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    pub id: Id,
    pub name: Option<String>,
    pub group: Option<String>,
    #[serde(skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// The program that it belongs to, and what that calls itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<Host>,
    pub generation: u32,
    /// starting, running, stopping, stuck, ended, released; `lost` if nobody looks
    /// after it, `damaged` if its record cannot be read, `newer` if a later fullstop wrote it.
    pub state: String,
    /// Why it ends or has ended.
    pub reason: Option<String>,
    /// The step of a stop under way, and how long it waits.
    pub step: Option<String>,
    pub step_left_ms: Option<u64>,
    pub age_ms: u64,
    pub command: Vec<String>,
    pub started_at: Timestamp,
    /// How many events there were, through all generations.
    pub events: u64,
    pub report: Option<Report>,
    /// Its keeper or its guard lives, whatever can be read of it.
    pub live: bool,
    /// Why it cannot be read.
    pub damage: Option<String>,
    /// A lost run of another machine or pid namespace, which cannot be judged from here.
    pub elsewhere: Option<Whereabouts>,
}

/// One living process of a run, as it is shown.
///
/// ```standalone_crate
/// # fullstop::init();
/// # let dir = std::env::temp_dir().join(format!("fullstop-doc-process-{}", std::process::id()));
/// # let runs = fullstop::Runs::at(&dir)?;
/// use fullstop::{Command, blocking};
///
/// let run = blocking::start(Command::new("sleep").arg("60").runs(&runs))?;
/// for process in run.processes()? {
///     assert_eq!(process.command, "sleep 60");
/// }
/// blocking::wait(run.kill())?;
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct Process {
    pub pid: i32,
    pub ppid: i32,
    pub state: char,
    pub age_ms: u64,
    pub cpu_ms: u64,
    pub memory: u64,
    pub command: String,
}

/// What a run uses at this instant: its living processes, the processor time that these have
/// had, and the memory that they hold.
///
/// ```standalone_crate
/// # fullstop::init();
/// # let dir = std::env::temp_dir().join(format!("fullstop-doc-usage-{}", std::process::id()));
/// # let runs = fullstop::Runs::at(&dir)?;
/// use fullstop::{Command, Usage, blocking};
///
/// let run = blocking::start(Command::new("sleep").arg("60").runs(&runs))?;
/// assert_eq!(run.usage()?.processes, 1);
/// blocking::wait(run.kill())?;
/// assert_eq!(run.usage()?, Usage::default());
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    pub processes: usize,
    pub cpu_ms: u64,
    pub memory: u64,
}

impl Usage {
    /// Of a run that is over, nothing. A damaged one is known by its spec.
    pub(crate) fn of(store: &Store, id: &Id) -> fullstop_store::Result<Usage> {
        if store.standing(id)? == Standing::Over {
            return Ok(Usage::default());
        }
        let by_spec = |_| store.spec(id).map(SpecFile::first_record);
        let members = members(&store.record(id).or_else(by_spec)?);
        Ok(Usage {
            processes: members.len(),
            cpu_ms: members.iter().map(|process| millis(process.cpu())).sum(),
            memory: members.iter().map(Seen::memory).sum(),
        })
    }
}

impl Status {
    /// Whether it has ended, or was released.
    pub fn is_over(&self) -> bool {
        self.report.as_ref().is_some_and(|report| report.state.is_over())
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

/// Who is there, by the cgroup or below the keeper. Pids of another namespace say
/// nothing here.
pub(crate) fn members(record: &Record) -> Vec<Seen> {
    if !world::is_here(&record.world) {
        return Vec::new();
    }
    match (&record.cgroup, record.keeper) {
        (Some(cgroup), _) => inside(cgroup),
        (None, Some(keeper)) => below(&keeper),
        (None, None) => Vec::new(),
    }
}

impl From<Seen> for Process {
    fn from(seen: Seen) -> Process {
        Process {
            pid: seen.pid(),
            ppid: seen.ppid(),
            state: seen.state(),
            age_ms: millis(seen.age()),
            cpu_ms: millis(seen.cpu()),
            memory: seen.memory(),
            command: seen.command(),
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
