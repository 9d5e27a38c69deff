//! The names of a live run: noticed when they are removed, and made anew.

use crate::kit::{Home, begin, id, names};
use fullstop_store::{Name, RunDir, Standing, Store, StoreError};
use std::fs;
use std::path::PathBuf;

/// All of its names, with a record and a socket.
fn whole(home: &Home) -> (RunDir, std::os::fd::OwnedFd) {
    let run = begin(home, &id(1), None);
    let socket = run.listen().expect("it listens");
    assert_eq!(lost(&run), []);
    (run, socket)
}

fn lost(run: &RunDir) -> Vec<Name> {
    run.lost_names(true, true).expect("looked")
}

fn path(home: &Home, name: &str) -> PathBuf {
    home.path().join(name)
}

fn restore(run: &mut RunDir) -> bool {
    let is_moved = run.restore_lock().expect("restored");
    run.list_again().expect("listed");
    is_moved
}

#[test]
fn each_name_is_missed_and_no_other() {
    let id = id(1);
    for (name, file) in [
        (Name::Lock, format!("runs/{id}/lock")),
        (Name::Listing, format!("live/{id}")),
        (Name::Spec, format!("runs/{id}/spec.json")),
        (Name::Record, format!("runs/{id}/record.json")),
        (Name::Socket, format!("runs/{id}/control.sock")),
    ] {
        let home = Home::new();
        let (run, _socket) = whole(&home);
        fs::remove_file(path(&home, &file)).expect("removed");
        assert_eq!(lost(&run), [name], "{file}");
    }
}

/// One name of the lock is enough to give it the other: it is the same lock.
#[test]
fn a_lock_that_has_a_name_is_kept() {
    for file in ["lock", "live"] {
        let home = Home::new();
        let (mut run, _socket) = whole(&home);
        let inode = run.lock_inode();
        let gone = if file == "lock" {
            run.path().join("lock")
        } else {
            path(&home, &format!("live/{}", id(1)))
        };
        fs::remove_file(gone).expect("removed");
        assert!(!restore(&mut run), "{file}");
        assert_eq!((run.lock_inode(), lost(&run)), (inode, vec![]), "{file}");
    }
}

#[test]
fn a_state_directory_that_was_removed_is_made_anew() {
    let home = Home::new();
    let (mut run, _socket) = whole(&home);
    fs::remove_dir_all(home.path()).expect("removed");
    assert!(run.is_removed());
    assert_eq!(lost(&run), [Name::Lock, Name::Listing, Name::Spec, Name::Record, Name::Socket]);
    assert!(restore(&mut run));
    let again = Store::at(home.path()).expect("it is there");
    assert_eq!(again.standing(&id(1)).expect("asked"), Standing::Live);
    assert_eq!(again.live().expect("listed"), [id(1)]);
    assert!(again.take_over(&id(1)).expect("asked").is_none(), "a sweep finds a live run");
    run.finish().expect("finished");
    assert_eq!(again.standing(&id(1)).expect("asked"), Standing::Over);
}

/// Nothing is lost by a move, and nothing is made in the old place.
#[test]
fn a_state_directory_that_was_moved_is_left_alone() {
    let home = Home::new();
    let (run, _socket) = whole(&home);
    let elsewhere = home.path().with_file_name("elsewhere");
    fs::rename(home.path(), &elsewhere).expect("moved");
    assert_eq!(lost(&run), []);
    assert!(!home.path().exists() && !run.is_removed());
}

#[test]
fn what_was_put_away_is_not_missed() {
    let home = Home::new();
    let (mut run, _socket) = whole(&home);
    run.finish().expect("finished");
    assert_eq!(lost(&run), []);
    assert!(names(&home, "live").is_empty());
}

/// The directory may be of somebody else by then, who holds its lock.
#[test]
fn a_place_that_is_taken_is_not_taken_away() {
    let home = Home::new();
    let (mut run, _socket) = whole(&home);
    fs::remove_dir_all(run.path()).expect("removed");
    fs::remove_file(path(&home, &format!("live/{}", id(1)))).expect("removed");
    let mut other = begin(&home, &id(1), None);
    let error = run.restore_lock().expect_err("it is held");
    assert!(matches!(error, StoreError::Live { .. }), "{error:?}");
    other.finish().expect("finished");
    assert!(restore(&mut run));
}
