//! Reports: how a run ended, and that it is stuck or was released.

use super::samples::{asker, at, id, later, member, plain_member, states, words, written};
use super::vector::Vector;
use fullstop_core::cage::{CageKind, OutputHolder};
use fullstop_core::signal::Signal;
use fullstop_core::words::{Exit, Proof, Reason, Stream};
use fullstop_protocol::{
    CapturedStream, Claim, KernelAnswers, REPORT_VERSION, Report, RunState, StepRecord,
    TrackedMember,
};
use serde_json::{Value, json};

pub fn reports() -> Vec<Vector> {
    let mut vectors = vec![
        Vector::short("minimal", minimal(), &bare(ended(Reason::Exited))),
        Vector::new("every field", &full()),
        Vector::new("every field, and later ones", &full())
            .with_unknown("", "energy_joules", json!(7))
            .with_unknown("/steps/0", "skipped", json!(0))
            .with_unknown("/output/0", "lines", json!(3)),
    ];
    for state in states().filter(|state| of_state(state).is_some()) {
        vectors.push(Vector::new(state.word(), &of_state(&state)));
    }
    let mut add = |name: String, report: Report| vectors.push(Vector::new(name, &report));
    for reason in words::<Reason>() {
        add(format!("reason {}", written(&reason)), bare(ended(reason)));
    }
    add("a later reason".to_owned(), bare(RunState::Ended { reason: later("bored") }));
    for proof in words::<Proof>() {
        let report = Report { proof: Some(proof.into()), ..bare(ended(Reason::Exited)) };
        add(format!("proof {}", written(&proof)), report);
    }
    add("a later proof".to_owned(), Report { proof: later_proof(), ..bare(ended(Reason::Exited)) });
    add("a later cage".to_owned(), Report { cage: later("job"), ..bare(ended(Reason::Exited)) });
    for (name, exit) in [
        ("exit by a code", Exit::Code(3)),
        ("exit by a signal", Exit::Signal(Signal::TERM)),
        ("exit by a real-time signal", Exit::Signal(Signal::new(37).expect("a signal"))),
        ("exit that nobody saw", Exit::Unknown),
    ] {
        add(name.to_owned(), Report { exit: Some(exit), ..bare(ended(Reason::Exited)) });
    }
    vectors
}

/// What stands in a record of this state.
pub fn of_state(state: &RunState) -> Option<Report> {
    match state {
        RunState::Ended { .. } => Some(Report {
            exit: Some(Exit::Code(0)),
            proof: Some(Proof::CgroupEmpty.into()),
            kernel: Some(KernelAnswers {
                at: at(9_000),
                populated: Some(false),
                has_children: Some(false),
                is_census_complete: None,
            }),
            ..bare(state.clone())
        }),
        RunState::Stuck { .. } => Some(Report {
            asked: Some(asker()),
            steps: vec![step("term@leader", 3), step("kill", 0)],
            survivors: vec![survivor()],
            error: Some("1 process did not die of SIGKILL".to_owned()),
            ..bare(state.clone())
        }),
        RunState::Released => Some(Report {
            exit: Some(Exit::Code(0)),
            released: vec![plain_member()],
            ..bare(state.clone())
        }),
        RunState::Starting | RunState::Running | RunState::Stopping { .. } | RunState::Other(_) => {
            None
        }
    }
}

/// It was asked by both steps, and lives.
fn survivor() -> TrackedMember {
    let steps = vec!["term@leader".to_owned(), "kill".to_owned()];
    TrackedMember { member: member(), outlived: steps.clone(), asked_by: steps }
}

/// A report of which every field is there. No run has all of them.
pub fn full() -> Report {
    Report {
        version: REPORT_VERSION,
        id: id(),
        name: Some("research".to_owned()),
        generation: 2,
        command: vec!["claude".to_owned(), "notes-\u{fffd}.md".to_owned()],
        cage: CageKind::Tree.into(),
        state: ended(Reason::Stopped),
        at: at(9_000),
        asked: Some(asker()),
        exit: Some(Exit::Signal(Signal::TERM)),
        steps: vec![step("term@leader", 1), step("term@tree", 2), step("kill", 1)],
        leftovers: vec![member(), plain_member()],
        survivors: vec![survivor()],
        released: vec![plain_member()],
        proof: Some(Proof::NoChildren.into()),
        kernel: Some(KernelAnswers {
            at: at(9_000),
            populated: Some(false),
            has_children: Some(false),
            is_census_complete: Some(true),
        }),
        output: words::<Stream>().into_iter().map(captured).collect(),
        drained: Some(false),
        holders: vec![OutputHolder { pid: 4711, command: "sshd".to_owned() }],
        error: Some("the log of err: No space left on device".to_owned()),
        started_at: at(0),
        elapsed_ms: 9_000,
    }
}

fn captured(stream: Stream) -> CapturedStream {
    CapturedStream {
        stream,
        bytes: 1 << 20,
        cut: 12,
        failure: Some("No space left on device".to_owned()),
        unshown: 7,
        refusal: Some("Broken pipe".to_owned()),
    }
}

fn step(step: &str, signalled: usize) -> StepRecord {
    StepRecord { step: step.to_owned(), at_ms: 37, alive: 3, signalled }
}

fn ended(reason: Reason) -> RunState {
    RunState::Ended { reason: reason.into() }
}

/// A proof of which this version knows nothing but the word. It is a claim all the same.
pub fn later_proof() -> Option<Claim> {
    serde_json::from_value(json!("vm-gone")).expect("a claim")
}

/// What every report has.
fn minimal() -> Value {
    json!({
        "version": REPORT_VERSION,
        "id": id(),
        "generation": 1,
        "command": ["true"],
        "cage": "cgroup",
        "state": "ended",
        "reason": "exited",
        "at": at(9_000),
        "started_at": at(0),
        "elapsed_ms": 9_000,
    })
}

fn bare(state: RunState) -> Report {
    Report {
        version: REPORT_VERSION,
        id: id(),
        name: None,
        generation: 1,
        command: vec!["true".to_owned()],
        cage: CageKind::Cgroup.into(),
        state,
        at: at(9_000),
        asked: None,
        exit: None,
        steps: Vec::new(),
        leftovers: Vec::new(),
        survivors: Vec::new(),
        released: Vec::new(),
        proof: None,
        kernel: None,
        output: Vec::new(),
        drained: None,
        holders: Vec::new(),
        error: None,
        started_at: at(0),
        elapsed_ms: 9_000,
    }
}
