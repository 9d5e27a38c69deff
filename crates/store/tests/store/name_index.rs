//! The index of names: kept with the runs, made where it is missing, and never believed
//! without the record.

use crate::kit::{Home, begin, id, live_and_end, names, spec};
use fullstop_core::words::Reason;
use fullstop_protocol::{Record, RunState, Timestamp};
use fullstop_store::format::SpecFile;
use fullstop_store::{FindError, Name};
use std::fs;

fn later(at: Timestamp) -> Timestamp {
    Timestamp::from_unix_ms(at.unix_ms() + 1)
}

fn entries(home: &Home, name: &str) -> usize {
    let path = home.path().join("names").join(name);
    fs::read_dir(path).map_or(0, Iterator::count)
}

#[test]
fn one_without_a_name_is_in_no_index() {
    let home = Home::new();
    live_and_end(&home, &id(1), None);
    assert_eq!(names(&home, "names"), [".whole"]);
}

#[test]
fn an_entry_goes_with_its_run() {
    let home = Home::new();
    for day in 1..=3 {
        live_and_end(&home, &id(day), Some("two words"));
    }
    assert_eq!(entries(&home, "two%20words"), 3);
    home.remove(&id(3)).expect("removed");
    assert_eq!(home.find("two words").expect("found"), id(2));
    home.remove(&id(1)).expect("removed");
    home.remove(&id(2)).expect("removed");
    assert_eq!(names(&home, "names"), [".whole"]);
    // One that never began.
    begin(&home, &id(4), Some("two words")).abandon();
    assert_eq!(names(&home, "names"), [".whole"]);
}

/// As an older fullstop left it.
#[test]
fn an_index_that_is_missing_is_made_once() {
    let home = Home::new();
    live_and_end(&home, &id(1), Some("old"));
    live_and_end(&home, &id(2), Some("other"));
    fs::remove_dir_all(home.path().join("names")).expect("removed");
    // A run that begins does not make it whole.
    live_and_end(&home, &id(3), Some("new"));
    assert_eq!(names(&home, "names"), ["new"]);
    assert_eq!(home.find("old").expect("found"), id(1));
    assert_eq!(names(&home, "names"), [".whole", "new", "old", "other"]);
    // From here on nobody looks at every run.
    fs::remove_dir_all(home.path().join("names/other")).expect("removed");
    assert!(home.find("other").is_err());
}

/// The index counts the start, and not the birth.
#[test]
fn the_one_that_was_started_last_is_meant() {
    let home = Home::new();
    live_and_end(&home, &id(1), Some("research"));
    live_and_end(&home, &id(2), Some("research"));
    assert_eq!(home.find("research").expect("found"), id(2));
    let later = |lock| {
        let first = spec(&id(1), Some("research"));
        SpecFile { generation: 2, started_at: later(first.started_at), lock: Some(lock), ..first }
    };
    // A restart that comes to nothing changes nothing.
    let run = home.reclaim(&id(1)).expect("claimed");
    run.write_spec(&later(1)).expect("written");
    run.abandon();
    assert_eq!(home.find("research").expect("found"), id(2));
    let mut run = home.reclaim(&id(1)).expect("claimed");
    run.write_spec(&later(2)).expect("written");
    let over = RunState::Ended { reason: Reason::Exited.into() };
    run.write_record(&Record { state: over, ..later(2).first_record() }).expect("written");
    run.finish().expect("finished");
    drop(run);
    assert_eq!(home.find("research").expect("found"), id(1));
    assert_eq!(entries(&home, "research"), 2);
    home.remove(&id(1)).expect("removed");
    assert_eq!(entries(&home, "research"), 1);
}

