//! Whatever is written can be read again: any bytes, any state.

use crate::kit::{Home, begin, id, record, spec};
use fullstop_core::identity::Identity;
use fullstop_core::report::{CageKind, Member, Report, Taken, Verdict, Wanted};
use fullstop_core::signal::Signal;
use fullstop_core::words::{Exit, Moment, OnExit, Proof, Reason};
use fullstop_protocol::{Spec, Text};
use fullstop_store::format::{Event, Kin, Phase, RecordFile, SpecFile, What};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::time::Duration;

fn texts() -> impl Strategy<Value = Text> {
    let any_bytes = vec(any::<u8>(), 0..40).prop_map(|bytes| Text(OsString::from_vec(bytes)));
    prop_oneof![any::<String>().prop_map(|text| Text(text.into())), any_bytes]
}

fn reasons() -> impl Strategy<Value = Reason> {
    prop::sample::select(vec![
        Reason::Exited,
        Reason::Stopped,
        Reason::Killed,
        Reason::OverallTimeout,
        Reason::HostGone,
        Reason::GroupClosed,
        Reason::SpawnFailed,
        Reason::KeeperDied,
        Reason::Rebooted,
    ])
}

fn proofs() -> impl Strategy<Value = Proof> {
    let all = [Proof::NoChildren, Proof::CgroupEmpty, Proof::ScanClean, Proof::Rebooted];
    prop::sample::select(all.to_vec())
}

fn exits() -> impl Strategy<Value = Exit> {
    prop_oneof![
        any::<i32>().prop_map(Exit::Code),
        (1..=64).prop_map(|number| Exit::Signal(Signal::new(number).expect("a signal"))),
        Just(Exit::Unknown),
    ]
}

fn identities() -> impl Strategy<Value = Identity> {
    (any::<i32>(), any::<u64>(), option::of(any::<u64>()))
        .prop_map(|(pid, start_ticks, inode)| Identity { pid, start_ticks, inode })
}

fn kins() -> impl Strategy<Value = Kin> {
    (identities(), vec(identities(), 0..4), option::of(any::<String>()))
        .prop_map(|(guard, line, place)| Kin { guard, line, place })
}

fn moments() -> impl Strategy<Value = Moment> {
    (any::<u64>(), 0..1_000_000_000_u32).prop_map(|(s, ns)| Moment::at(Duration::new(s, ns)))
}

fn phases() -> impl Strategy<Value = Phase> {
    prop_oneof![
        Just(Phase::Starting),
        Just(Phase::Running),
        Just(Phase::Released),
        (reasons(), any::<String>(), moments()).prop_map(|(reason, step, until)| Phase::Stopping {
            reason,
            step,
            until
        }),
        reasons().prop_map(|reason| Phase::Stuck { reason }),
        reasons().prop_map(|reason| Phase::Ended { reason }),
    ]
}

fn members() -> impl Strategy<Value = Member> {
    let numbers = (any::<[i32; 4]>(), any::<u32>(), any::<u64>(), option::of(any::<u64>()));
    (numbers, any::<char>(), any::<String>(), option::of(any::<String>())).prop_map(
        |(([pid, ppid, pgid, sid], uid, start_ticks, inode), state, command, wchan)| Member {
            pid,
            ppid,
            pgid,
            sid,
            uid,
            state,
            threads: uid,
            start_ticks,
            inode,
            command,
            wchan,
        },
    )
}

fn reports() -> impl Strategy<Value = Report> {
    let verdict = prop::sample::select(vec![Verdict::Ended, Verdict::Stuck, Verdict::Released]);
    let taken = (any::<String>(), any::<u64>(), any::<usize>(), any::<usize>())
        .prop_map(|(step, at_ms, alive, signalled)| Taken { step, at_ms, alive, signalled });
    let how = (verdict, reasons(), option::of(exits()), option::of(proofs()));
    let who = (vec(members(), 0..3), vec(members(), 0..3), vec(members(), 0..3));
    (how, who, vec(taken, 0..4), option::of(any::<String>()), any::<u64>()).prop_map(
        |((state, reason, exit, proof), (leftovers, survivors, released), steps, error, ms)| {
            Report {
                version: 1,
                id: id(1),
                name: error.clone(),
                generation: 3,
                command: error.iter().cloned().collect(),
                cage: CageKind::Cgroup,
                state,
                reason,
                exit,
                steps,
                leftovers,
                survivors,
                released,
                proof,
                output: Vec::new(),
                drained: None,
                holders: Vec::new(),
                error,
                started_at: ms,
                elapsed_ms: ms,
            }
        },
    )
}

