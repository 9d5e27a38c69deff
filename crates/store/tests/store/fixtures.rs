//! What earlier versions have written still loads, with everything that stands in it.

use crate::kit::{Home, begin, id};
use fullstop_core::cage::{CageKind, CagePreference, Member};
use fullstop_core::id::Id;
use fullstop_core::identity::Identity;
use fullstop_core::signal::Signal;
use fullstop_core::words::{Exit, OnExit, Proof, Reason};
use fullstop_protocol::{
    Event, EventKind, Record, ResizePolicy, RunState, SecretFile, Size, SpecError, Stdin,
    StepRecord, Text, Timestamp,
};
use fullstop_store::StoreError;
use serde_json::Value;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::time::Duration;

const SPEC: &str = include_str!("../fixtures/v1/spec.json");
const SPEC_V2: &str = include_str!("../fixtures/v2/spec.json");
const RUNNING: &str = include_str!("../fixtures/v1/record-running.json");
const STOPPING: &str = include_str!("../fixtures/v1/record-stopping.json");
const ENDED: &str = include_str!("../fixtures/v1/record-ended.json");
const MEMBERS: &[u8] = include_bytes!("../fixtures/v1/members");
const EVENTS: &str = include_str!("../fixtures/v1/events.jsonl");
const RUNNING_V2: &str = include_str!("../fixtures/v2/record-running.json");
const STOPPING_V2: &str = include_str!("../fixtures/v2/record-stopping.json");
const ENDED_V2: &str = include_str!("../fixtures/v2/record-ended.json");
const EVENTS_V2: &str = include_str!("../fixtures/v2/events.jsonl");

/// A run with these words in one of its files.
fn with(file: &str, text: &[u8]) -> Home {
    let home = Home::new();
    drop(begin(&home, &id(1), None));
    std::fs::write(home.run_path(&id(1)).join(file), text).expect("written");
    home
}

fn fixed() -> Id {
    "0r3v8x2k7m4pq".parse().expect("an id")
}

fn bytes(bytes: &[u8]) -> Text {
    Text(OsString::from_vec(bytes.to_vec()))
}

/// A field that is not looked at here would come back another way. Fields that have
/// come since are told as well, and change nothing.
fn same(value: &impl serde::Serialize, text: &str) {
    let now: Value = serde_json::to_value(value).expect("written");
    let then: Value = serde_json::from_str(text).expect("a fixture");
    assert_kept(&now, &then);
}

fn assert_kept(now: &Value, then: &Value) {
    match (now, then) {
        (Value::Object(now), Value::Object(then)) => {
            for (key, then) in then {
                assert_kept(now.get(key).unwrap_or_else(|| panic!("{key} is lost")), then);
            }
        }
        (Value::Array(now), Value::Array(then)) => {
            assert_eq!(now.len(), then.len());
            now.iter().zip(then).for_each(|(now, then)| assert_kept(now, then));
        }
        (now, then) => assert_eq!(now, then),
    }
}

/// The same run, as version 1 and as version 2 have written it.
#[test]
fn a_spec() {
    let file = with("spec.json", SPEC.as_bytes()).spec(&id(1)).expect("loads");
    assert_eq!((file.id.clone(), file.generation), (fixed(), 2));
    assert_eq!(file.lock, Some(4711));
    assert!(file.cgroup.as_ref().is_some_and(|path| path.ends_with("fullstop-0r3v8x2k7m4pq")));
    assert_eq!(file.world.machine, "0123456789abcdef0123456789abcdef");
    assert_eq!(file.world.pid_namespace, 4_026_531_836);
    assert_eq!(file.started_at, Timestamp::from_unix_ms(1_790_000_000_123));
    let spec = &file.spec;
    assert_eq!(spec.name.as_deref(), Some("research"));
    assert_eq!(spec.group.as_deref(), Some("plan/research"));
    assert_eq!(spec.argv[0], Text("claude".into()));
    assert_eq!(spec.argv[4], bytes(b"notes-\xff.md"));
    assert_eq!(spec.env[0], (Text("HOME".into()), Text("/home/ada".into())));
    assert_eq!(spec.env[3], (Text("ODD".into()), bytes(b"fo\xff")));
    assert_eq!(spec.cwd, Some(Text("/home/ada/work".into())));
    assert_eq!(spec.ladder.to_string(), "int@leader:3s,term@tree:2s,kill");
    assert_eq!(spec.on_exit, OnExit::Wait);
    assert_eq!(spec.timeout, Some(Duration::from_millis(3_600_500)));
    assert_eq!((spec.cage, spec.stdin.clone()), (CagePreference::Auto, Stdin::Inherit));
    let now = with("spec.json", SPEC_V2.as_bytes()).spec(&id(1)).expect("loads");
    assert_eq!(now, file);
    same(&now, SPEC_V2);
}

