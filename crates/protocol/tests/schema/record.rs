//! Records: a run in every state.

use super::report;
use super::samples::{
    asker, at, id, later, later_state, older_process, process, states, words, written,
};
use super::vector::Vector;
use fullstop_core::cage::CageKind;
use fullstop_core::words::Reason;
use fullstop_protocol::{Ancestry, Host, Labels, RECORD_VERSION, Record, RunState, World};
use serde_json::json;
use std::os::unix::ffi::OsStringExt as _;

pub fn records() -> Vec<Vector> {
    let mut vectors = vec![
        Vector::short("minimal", minimal(), &bare(RunState::Running)),
        Vector::new("every field", &full()),
        Vector::new("every field, and later ones", &full())
            .with_unknown("", "lane", json!("night"))
            .with_unknown("/world", "user_namespace", json!(4_026_531_837_u64))
            .with_unknown("/keeper", "cgroup", json!(null))
            .with_unknown("/report/kernel", "job_empty", json!(true)),
    ];
    for state in states() {
        vectors.push(Vector::new(state.word(), &in_state(state.clone())));
    }
    vectors.push(
        Vector::new("a later state with fields of its own", &in_state(later_state()))
            .with_unknown("", "until", json!(at(60_000)))
            .with_unknown("", "reason", json!("bored")),
    );
    for reason in words::<Reason>() {
        let record = in_state(RunState::Ended { reason: reason.into() });
        vectors.push(Vector::new(format!("ended: {}", written(&reason)), &record));
    }
    let reason = later("bored");
    vectors.push(Vector::new("ended: a later reason", &in_state(RunState::Ended { reason })));
    let beyond = Record { cage: later("job"), ..bare(RunState::Running) };
    vectors.push(Vector::new("a later cage", &beyond));
    let path = std::ffi::OsString::from_vec(b"/sys/fs/cgroup/\xff/fullstop".to_vec());
    let strange = Record { cgroup: Some(path.into()), ..bare(RunState::Running) };
    vectors.push(Vector::new("a cgroup whose path is not UTF-8", &strange));
    vectors
}

/// What every record has.
fn minimal() -> serde_json::Value {
    json!({
        "version": RECORD_VERSION,
        "id": id(),
        "generation": 1,
        "command": ["claude"],
        "state": "running",
        "at": at(3),
        "cage": "cgroup",
        "world": {"machine": "a", "boot": "b", "pid_namespace": 4_026_531_836_u64},
        "started_at": at(0),
    })
}

fn bare(state: RunState) -> Record {
    Record {
        version: RECORD_VERSION,
        id: id(),
        name: None,
        group: None,
        labels: Labels::default(),
        generation: 1,
        command: vec!["claude".to_owned()],
        state,
        at: at(3),
        events: 0,
        asked: None,
        host: None,
        cage: CageKind::Cgroup.into(),
        cgroup: None,
        cgroup_inode: None,
        cgroup_parent_inode: None,
        ancestry: None,
        world: world(),
        keeper: None,
        guard: None,
        leader: None,
        census: Vec::new(),
        has_members_file: false,
        started_at: at(0),
        lock: None,
        report: None,
    }
}

fn world() -> World {
    World {
        machine: "a".to_owned(),
        boot: "b".to_owned(),
        pid_namespace: 4_026_531_836,
        time_namespace: None,
    }
}

/// As a keeper writes it.
fn in_state(state: RunState) -> Record {
    let report = report::of_state(&state);
    Record {
        name: Some("research".to_owned()),
        events: 2,
        asked: state.reason().is_some().then(asker),
        cgroup: Some("/sys/fs/cgroup/fullstop-0r3v8x2k7m4pq".into()),
        cgroup_inode: Some(4711),
        cgroup_parent_inode: Some(1),
        keeper: Some(process(4241)),
        guard: Some(older_process(4240)),
        leader: Some(process(4242)),
        lock: Some(99),
        report,
        ..bare(state)
    }
}

/// A record of which every field is there. No run has all of them.
fn full() -> Record {
    let state = RunState::Ended { reason: Reason::Stopped.into() };
    Record {
        version: RECORD_VERSION,
        id: id(),
        name: Some("research".to_owned()),
        group: Some("plan/research".to_owned()),
        labels: "app=my-app".parse().expect("a label"),
        generation: 2,
        command: vec!["claude".to_owned(), "notes-\u{fffd}.md".to_owned()],
        state,
        at: at(9_000),
        events: 12,
        asked: Some(asker()),
        host: Some(Host { app: Some("my-app".to_owned()), process: process(4711) }),
        cage: CageKind::Tree.into(),
        cgroup: Some("/sys/fs/cgroup/fullstop-0r3v8x2k7m4pq".into()),
        cgroup_inode: Some(4711),
        cgroup_parent_inode: Some(1),
        ancestry: Some(Ancestry {
            guard: process(4240),
            line: vec![older_process(1)],
            place: Some("/user.slice".to_owned()),
        }),
        world: World { time_namespace: Some(4_026_531_834), ..world() },
        keeper: Some(process(4241)),
        guard: Some(process(4240)),
        leader: Some(process(4242)),
        census: vec![process(4242), older_process(4243)],
        has_members_file: true,
        started_at: at(0),
        lock: Some(99),
        report: Some(report::full()),
    }
}
