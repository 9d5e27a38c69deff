//! Events: every kind, and one of a later fullstop.

use super::report::later_proof;
use super::samples::{asker, at, id, later, process, words, written};
use super::vector::Vector;
use fullstop_core::signal::Signal;
use fullstop_core::words::{Exit, Proof, Reason, Stream};
use fullstop_protocol::{Asker, Event, EventKind, Host, HostPolicy};
use serde_json::{Value, json};

pub fn events() -> Vec<Vector> {
    let mut vectors = Vec::new();
    let mut add = |name: &str, kind: EventKind| vectors.push(Vector::new(name, &event(kind)));
    let command = || vec!["claude".to_owned(), "--print".to_owned()];
    add("started", EventKind::Started { command: command(), leader: Some(4242) });
    add(
        "started, and the leader is not told",
        EventKind::Started { command: command(), leader: None },
    );
    add("asked", EventKind::Asked { asker: asker() });
    add("asked by nobody known", EventKind::Asked { asker: unknown_asker() });
    add("leader exited", EventKind::LeaderExited { exit: Exit::Code(3) });
    let exit = Exit::Signal(Signal::TERM);
    add("leader exited by a signal", EventKind::LeaderExited { exit });
    add("leader exited, unseen", EventKind::LeaderExited { exit: Exit::Unknown });
    for stream in words::<Stream>() {
        let why = "No space left on device".to_owned();
        add(&format!("log of {} failed", written(&stream)), EventKind::LogFailed { stream, why });
    }
    add(
        "restored",
        EventKind::Restored {
            restored: vec!["spec.json".to_owned(), "control.sock".to_owned()],
            lost: vec!["events".to_owned(), "out".to_owned()],
        },
    );
    for on_host_exit in [HostPolicy::Stop, HostPolicy::Ignore] {
        let host = Host { app: Some("my-app".to_owned()), process: process(4711) };
        let name = format!("adopted: {}", written(&on_host_exit));
        add(&name, EventKind::Adopted { host, on_host_exit });
    }
    add("stuck", EventKind::Stuck { survivors: 2 });
    add("released", EventKind::Released { released: 1 });
    for reason in words::<Reason>() {
        let name = |kind: &str| format!("{kind}: {}", written(&reason));
        add(&name("step"), step(reason));
        let (exit, proof) = (Some(Exit::Code(0)), Some(Proof::CgroupEmpty.into()));
        add(&name("ended"), EventKind::Ended { reason: reason.into(), exit, proof });
    }
    for proof in words::<Proof>() {
        let kind = EventKind::Ended {
            reason: Reason::Exited.into(),
            exit: None,
            proof: Some(proof.into()),
        };
        add(&format!("ended, proven by {}", written(&proof)), kind);
    }
    let unproven = EventKind::Ended { reason: Reason::Exited.into(), exit: None, proof: None };
    add("ended, as records of before tell it", unproven);
    let later_words = EventKind::Ended { reason: later("bored"), exit: None, proof: later_proof() };
    add("a later reason and a later proof", later_words);
    let Value::Object(fields) = json!({"type": "paused", "until": at(60_000), "by": ["Ada"]})
    else {
        panic!("an event is an object")
    };
    add("a later kind", EventKind::Other(fields));
    vectors.push(
        Vector::new("step, with later fields", &event(step(Reason::Stopped)))
            .with_unknown("", "skipped", json!(1))
            .with_unknown("", "asker", json!({"uid": 1000})),
    );
    vectors
}

fn event(kind: EventKind) -> Event {
    Event { number: 7, at: at(9_000), id: id(), generation: 1, kind }
}

fn step(reason: Reason) -> EventKind {
    EventKind::Step { step: "term@tree".to_owned(), alive: 3, signalled: 2, reason: reason.into() }
}

fn unknown_asker() -> Asker {
    Asker { at: at(7_000), uid: None, pid: None, program: None, by: None }
}