/// What version 1 knew of streams, clocks and secrets.
#[test]
fn the_streams_of_a_spec() {
    let more = r#"{"streams": {"stdin": "pipe", "output": {"terminal": {"size": {"rows": 5,
        "cols": 9}, "fit": "fixed"}}, "log_max": 70000, "drain": {"quiet": {"secs": 1, "nanos": 0},
        "most": {"secs": 2, "nanos": 500000000}}}, "secrets": [["KEY", "/run/key"]], "#;
    let text = SPEC.replacen('{', more, 1);
    let text = text.replace("\"timeout\"", "\"idle\":{\"secs\":7,\"nanos\":0},\"timeout\"");
    let spec = with("spec.json", text.as_bytes()).spec(&id(1)).expect("loads").spec;
    assert_eq!((spec.stdin, spec.log_max), (Stdin::Pipe, Some(70_000)));
    assert_eq!(spec.output.terminal(), Some((Size { rows: 5, cols: 9 }, ResizePolicy::Fixed)));
    assert_eq!(spec.drain.quiet, Duration::from_secs(1));
    assert_eq!(spec.drain.most, Duration::from_millis(2500));
    assert_eq!(spec.idle_timeout, Some(Duration::from_secs(7)));
    let key = SecretFile { name: "KEY".to_owned(), path: "/run/key".into(), fd: None };
    assert_eq!(spec.secrets, [key]);
}

/// A spec that would lose something is shown, and never run again.
#[test]
fn a_spec_of_which_something_is_not_known() {
    let text = SPEC_V2.replacen("\"argv\"", "\"memory_max\":7,\"argv\"", 1);
    let file = with("spec.json", text.as_bytes()).spec(&id(1)).expect("loads");
    assert_eq!(file.spec.name.as_deref(), Some("research"));
    let error = file.whole_spec().expect_err("it asks for more");
    assert_eq!(error, SpecError::Unsupported { field: "memory_max".to_owned() });
}

fn loaded(text: &str) -> Record {
    with("record.json", text.as_bytes()).record(&id(1)).expect("loads")
}

/// What version 2 has added says nothing of a run that version 1 has written.
fn as_version_1(record: Record) -> Record {
    Record {
        version: 1,
        labels: fullstop_protocol::Labels::default(),
        events: 0,
        asked: None,
        host: None,
        cgroup_inode: None,
        cgroup_parent_inode: None,
        has_members_file: false,
        lock: None,
        world: fullstop_protocol::World { time_namespace: None, ..record.world },
        ..record
    }
}

/// The same runs, as version 1 and as version 2 have written them.
#[test]
fn a_running_record() {
    let (before, record) = (loaded(RUNNING), loaded(RUNNING_V2));
    same(&record, RUNNING_V2);
    assert_eq!((record.events, record.has_members_file), (7, true));
    assert_eq!(record.labels.get("app"), Some("my-app"));
    assert_eq!(record.host.as_ref().and_then(|host| host.app.as_deref()), Some("my-app"));
    assert_eq!(record.world.time_namespace, Some(4_026_531_834));
    // Version 1 did not say since when, and held the members itself.
    let (at, census) = (before.at, before.census.clone());
    assert_eq!(before, Record { at, census, ..as_version_1(record) });
    assert_eq!((&before.state, &before.cage), (&RunState::Running, &CageKind::Tree.into()));
    let ancestry = before.ancestry.expect("an ancestry");
    assert_eq!(ancestry.guard, Identity { pid: 4100, start_ticks: 880_000, inode: Some(90_001) });
    assert_eq!(ancestry.line[1], Identity { pid: 1, start_ticks: 3, inode: None });
    assert_eq!(ancestry.place.as_deref(), Some("/user.slice/user-1000.slice/session-3.scope"));
    assert_eq!(before.keeper.map(|keeper| keeper.pid), Some(4101));
    assert_eq!(before.leader.map(|leader| leader.pid), Some(4102));
    assert_eq!(before.census.len(), 2);
}