#[test]
fn what_was_removed_by_hand_hides_nobody_and_is_tidied() {
    let home = Home::new();
    live_and_end(&home, &id(1), Some("research"));
    live_and_end(&home, &id(2), Some("research"));
    live_and_end(&home, &id(3), Some("gone"));
    fs::remove_dir_all(home.run_path(&id(2))).expect("removed");
    fs::remove_dir_all(home.run_path(&id(3))).expect("removed");
    assert_eq!(home.find("research").expect("found"), id(1));
    assert!(home.find("gone").is_err());
    home.tidy().expect("tidied");
    assert_eq!(names(&home, "names"), [".whole", "research"]);
    assert_eq!(entries(&home, "research"), 1);
}

/// Of a live run whose directory was removed the entry alone tells the name. A run of the same
/// name that is over must not take its place.
#[test]
fn the_entry_of_a_live_run_without_a_directory_is_not_tidied() {
    let home = Home::new();
    live_and_end(&home, &id(1), Some("research"));
    let live = begin(&home, &id(2), Some("research"));
    fs::remove_dir_all(home.run_path(&id(2))).expect("removed");
    home.tidy().expect("tidied");
    assert_eq!(entries(&home, "research"), 2);
    assert_eq!(home.find("research").expect("found"), id(2));
    drop(live);
}

/// A run that is over is taken only if no live run has the name, whatever became of the index.
#[test]
fn a_live_run_without_an_entry_is_meant_before_one_that_is_over() {
    let home = Home::new();
    live_and_end(&home, &id(1), Some("research"));
    let live = begin(&home, &id(2), Some("research"));
    let forget = |day: u64| {
        let path = home.path().join("names/research");
        let of_run = |entry: &fs::DirEntry| {
            entry.file_name().to_string_lossy().starts_with(id(day).as_str())
        };
        let mut entries = fs::read_dir(path).expect("entries").flatten();
        fs::remove_file(entries.find(of_run).expect("its entry").path()).expect("removed");
    };
    forget(2);
    assert_eq!(home.find("research").expect("found"), id(2));
    // Two are two, in the index or not.
    let other = begin(&home, &id(4), Some("research"));
    forget(4);
    assert!(matches!(home.find("research"), Err(FindError::Several { .. })));
    drop((live, other));
}

/// Neither the index nor its files tell the name of a live run: it may be any.
#[test]
fn a_live_run_whose_name_is_lost_may_be_the_one_that_is_meant() {
    let home = Home::new();
    live_and_end(&home, &id(1), Some("research"));
    let live = begin(&home, &id(2), Some("other"));
    fs::remove_dir_all(home.run_path(&id(2))).expect("removed");
    assert_eq!(home.find("research").expect("the index knows the other one's name"), id(1));
    fs::remove_dir_all(home.path().join("names/other")).expect("removed");
    let error = home.find("research").expect_err("it cannot be told");
    assert!(matches!(&error, FindError::Unreadable { live, .. } if *live == id(2)), "{error:?}");
    assert!(error.to_string().contains(id(2).as_str()), "{error}");
    assert_eq!(home.find(id(1).as_str()).expect("found"), id(1));
    // What nobody holds is not live, and hides no other.
    drop(live);
    assert_eq!(home.find("research").expect("found"), id(1));
}

/// Its keeper misses the entry as it misses any other of its names.
#[test]
fn an_entry_that_was_removed_is_missed_and_made_anew() {
    let home = Home::new();
    let run = begin(&home, &id(1), Some("research"));
    assert_eq!(run.lost_names(true, false).expect("looked"), []);
    fs::remove_dir_all(home.path().join("names")).expect("removed");
    assert_eq!(run.lost_names(true, false).expect("looked"), [Name::Name]);
    run.list_name_again().expect("listed");
    assert_eq!(run.lost_names(true, false).expect("looked"), []);
    // It does not say that the other runs are in the index.
    assert_eq!(names(&home, "names"), ["research"]);
}

