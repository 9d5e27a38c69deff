//! `record.json`: the state was an object of its own, a step ended at a moment of this boot,
//! and times were milliseconds since 1970.

use fullstop_cage::linux::now;
use fullstop_core::cage::{CageKind, Member, OutputHolder};
use fullstop_core::id::Id;
use fullstop_core::identity::Identity;
use fullstop_core::words::{Exit, Moment, Proof, Reason};
use fullstop_protocol::{
    Ancestry, CapturedStream, Claim, Labels, REPORT_VERSION, Record, RunState, StepRecord,
    Timestamp, World,
};
use serde::Deserialize;
use std::path::PathBuf;

#[derive(Deserialize)]
pub struct RecordFile {
    id: Id,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    group: Option<String>,
    #[serde(default)]
    labels: Labels,
    generation: u32,
    command: Vec<String>,
    state: Phase,
    cage: CageKind,
    cgroup: Option<PathBuf>,
    #[serde(default)]
    kin: Option<Ancestry>,
    world: World,
    keeper: Option<Identity>,
    guard: Option<Identity>,
    leader: Option<Identity>,
    #[serde(default)]
    census: Vec<Identity>,
    #[serde(default)]
    has_members_file: bool,
    started_at: u64,
    #[serde(default)]
    lock: Option<u64>,
    #[serde(default)]
    report: Option<Report>,
}

#[derive(Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
enum Phase {
    Starting,
    Running,
    Stopping { reason: Reason, step: String, until: Moment },
    Stuck { reason: Reason },
    Ended { reason: Reason },
    Released,
}

impl From<RecordFile> for Record {
    fn from(file: RecordFile) -> Record {
        let started_at = Timestamp::from_unix_ms(file.started_at);
        let report = file.report.map(fullstop_protocol::Report::from);
        let ended_at = report.as_ref().map_or(started_at, |report| report.at);
        let (state, at) = match file.state {
            Phase::Starting => (RunState::Starting, started_at),
            Phase::Running => (RunState::Running, started_at),
            Phase::Stopping { reason, step, until } => {
                let (reason, left) = (reason.into(), until.since(now()));
                (RunState::Stopping { reason, step, left, alive: None }, Timestamp::now())
            }
            Phase::Stuck { reason } => {
                let alive = report.as_ref().map(|report| report.survivors.len());
                (stuck(reason, alive, ended_at), ended_at)
            }
            Phase::Ended { reason } => (RunState::Ended { reason: reason.into() }, ended_at),
            Phase::Released => (RunState::Released, ended_at),
        };
        Record {
            // Whose keeper speaks another wire.
            version: 1,
            id: file.id,
            name: file.name,
            group: file.group,
            labels: file.labels,
            generation: file.generation,
            command: file.command,
            state,
            at,
            events: 0,
            asked: None,
            host: None,
            cage: file.cage.into(),
            cgroup: file.cgroup,
            cgroup_inode: None,
            cgroup_parent_inode: None,
            ancestry: file.kin,
            world: file.world,
            keeper: file.keeper,
            guard: file.guard,
            leader: file.leader,
            census: file.census,
            has_members_file: file.has_members_file,
            started_at,
            lock: file.lock,
            report,
        }
    }
}

fn stuck(reason: Reason, alive: Option<usize>, tried_at: Timestamp) -> RunState {
    RunState::Stuck { reason: reason.into(), alive, tries: 0, tried_at }
}

/// The report within a record.
#[derive(Deserialize)]
struct Report {
    id: Id,
    name: Option<String>,
    generation: u32,
    command: Vec<String>,
    cage: CageKind,
    state: Verdict,
    reason: Reason,
    exit: Option<Exit>,
    steps: Vec<StepRecord>,
    leftovers: Vec<Member>,
    survivors: Vec<Member>,
    released: Vec<Member>,
    proof: Option<Proof>,
    #[serde(default)]
    output: Vec<CapturedStream>,
    #[serde(default)]
    drained: Option<bool>,
    #[serde(default)]
    holders: Vec<OutputHolder>,
    error: Option<String>,
    started_at: u64,
    elapsed_ms: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Verdict {
    Ended,
    Stuck,
    Released,
}

impl From<Report> for fullstop_protocol::Report {
    fn from(report: Report) -> fullstop_protocol::Report {
        let at = Timestamp::from_unix_ms(report.started_at.saturating_add(report.elapsed_ms));
        fullstop_protocol::Report {
            version: REPORT_VERSION,
            id: report.id,
            name: report.name,
            generation: report.generation,
            command: report.command,
            cage: report.cage.into(),
            state: match report.state {
                Verdict::Ended => RunState::Ended { reason: report.reason.into() },
                Verdict::Stuck => stuck(report.reason, Some(report.survivors.len()), at),
                Verdict::Released => RunState::Released,
            },
            at,
            asked: None,
            exit: report.exit,
            steps: report.steps,
            leftovers: report.leftovers,
            survivors: report.survivors.into_iter().map(Into::into).collect(),
            released: report.released,
            proof: report.proof.map(Claim::from),
            kernel: None,
            output: report.output,
            drained: report.drained,
            holders: report.holders,
            error: report.error,
            started_at: Timestamp::from_unix_ms(report.started_at),
            elapsed_ms: report.elapsed_ms,
        }
    }
}