/// The name of a variable has no `=` in it, and is not empty.
fn variables() -> impl Strategy<Value = Text> {
    "[^=\0]{1,8}".prop_map(|name| Text(name.into()))
}

fn specs() -> impl Strategy<Value = SpecFile> {
    let on_exit = prop::sample::select(vec![OnExit::Stop, OnExit::Wait, OnExit::Release]);
    let cage = prop::sample::select(vec![Wanted::Auto, Wanted::Cgroup, Wanted::Tree]);
    let words = (vec(texts(), 0..4), vec((variables(), texts()), 0..4), option::of(texts()));
    let names = (option::of(any::<String>()), option::of(any::<String>()), option::of(".{0,20}"));
    let plan = (on_exit, option::of(any::<u64>()), cage);
    (words, names, plan, option::of(kins()), any::<u32>(), any::<u64>()).prop_map(
        |(
            (argv, env, cwd),
            (name, group, cgroup),
            (on_exit, timeout, cage),
            kin,
            generation,
            at,
        )| {
            let mut file = spec(&id(1), None);
            let timeout = timeout.map(Duration::from_millis);
            file.spec =
                Spec { argv, env, cwd, name, group, cage, on_exit, timeout, ..Spec::new(vec![]) };
            let (cgroup, started_at) = (cgroup.map(Into::into), at);
            SpecFile { cgroup, kin, lock: Some(7), generation, started_at, ..file }
        },
    )
}

fn records() -> impl Strategy<Value = RecordFile> {
    let who = (option::of(identities()), option::of(identities()), option::of(identities()));
    let more = (option::of(kins()), vec(identities(), 0..4), vec(any::<String>(), 0..4));
    (phases(), who, more, option::of(reports()), any::<u64>()).prop_map(
        |(state, (keeper, guard, leader), (kin, census, command), report, started_at)| RecordFile {
            keeper,
            guard,
            leader,
            kin,
            census,
            command,
            report,
            started_at,
            ..record(&id(1), state)
        },
    )
}

fn events() -> impl Strategy<Value = Event> {
    let what = prop_oneof![
        (vec(any::<String>(), 0..4), option::of(any::<i32>()))
            .prop_map(|(command, leader)| What::Started { command, leader }),
        (any::<String>(), any::<usize>(), any::<usize>(), reasons()).prop_map(
            |(step, alive, signalled, reason)| What::Step { step, alive, signalled, reason }
        ),
        exits().prop_map(|exit| What::LeaderExited { exit }),
        any::<usize>().prop_map(|survivors| What::Stuck { survivors }),
        (reasons(), option::of(exits()), option::of(proofs()))
            .prop_map(|(reason, exit, proof)| What::Ended { reason, exit, proof }),
        any::<usize>().prop_map(|released| What::Released { released }),
    ];
    (any::<u64>(), any::<u32>(), what).prop_map(|(at, generation, what)| Event {
        at,
        id: id(1),
        generation,
        what,
    })
}

/// Half a record may be anything; the reader must only not break.
fn anything() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        vec(any::<u8>(), 0..60),
        "\\{\"version\":[0-9a-z.-]{1,12}[,}\\[\"a-z:]{0,20}".prop_map(String::into_bytes),
    ]
}

#[test]
fn what_is_written_can_be_read() {
    let home = Home::new();
    let run = begin(&home, &id(1), None);
    let files = (specs(), records(), vec(events(), 0..4));
    let mut runner = proptest::test_runner::TestRunner::default();
    let result = runner.run(&files, |(spec, mut record, events)| {
        // A spec of a later generation would be taken for a record that is to come.
        record.generation = record.generation.max(spec.generation);
        run.write_spec(&spec).expect("written");
        prop_assert_eq!(home.spec(&id(1)).expect("read"), spec);
        run.write_record(&record).expect("written");
        prop_assert_eq!(home.record(&id(1)).expect("read"), record);
        // Begun anew, or each case would read all before it.
        std::fs::write(run.path().join("events.jsonl"), b"").expect("emptied");
        run.append(&events).expect("written");
        prop_assert_eq!(home.events(&id(1), 0).expect("read").0, events);
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn anything_may_stand_in_a_file() {
    let home = Home::new();
    let run = begin(&home, &id(1), None);
    let mut runner = proptest::test_runner::TestRunner::default();
    let result = runner.run(&anything(), |bytes| {
        for name in ["record.json", "spec.json", "events.jsonl"] {
            std::fs::write(run.path().join(name), &bytes).expect("written");
        }
        prop_assert!(home.record(&id(1)).is_err());
        prop_assert!(home.spec(&id(1)).is_err());
        prop_assert!(home.events(&id(1), 0).expect("read").0.is_empty());
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}
