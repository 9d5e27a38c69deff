//! Disks that are full, read-only, or deep.

use crate::kit::{Home, begin, event, id, names, record, spec};
use crate::stage;
use fullstop_core::words::Reason;
use fullstop_protocol::{Record, RunState};
use fullstop_store::{Standing, Store, StoreError};
use std::fs::File;
use std::io::Write as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Sets the stage, or says where it is.
pub fn on_disk(test: &str, mount: &str) -> Option<PathBuf> {
    if stage::is_on(test) {
        return stage::dir();
    }
    if let Some(why) = stage::no_mounts() {
        stage::skipped(test, why);
        return None;
    }
    let scratch = crate::kit::Scratch::new();
    stage::play(test, &["unshare", "--mount"], mount, scratch.path());
    None
}

pub fn is_full<T: std::fmt::Debug>(result: Result<T, StoreError>) {
    let error = result.expect_err("a full disk");
    let full = matches!(&error, StoreError::Io { source, .. }
        if source.kind() == std::io::ErrorKind::StorageFull);
    assert!(full, "{error:?}");
    let said = error.to_string().to_lowercase();
    assert!(said.starts_with("cannot ") && said.contains("no space left"), "{said}");
    assert!(!said.contains('\n'), "{said}");
}

/// Takes every byte that is left.
pub fn fill(dir: &Path) -> PathBuf {
    let path = dir.join("ballast");
    let mut file = File::create(&path).expect("a file");
    while file.write_all(&[0; 512]).is_ok() {}
    path
}

#[test]
fn a_full_disk_damages_nothing() {
    let test = "disk::a_full_disk_damages_nothing";
    let Some(dir) = on_disk(test, "mount -t tmpfs -o size=64k,mode=700 none \"$DIR\"") else {
        return;
    };
    let store = Store::at(&dir).expect("a store");
    let run = begin(&store, &id(1), None);
    let second = store.create(&id(2)).expect("a run directory");
    let before = names(&store, &format!("runs/{}", id(1)));
    fill(&dir);
    let mut late = record(&id(1), RunState::Ended { reason: Reason::Exited.into() });
    late.command = vec!["x".repeat(10_000)];
    is_full(run.write_record(&late));
    assert_eq!(store.record(&id(1)).expect("the old one"), record(&id(1), RunState::Running));
    assert_eq!(names(&store, &format!("runs/{}", id(1))), before);
    // One whose spec cannot be written never begins.
    is_full(second.write_spec(&spec(&id(2), None)));
    second.abandon();
    assert_eq!(store.all().expect("all"), [id(1)]);
    assert_eq!(store.live().expect("live"), [id(1)]);
}

/// A record with a report about so many who were left behind.
fn last_words(leftovers: usize) -> Record {
    let text = include_str!("../fixtures/v2/record-ended.json");
    let told: Record = serde_json::from_str(text).expect("a fixture");
    let mut report = told.report.expect("a report");
    let member =
        report.leftovers.first().cloned().or(report.survivors.first().map(|it| it.member.clone()));
    report.leftovers = vec![member.expect("somebody"); leftovers];
    Record {
        report: Some(report),
        ..record(&id(1), RunState::Ended { reason: Reason::Exited.into() })
    }
}

/// What was taken at the birth is enough for the end, and for a crowd that nobody could
/// foresee, of which a few are named.
#[test]
fn the_last_record_has_its_room() {
    let test = "disk::the_last_record_has_its_room";
    let Some(dir) = on_disk(test, "mount -t tmpfs -o size=128k,mode=700 none \"$DIR\"") else {
        return;
    };
    let store = Store::at(&dir).expect("a store");
    for leftovers in [1, 5000] {
        let mut run = begin(&store, &id(1), None);
        run.take_room(&record(&id(1), RunState::Starting)).expect("room");
        let ballast = fill(&dir);
        run.append(&[event(&id(1), 7)]).expect("the last event");
        run.write_record(&last_words(leftovers)).expect("the last record");
        let written = store.last_record(&id(1)).expect("a record");
        let report = written.report.expect("a report");
        assert!(written.state.is_over());
        assert_eq!(report.leftovers.len(), leftovers.min(8));
        assert_eq!(
            report.error.is_some_and(|error| error.contains("disk was full")),
            leftovers > 8
        );
        run.finish().expect("finished");
        assert_eq!(
            names(&store, &format!("runs/{}", id(1))),
            ["events.jsonl", "record.json", "spec.json"]
        );
        std::fs::remove_file(ballast).expect("room");
        store.remove(&id(1)).expect("removed");
    }
    // Where there is none, it is not taken, and nothing is left of the try.
    let run = begin(&store, &id(1), None);
    fill(&dir);
    is_full(run.take_room(&record(&id(1), RunState::Starting)));
    assert!(!names(&store, &format!("runs/{}", id(1))).contains(&"record.room".to_owned()));
}

