//! Whatever is written can be read again: any bytes, any state.

use crate::kit::{Home, begin, id, record, spec};
use fullstop_core::cage::{CageKind, CagePreference, Member};
use fullstop_core::identity::Identity;
use fullstop_core::signal::Signal;
use fullstop_core::words::{Exit, OnExit, Proof, Reason};
use fullstop_protocol::{
    Ancestry, Asker, Claim, Event, EventKind, KernelAnswers, REPORT_VERSION, Record, Report,
    RunState, Spec, StepRecord, Text, Timestamp, TrackedMember, Word,
};
use fullstop_store::format::SpecFile;
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

fn ancestries() -> impl Strategy<Value = Ancestry> {
    (identities(), vec(identities(), 0..4), option::of(any::<String>()))
        .prop_map(|(guard, line, place)| Ancestry { guard, line, place })
}

fn times() -> impl Strategy<Value = Timestamp> {
    any::<u64>().prop_map(Timestamp::from_unix_ms)
}

/// Also one that only a later fullstop knows.
fn why() -> impl Strategy<Value = Word<Reason>> {
    prop_oneof![reasons().prop_map(Word::from), Just(Word::Other("bored".to_owned()))]
}

fn claims() -> impl Strategy<Value = Claim> {
    proofs().prop_map(Claim::from)
}

fn askers() -> impl Strategy<Value = Asker> {
    let who = (option::of(any::<u32>()), option::of(any::<i32>()));
    (times(), who, option::of(any::<String>())).prop_map(|(at, (uid, pid), by)| Asker {
        at,
        uid,
        pid,
        program: by.clone(),
        by,
    })
}

fn answers() -> impl Strategy<Value = KernelAnswers> {
    let answer = || option::of(any::<bool>());
    (times(), answer(), answer(), answer()).prop_map(
        |(at, populated, has_children, is_census_complete)| KernelAnswers {
            at,
            populated,
            has_children,
            is_census_complete,
        },
    )
}

fn states() -> impl Strategy<Value = RunState> {
    let stopping = (why(), "[a-z@]{1,9}", any::<u32>(), option::of(any::<usize>()));
    let stuck = (why(), option::of(any::<usize>()), any::<u32>(), times());
    prop_oneof![
        Just(RunState::Starting),
        Just(RunState::Running),
        Just(RunState::Released),
        Just(RunState::Other("paused".to_owned())),
        stopping.prop_map(|(reason, step, left, alive)| {
            let left = Duration::from_millis(left.into());
            RunState::Stopping { reason, step, left, alive }
        }),
        stuck.prop_map(|(reason, alive, tries, tried_at)| {
            RunState::Stuck { reason, alive, tries, tried_at }
        }),
        why().prop_map(|reason| RunState::Ended { reason }),
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
            age_ms: start_ticks,
            cpu_ms: uid.into(),
            memory_bytes: start_ticks,
            wchan,
        },
    )
}

fn reports() -> impl Strategy<Value = Report> {
    let taken = (any::<String>(), any::<u64>(), any::<usize>(), any::<usize>())
        .prop_map(|(step, at_ms, alive, signalled)| StepRecord { step, at_ms, alive, signalled });
    let how = (states(), times(), option::of(exits()), option::of(claims()), option::of(answers()));
    let tracked = (members(), vec(any::<String>(), 0..3), vec(any::<String>(), 0..3))
        .prop_map(|(member, asked_by, outlived)| TrackedMember { member, asked_by, outlived });
    let who = (vec(members(), 0..3), vec(tracked, 0..3), vec(members(), 0..3));
    let text = (option::of(any::<String>()), option::of(askers()));
    (how, who, vec(taken, 0..4), text, any::<u32>()).prop_map(
        |(
            (state, at, exit, proof, kernel),
            (leftovers, survivors, released),
            steps,
            (error, asked),
            ms,
        )| Report {
            version: REPORT_VERSION,
            id: id(1),
            name: error.clone(),
            generation: 3,
            command: error.iter().cloned().collect(),
            cage: CageKind::Cgroup.into(),
            state,
            at,
            asked,
            exit,
            steps,
            leftovers,
            survivors,
            released,
            proof,
            kernel,
            output: Vec::new(),
            drained: None,
            holders: Vec::new(),
            error,
            started_at: at,
            elapsed_ms: ms.into(),
        },
    )
}