#[test]
fn the_members_beside_a_record() {
    let home = with("record.json", RUNNING.as_bytes());
    let mut record = home.record(&id(1)).expect("loads");
    record.census.clear();
    // Where the fixture is put, but its checksums are of its own id.
    std::fs::rename(home.run_path(&id(1)), home.run_path(&record.id)).expect("renamed");
    std::fs::write(home.run_path(&record.id).join("members"), MEMBERS).expect("written");
    let known = home.members(&record).expect("a directory");
    assert!(known.lost.is_none(), "{known:?}");
    let with_inode = Identity { pid: 4110, start_ticks: 880_120, inode: Some(90_011) };
    let without = Identity { pid: 4112, start_ticks: 880_130, inode: None };
    assert_eq!(known.identities[1..], [with_inode, without]);
}

#[test]
fn a_stopping_record() {
    let (before, record) = (loaded(STOPPING), loaded(STOPPING_V2));
    same(&record, STOPPING_V2);
    let (reason, step) = (Reason::GroupClosed.into(), "term@tree".to_owned());
    let left = Duration::from_millis(2100);
    assert_eq!(record.state, RunState::Stopping { reason, step, left, alive: Some(4) });
    assert_eq!(record.asked.and_then(|asker| asker.by).as_deref(), Some("Ada"));
    // When its step ends was a moment of another boot's clock.
    let is_same = |state: &RunState| {
        matches!(state, RunState::Stopping { reason, step, alive: None, .. }
        if *reason == Reason::GroupClosed && step == "term@tree")
    };
    assert!(is_same(&before.state), "{before:?}");
}

#[test]
fn an_ended_record() {
    let (before, record) = (loaded(ENDED), loaded(ENDED_V2));
    same(&record, ENDED_V2);
    let (was, report) = (before.report.clone().expect("a report"), record.report.clone());
    let report = report.expect("a report");
    let kernel = report.kernel.expect("the kernel's answers");
    assert_eq!((kernel.populated, kernel.has_children), (Some(false), Some(false)));
    assert_eq!(report.leftovers[0].age_ms, 61_000);
    assert_eq!(before, Record { report: Some(was.clone()), ..as_version_1(record) });
    assert_eq!(before.state, RunState::Ended { reason: Reason::Stopped.into() });
    for report in [was, report] {
        assert!(report.has_ended() && report.proof == Some(Proof::CgroupEmpty.into()));
        assert_eq!(report.exit, Some(Exit::Signal(Signal::INT)));
        let kill = StepRecord { step: "kill".to_owned(), at_ms: 66_000, alive: 1, signalled: 1 };
        assert_eq!(report.steps[1], kill);
        let Member { pid, state, wchan, .. } = &report.leftovers[0];
        assert_eq!((*pid, *state, wchan.as_deref()), (4120, 'S', Some("do_epoll_wait")));
        assert_eq!(report.elapsed_ms, 66_012);
        assert_eq!(report.at, Timestamp::from_unix_ms(1_790_000_066_135));
    }
}

#[test]
fn events() {
    let home = with("events.jsonl", format!("{EVENTS}{EVENTS_V2}").as_bytes());
    let (events, end) = home.events(&id(1), 0).expect("read");
    assert_eq!(end, (EVENTS.len() + EVENTS_V2.len()) as u64);
    let (before, now) = events.split_at(EVENTS.lines().count());
    assert_eq!(now.len(), EVENTS_V2.lines().count());
    for ((event, line), number) in now.iter().zip(EVENTS_V2.lines()).zip(1..) {
        same(event, line);
        assert_eq!(event.number, number);
        assert!(!matches!(event.kind, EventKind::Other(_)), "{event:?}");
    }
    let is_old = |event: &&Event| !matches!(event.number, 2 | 8 | 9);
    for (before, now) in before.iter().zip(now.iter().filter(is_old)) {
        assert_eq!(*before, Event { number: 0, ..now.clone() });
    }
    assert!(matches!(&before[0].kind, EventKind::Started { leader: Some(4102), .. }));
}