/// The keeper of a run whose state directory was removed makes its entry anew.
#[test]
fn an_entry_is_restored_with_its_run() {
    let home = Home::new();
    let mut run = begin(&home, &id(1), Some("research"));
    fs::remove_dir_all(home.path()).expect("removed");
    run.restore_lock().expect("restored");
    run.rewrite_spec(&spec(&id(1), Some("research"))).expect("written");
    run.list_again().expect("listed");
    run.finish().expect("finished");
    let store = home.again();
    assert_eq!(names(&store, "names"), ["research"]);
    assert_eq!(store.find("research").expect("found"), id(1));
    // The search has made the rest of the index.
    assert_eq!(names(&store, "names"), [".whole", "research"]);
}

/// The first run in a new state directory says that the index is whole. A live run of before is
/// in it as soon as it is restored, and is found by its name after its end.
#[test]
fn an_index_that_is_made_anew_holds_who_is_restored() {
    let home = Home::new();
    let mut run = begin(&home, &id(1), Some("research"));
    fs::remove_dir_all(home.path()).expect("removed");
    let store = home.again();
    live_and_end(&store, &id(2), Some("research"));
    assert!(names(&store, "names").contains(&".whole".to_owned()));
    run.restore_lock().expect("restored");
    let started_later = spec(&id(1), Some("research"));
    let started_later = SpecFile { started_at: later(started_later.started_at), ..started_later };
    run.rewrite_spec(&started_later).expect("written");
    run.list_again().expect("listed");
    assert_eq!(store.find("research").expect("found"), id(1));
    run.finish().expect("finished");
    assert_eq!(store.find("research").expect("found"), id(1));
}

/// An older fullstop starts runs that are in no index. While they live they are found.
#[test]
fn a_live_run_is_found_without_the_index() {
    let home = Home::new();
    let run = begin(&home, &id(1), Some("research"));
    fs::remove_dir_all(home.path().join("names/research")).expect("removed");
    assert_eq!(home.find("research").expect("found"), id(1));
    drop(run);
}

#[test]
fn an_entry_is_not_believed_without_the_record() {
    let home = Home::new();
    live_and_end(&home, &id(1), Some("one"));
    let path = home.path().join("names/one").join(format!("{}-{}", id(2), u64::MAX));
    live_and_end(&home, &id(2), Some("two"));
    fs::write(path, "").expect("written");
    assert_eq!(home.find("one").expect("found"), id(1));
    let live = begin(&home, &id(3), Some("three"));
    let path = home.path().join("names/one").join(format!("{}-{}", id(3), u64::MAX));
    fs::write(path, "").expect("written");
    assert_eq!(home.find("one").expect("found"), id(1));
    drop(live);
}

/// Too many to be shown are counted.
#[test]
fn a_beginning_of_many_names_a_few() {
    let home = Home::new();
    for day in 1..=20 {
        live_and_end(&home, &id(day), None);
    }
    let said = home.find("0").expect_err("several").to_string();
    assert!(said.ends_with("or 12 others"), "{said}");
}

/// A run whose files could not be read when the index was made would never be found again.
#[test]
fn an_index_is_not_whole_while_a_run_cannot_be_read() {
    let home = Home::new();
    for (day, name) in [(1, "passing"), (2, "damaged"), (3, "other")] {
        live_and_end(&home, &id(day), Some(name));
    }
    fs::remove_dir_all(home.path().join("names")).expect("removed");
    fs::write(home.run_path(&id(2)).join("record.json"), "{").expect("damaged");
    // Neither missing nor damaged: a link is not followed.
    let files = ["spec.json", "record.json"].map(|name| home.run_path(&id(1)).join(name));
    for file in &files {
        fs::rename(file, file.with_extension("aside")).expect("put aside");
        std::os::unix::fs::symlink(file.with_extension("aside"), file).expect("a link");
    }
    assert_eq!(home.find("other").expect("found"), id(3));
    assert_eq!(names(&home, "names"), ["damaged", "other"]);
    for file in &files {
        fs::rename(file.with_extension("aside"), file).expect("put back");
    }
    assert_eq!(home.find("passing").expect("found"), id(1));
    assert_eq!(names(&home, "names"), [".whole", "damaged", "other", "passing"]);
}