/// The name of a variable has no `=` in it, and is not empty.
fn variables() -> impl Strategy<Value = Text> {
    "[^=\0]{1,8}".prop_map(|name| Text(name.into()))
}

fn specs() -> impl Strategy<Value = SpecFile> {
    let on_exit = prop::sample::select(vec![OnExit::Stop, OnExit::Wait, OnExit::Release]);
    let cage = prop::sample::select(vec![
        CagePreference::Auto,
        CagePreference::Cgroup,
        CagePreference::Tree,
    ]);
    let words = (vec(texts(), 0..4), vec((variables(), texts()), 0..4), option::of(texts()));
    let names = (option::of(any::<String>()), option::of(any::<String>()), option::of(".{0,20}"));
    let plan = (on_exit, option::of(any::<u64>()), cage);
    (words, names, plan, option::of(ancestries()), any::<u32>(), times()).prop_map(
        |(
            (argv, env, cwd),
            (name, group, cgroup),
            (on_exit, timeout, cage),
            ancestry,
            generation,
            started_at,
        )| {
            let mut file = spec(&id(1), None);
            let timeout = timeout.map(Duration::from_millis);
            file.spec =
                Spec { argv, env, cwd, name, group, cage, on_exit, timeout, ..Spec::new(vec![]) };
            let cgroup = cgroup.map(Into::into);
            SpecFile { cgroup, ancestry, lock: Some(7), generation, started_at, ..file }
        },
    )
}

fn records() -> impl Strategy<Value = Record> {
    let who = (option::of(identities()), option::of(identities()), option::of(identities()));
    let more = (option::of(ancestries()), vec(identities(), 0..4), vec(any::<String>(), 0..4));
    let asked = (option::of(askers()), option::of(any::<u64>()), any::<u64>());
    (states(), who, more, option::of(reports()), times(), asked).prop_map(
        |(
            state,
            (keeper, guard, leader),
            (ancestry, census, command),
            report,
            started_at,
            (asked, inode, events),
        )| Record {
            keeper,
            guard,
            leader,
            ancestry,
            census,
            command,
            report,
            started_at,
            at: started_at,
            asked,
            cgroup_inode: inode,
            cgroup_parent_inode: inode,
            events,
            ..record(&id(1), state)
        },
    )
}

fn events() -> impl Strategy<Value = Event> {
    let what = prop_oneof![
        (vec(any::<String>(), 0..4), option::of(any::<i32>()))
            .prop_map(|(command, leader)| EventKind::Started { command, leader }),
        (any::<String>(), any::<usize>(), any::<usize>(), why()).prop_map(
            |(step, alive, signalled, reason)| EventKind::Step { step, alive, signalled, reason }
        ),
        exits().prop_map(|exit| EventKind::LeaderExited { exit }),
        any::<usize>().prop_map(|survivors| EventKind::Stuck { survivors }),
        (why(), option::of(exits()), option::of(claims()))
            .prop_map(|(reason, exit, proof)| EventKind::Ended { reason, exit, proof }),
        any::<usize>().prop_map(|released| EventKind::Released { released }),
        askers().prop_map(|asker| EventKind::Asked { asker }),
        Just(EventKind::Other([("type".to_owned(), "danced".into())].into_iter().collect())),
    ];
    (any::<u64>(), times(), any::<u32>(), what).prop_map(|(number, at, generation, kind)| Event {
        number,
        at,
        id: id(1),
        generation,
        kind,
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
