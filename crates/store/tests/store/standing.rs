//! How a run stands is told by its lock, and by nothing else.

use crate::kit::{Home, begin, id, live_and_end, names};
use fullstop_store::{Standing, StoreError};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use std::process::{Command, Stdio};

#[test]
fn live_lost_and_over() {
    let home = Home::new();
    assert_eq!(home.standing(&id(1)).expect("asked"), Standing::Over);
    let run = begin(&home, &id(1), None);
    assert_eq!(home.again().standing(&id(1)).expect("asked"), Standing::Live);
    drop(run);
    assert_eq!(home.standing(&id(1)).expect("asked"), Standing::Lost);
    assert_eq!(home.live().expect("listed"), [id(1)]);
    let mut swept = home.take_over(&id(1)).expect("asked").expect("ours");
    assert_eq!(home.standing(&id(1)).expect("asked"), Standing::Lost);
    swept.finish().expect("finished");
    assert_eq!(home.standing(&id(1)).expect("asked"), Standing::Over);
    assert_eq!(names(&home, &format!("runs/{}", id(1))), ["record.json", "spec.json"]);
    assert!(names(&home, "live").is_empty());
}

/// The guard has the lock by the fork, and keeps it when the keeper is gone.
#[test]
fn a_lock_that_only_a_child_holds_is_held() {
    let home = Home::new();
    let run = begin(&home, &id(1), None);
    let own = pidfd_open(getpid(), PidfdFlags::empty()).expect("a pidfd");
    let [.., lock] = run.descriptors();
    let copy = pidfd_getfd(&own, lock, PidfdGetfdFlags::empty()).expect("a duplicate");
    let mut child = Command::new("cat")
        .stdin(Stdio::piped())
        .stdout(Stdio::from(copy))
        .spawn()
        .expect("a child");
    drop(run);
    assert_eq!(home.standing(&id(1)).expect("asked"), Standing::Live);
    assert!(home.take_over(&id(1)).expect("asked").is_none());
    assert!(matches!(home.reclaim(&id(1)), Err(StoreError::Live { .. })));
    drop(child.stdin.take());
    child.wait().expect("gone");
    assert_eq!(home.standing(&id(1)).expect("asked"), Standing::Lost);
}

#[test]
fn what_is_live_or_lost_is_not_removed() {
    let home = Home::new();
    let run = begin(&home, &id(1), None);
    for _ in 0..2 {
        let before = names(&home, &format!("runs/{}", id(1)));
        let error = home.remove(&id(1)).expect_err("refused");
        assert!(matches!(error, StoreError::Live { .. }), "{error:?}");
        assert_eq!(names(&home, &format!("runs/{}", id(1))), before);
    }
    drop(run);
    assert!(matches!(home.remove(&id(1)), Err(StoreError::Live { .. })));
    assert_eq!(home.standing(&id(1)).expect("asked"), Standing::Lost);
    live_and_end(&home, &id(2), None);
    home.remove(&id(2)).expect("removed");
    assert_eq!(home.all().expect("all"), [id(1)]);
    assert!(home.remove(&id(2)).expect_err("gone").is_missing());
}

/// No command pays for history. Instead of a clock: with the history moved away,
/// nobody who asks for the live ones can tell.
#[test]
fn the_live_are_listed_without_a_look_at_history() {
    const ENDED: u64 = 10_000;
    let home = Home::new();
    let held: Vec<_> = (0..3).map(|day| begin(&home, &id(day), None)).collect();
    for day in 10..10 + ENDED {
        std::fs::create_dir(home.run_path(&id(day))).expect("a run that was");
    }
    assert_eq!(home.all().expect("all").len() as u64, ENDED + 3);
    std::fs::rename(home.path().join("runs"), home.path().join("away")).expect("moved");
    assert_eq!(home.live().expect("live"), [id(0), id(1), id(2)]);
    for day in 0..3 {
        assert_eq!(home.standing(&id(day)).expect("asked"), Standing::Live);
    }
    drop(held);
}

/// Only what is not there is absent: a lock that cannot be opened may be held.
#[test]
fn what_cannot_be_read_is_no_absence() {
    let home = Home::new();
    let run = begin(&home, &id(1), None);
    std::fs::remove_file(home.path().join(format!("live/{}", id(1)))).expect("removed");
    assert_eq!(home.standing(&id(1)).expect("asked"), Standing::Live, "its lock is held");
    let lock = home.run_path(&id(1)).join("lock");
    std::fs::remove_file(&lock).expect("removed");
    std::os::unix::fs::symlink("lock", &lock).expect("a link to itself");
    home.standing(&id(1)).expect_err("it cannot be told");
    drop(run);
}

/// A directory comes before its listing: what is listed without one was removed.
#[test]
fn a_live_run_without_a_directory_is_there() {
    let home = Home::new();
    assert!(home.is_gone(&id(1)).expect("asked"));
    let run = home.create(&id(1)).expect("begun");
    assert!(!home.is_gone(&id(1)).expect("asked"));
    assert!(home.is_being_born(&id(1)).expect("asked"), "its spec is still to come");
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_hours(1);
    let lock = std::fs::File::open(home.run_path(&id(1)).join("lock")).expect("its lock");
    lock.set_modified(long_ago).expect("an age");
    assert!(!home.is_being_born(&id(1)).expect("asked"), "its spec was removed");
    std::fs::remove_dir_all(home.run_path(&id(1))).expect("removed");
    assert!(!home.is_gone(&id(1)).expect("asked"), "it is listed");
    assert!(!home.is_being_born(&id(1)).expect("asked"));
    assert_eq!(home.standing(&id(1)).expect("asked"), Standing::Live);
    drop(run);
}