/// A later fullstop may tell of more, and is shown as it is.
#[test]
fn an_event_that_is_not_known_yet() {
    let line = EVENTS_V2.lines().next().expect("a line").replace("\"started\"", "\"danced\"");
    let home = with("events.jsonl", format!("{line}\n").as_bytes());
    let (events, _) = home.events(&id(1), 0).expect("read");
    assert!(matches!(&events[..], [Event { number: 1, kind: EventKind::Other(_), .. }]));
    same(&events[0], &line);
}

/// Fields that were added since are missing in old files, and may be.
#[test]
fn without_the_fields_that_may_be_missing() {
    let without = |text: &str, fields: &[&str]| {
        let mut value: serde_json::Value = serde_json::from_str(text).expect("a fixture");
        let map = value.as_object_mut().expect("an object");
        for field in fields {
            assert!(map.remove(*field).is_some(), "{field}");
        }
        value.to_string()
    };
    let spec = without(SPEC, &["name", "group", "kin"]);
    with("spec.json", spec.as_bytes()).spec(&id(1)).expect("loads");
    let record = without(RUNNING, &["name", "group", "kin", "census", "report"]);
    loaded(&record);
    let may = ["name", "group", "labels", "events", "host", "cgroup", "ancestry", "keeper", "lock"];
    loaded(&without(RUNNING_V2, &may));
}

#[test]
fn with_fields_that_nobody_knows_yet() {
    let more = |text: &str| text.replacen('{', "{\"mood\":{\"deep\":[1,null]},", 1);
    with("spec.json", more(SPEC).as_bytes()).spec(&id(1)).expect("loads");
    for text in [RUNNING, STOPPING, ENDED, RUNNING_V2, STOPPING_V2, ENDED_V2] {
        // At the top, and in the state.
        let text = more(text).replacen("{\"state\":", "{\"hue\":1,\"state\":", 1);
        with("record.json", text.as_bytes()).record(&id(1)).expect("loads");
    }
    let home = with("events.jsonl", EVENTS.replace("{\"at\"", "{\"mood\":[],\"at\"").as_bytes());
    assert_eq!(home.events(&id(1), 0).expect("read").0.len(), EVENTS.lines().count());
}

/// Every beginning of a record is damaged, and none is taken for a record.
#[test]
fn half_written() {
    let home = with("record.json", ENDED_V2.as_bytes());
    let path = home.run_path(&id(1)).join("record.json");
    let whole = ENDED_V2.trim_end();
    for end in 0..whole.len() {
        std::fs::write(&path, &whole[..end]).expect("written");
        let error = home.record(&id(1)).expect_err("damaged");
        assert!(matches!(error, StoreError::Damaged { .. }), "{end}: {error:?}");
        let said = error.to_string();
        assert!(said.contains("record.json is damaged") && !said.contains('\n'), "{said}");
    }
    std::fs::write(&path, whole).expect("written");
    home.record(&id(1)).expect("whole without its last line break");
}

#[test]
fn of_a_later_version() {
    // It may mean something else by every name but one.
    let later = br#"{"version":3,"state":17,"id":[]}"#;
    let home = with("record.json", later);
    let error = home.record(&id(1)).expect_err("newer");
    assert!(matches!(error, StoreError::Newer { version: 3, .. }), "{error:?}");
    let said = error.to_string();
    assert!(said.contains("version 3") && said.contains("newer fullstop"), "{said}");
    assert!(said.contains("left alone") && !said.contains('\n'), "{said}");
    let found = std::fs::read(home.run_path(&id(1)).join("record.json")).expect("still there");
    assert_eq!(found, later);
    let later = br#"{"version":3,"spec":17,"id":[]}"#;
    let error = with("spec.json", later).spec(&id(1)).expect_err("newer");
    assert!(matches!(error, StoreError::Newer { version: 3, .. }), "{error:?}");
}