#[test]
fn without_an_inode_nothing_begins() {
    let test = "disk::without_an_inode_nothing_begins";
    let mount = "mount -t tmpfs -o size=64k,nr_inodes=40,mode=700 none \"$DIR\"";
    let Some(dir) = on_disk(test, mount) else { return };
    let store = Store::at(&dir).expect("a store");
    drop(begin(&store, &id(1), None));
    // The last ones are given back one by one: the directory, the lock, its listing.
    let taken = |n: usize| dir.join(format!("ballast{n}"));
    let count = (0..100).take_while(|&n| File::create(taken(n)).is_ok()).count();
    for free in 0..3 {
        if free > 0 {
            std::fs::remove_file(taken(count - free)).expect("removed");
        }
        is_full(store.create(&id(2)).map(drop));
        assert_eq!(store.all().expect("all"), [id(1)], "with {free} left");
        assert_eq!(store.live().expect("live"), [id(1)], "with {free} left");
    }
    std::fs::remove_file(taken(count - 3)).expect("removed");
    store.create(&id(2)).expect("room at last");
}

#[test]
fn events_are_there_once_when_there_is_room_again() {
    let test = "disk::events_are_there_once_when_there_is_room_again";
    let Some(dir) = on_disk(test, "mount -t tmpfs -o size=64k,mode=700 none \"$DIR\"") else {
        return;
    };
    let store = Store::at(&dir).expect("a store");
    let run = begin(&store, &id(1), None);
    run.append(&[event(&id(1), 0)]).expect("an event");
    let ballast = fill(&dir);
    // More than the page that the file has already.
    let more: Vec<_> = (1..200).map(|at| event(&id(1), at)).collect();
    is_full(run.append(&more));
    std::fs::remove_file(ballast).expect("room");
    run.append(&more).expect("events");
    let (events, _) = store.events(&id(1), 0).expect("read");
    assert_eq!(
        events.iter().map(|event| event.at.unix_ms()).collect::<Vec<_>>(),
        (0..200).collect::<Vec<_>>()
    );
}

#[test]
fn a_read_only_disk_can_be_looked_at() {
    let test = "disk::a_read_only_disk_can_be_looked_at";
    let outside = stage::dir().is_none();
    let home = outside.then(Home::new);
    if let Some(home) = &home {
        if let Some(why) = stage::no_mounts() {
            return stage::skipped(test, why);
        }
        let run = begin(home, &id(1), Some("one"));
        drop(begin(home, &id(2), None));
        let mount = "mount --bind \"$DIR\" \"$DIR\"; mount -o remount,ro,bind \"$DIR\"";
        stage::play(test, &["unshare", "--mount"], mount, home.path());
        return drop(run);
    }
    let store = Store::at(&stage::dir().expect("the stage")).expect("a store");
    assert_eq!(store.standing(&id(1)).expect("asked"), Standing::Live);
    assert_eq!(store.standing(&id(2)).expect("asked"), Standing::Lost);
    assert_eq!(store.find("one").expect("found"), id(1));
    let refused = |result: Result<(), StoreError>| {
        let said = result.expect_err("read-only").to_string();
        assert!(said.to_lowercase().contains("read-only") && !said.contains('\n'), "{said}");
    };
    refused(store.create(&id(3)).map(drop));
    refused(store.take_over(&id(2)).map(drop));
    refused("plan".parse::<fullstop_store::GroupName>().expect("a name").close(store.root()));
}

#[test]
fn a_deep_directory_has_a_socket_all_the_same() {
    let scratch = crate::kit::Scratch::new();
    // A socket's address holds 108 bytes.
    let deep = scratch.path().join("deep/".repeat(60));
    let store = Store::at(&deep).expect("a store");
    let run = begin(&store, &id(1), None);
    let listener = UnixListener::from(run.listen().expect("listening"));
    // A second keeper of the same run finds the name taken.
    let listener = {
        drop(listener);
        UnixListener::from(run.listen().expect("listening again"))
    };
    let (held, address) = store.socket(&id(1)).expect("an address");
    let mut said = UnixStream::connect(address).expect("connected");
    drop(held);
    said.write_all(b"stop\n").expect("said");
    drop(said);
    let (mut heard, _) = listener.accept().expect("accepted");
    let mut text = String::new();
    std::io::Read::read_to_string(&mut heard, &mut text).expect("heard");
    assert_eq!(text, "stop\n");
}
