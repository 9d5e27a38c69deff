//! What is no file stands where a file of ours should: nothing waits for it, follows it or locks
//! it, it hides no other run, and a keeper puts its own in its place.

use crate::kit::{Home, begin, event, id, live_and_end, names, record};
use fullstop_protocol::RunState;
use fullstop_store::{Name, Standing, StoreError};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

const KINDS: [&str; 3] = ["a pipe", "a link", "a directory"];

/// Puts something else in the place of a file.
fn put(kind: &str, path: &Path) {
    let _ = fs::remove_file(path);
    match kind {
        "a pipe" => mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0).expect("a pipe"),
        "a link" => symlink("/dev/zero", path).expect("a link"),
        _ => {
            fs::create_dir(path).expect("a directory");
            fs::write(path.join("kept"), "").expect("a file in it");
        }
    }
}

fn is_strange(error: &StoreError, of: &str) -> bool {
    let said = error.to_string();
    matches!(error, StoreError::Strange { kind, .. } if *kind == of)
        && said.ends_with(&format!("is {of}, not a file of ours"))
}

#[test]
fn a_listing_that_is_no_file_is_an_error_and_hides_nobody() {
    for kind in KINDS {
        let home = Home::new();
        live_and_end(&home, &id(1), Some("research"));
        put(kind, &home.path().join(format!("live/{}", id(9))));
        let error = home.standing(&id(9)).expect_err("it cannot be told");
        assert!(is_strange(&error, kind), "{error}");
        let error = home.take_over(&id(9)).expect_err("no run to be swept");
        assert!(error.is_missing(), "{error}");
        assert_eq!(home.find("research").expect("found"), id(1), "{kind}");
        home.put_away(&id(9)).expect("put away");
        assert!(home.live().expect("listed").is_empty());
    }
}

/// The lock in its directory is held: it lives, and its keeper lists it again.
#[test]
fn a_live_run_with_such_a_listing_lives_and_is_listed_again() {
    for kind in KINDS {
        let home = Home::new();
        let mut run = begin(&home, &id(1), None);
        put(kind, &home.path().join(format!("live/{}", id(1))));
        assert_eq!(home.standing(&id(1)).expect("asked"), Standing::Live, "{kind}");
        let error = home.take_over(&id(1)).expect_err("no sweep takes it");
        assert!(is_strange(&error, kind), "{error}");
        assert_eq!(run.lost_names(true, false).expect("looked"), [Name::Listing], "{kind}");
        run.restore_lock().expect("restored");
        run.list_again().expect("listed");
        assert_eq!(run.lost_names(true, false).expect("looked"), [], "{kind}");
        run.finish().expect("finished");
        assert_eq!(home.standing(&id(1)).expect("asked"), Standing::Over, "{kind}");
    }
}

#[test]
fn nothing_of_the_kind_keeps_a_run_unfinished() {
    for kind in KINDS {
        for name in ["control.sock", "record.room", "lock", "live"] {
            let home = Home::new();
            let mut run = begin(&home, &id(1), None);
            let path = match name {
                "live" => home.path().join(format!("live/{}", id(1))),
                name => run.path().join(name),
            };
            put(kind, &path);
            run.finish().expect("finished");
            assert!(home.live().expect("listed").is_empty(), "{kind} as {name}");
            assert_eq!(home.standing(&id(1)).expect("asked"), Standing::Over, "{kind} as {name}");
        }
    }
}

/// Of what is no file of ours only the name is in the way.
#[test]
fn a_keeper_puts_its_own_in_the_place() {
    for kind in KINDS {
        let home = Home::new();
        let mut run = begin(&home, &id(1), None);
        for name in ["control.sock", "lock", "record.json", "record.json.new", "events.jsonl"] {
            // The second time there is something aside already.
            for _ in 0..2 {
                put(kind, &run.path().join(name));
                run.restore_lock().expect("restored");
                let _socket = run.listen().expect("it listens");
                run.write_record(&record(&id(1), RunState::Running)).expect("written");
                run.append(&[event(&id(1), 1)]).expect("appended");
                assert_eq!(run.lost_names(true, true).expect("looked"), [], "{kind} as {name}");
                assert!(run.path().join("events.jsonl").is_file(), "{kind} as {name}");
                assert!(home.record(&id(1)).is_ok(), "{kind} as {name}");
            }
        }
        let aside = names(&home, &format!("runs/{}", id(1)));
        let aside = aside.iter().filter(|name| name.contains(".strange")).count();
        assert_eq!(aside, if kind == "a directory" { 10 } else { 0 }, "{kind}");
    }
}

#[test]
fn what_is_read_is_named_and_not_waited_for() {
    for kind in KINDS {
        let home = Home::new();
        live_and_end(&home, &id(1), Some("research"));
        for name in ["events.jsonl", "record.json", "spec.json"] {
            put(kind, &home.run_path(&id(1)).join(name));
        }
        let said = [
            home.record(&id(1)).expect_err("no record"),
            home.spec(&id(1)).expect_err("no spec"),
            home.events(&id(1), 0).expect_err("no events"),
        ];
        assert!(said.iter().all(|error| is_strange(error, kind)), "{said:?}");
        home.remove(&id(1)).expect("removed");
    }
}

/// Nobody can hold what is no lock.
#[test]
fn a_run_that_is_over_with_such_a_lock_can_begin_again_and_be_removed() {
    for kind in KINDS {
        let home = Home::new();
        live_and_end(&home, &id(1), None);
        put(kind, &home.run_path(&id(1)).join("lock"));
        let mut run = home.reclaim(&id(1)).expect("claimed");
        assert_eq!(home.standing(&id(1)).expect("asked"), Standing::Live, "{kind}");
        run.finish().expect("finished");
        drop(run);
        put(kind, &home.run_path(&id(1)).join("lock"));
        home.remove(&id(1)).expect("removed");
        assert!(home.all().expect("listed").is_empty(), "{kind}");
    }
}
