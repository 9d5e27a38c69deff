//! Many who want one run. Each ends with exactly one of them, or with nobody.

use crate::kit::{Home, Over, begin, id, live_and_end, names, spec};
use fullstop_store::format::SpecFile;
use fullstop_store::{RunDir, Standing, Store, StoreError};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::scope;

const CROWD: usize = 6;
const ROUNDS: usize = 60;

/// Lets everybody loose at once; returns what each got.
fn at_once<T: Send>(home: &Home, act: impl Fn(&Store) -> T + Sync) -> Vec<T> {
    let start = Barrier::new(CROWD);
    scope(|scope| {
        let one = || {
            let store = home.again();
            start.wait();
            act(&store)
        };
        let all: Vec<_> = (0..CROWD).map(|_| scope.spawn(one)).collect();
        all.into_iter().map(|one| one.join().expect("no panic")).collect()
    })
}

/// The lock that others find is the one that is held.
fn is_whole(store: &Store, run: &RunDir) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let inode = |path: std::path::PathBuf| std::fs::metadata(path).map(|meta| meta.ino()).ok();
    let [.., lock] = run.descriptors();
    let held = inode(format!("/proc/self/fd/{lock}").into());
    held.is_some()
        && held == inode(run.path().join("lock"))
        && held == inode(store.path().join(format!("live/{}", run.id())))
}

#[test]
fn one_of_many_creates() {
    let home = Home::new();
    for round in 0..ROUNDS as u64 {
        let won = at_once(&home, |store| store.create(&id(round)));
        let won: Vec<_> = won.into_iter().flatten().collect();
        assert_eq!(won.len(), 1);
        assert!(is_whole(&home, &won[0]));
    }
}

/// Even where there is no directory of runs yet.
#[test]
fn the_first_ones_do_not_disturb_each_other() {
    for _ in 0..ROUNDS {
        let home = Home::new();
        let day = AtomicUsize::new(0);
        let made = at_once(&home, |store| {
            store.create(&id(day.fetch_add(1, Ordering::Relaxed) as u64)).map(drop)
        });
        assert!(made.iter().all(Result::is_ok), "{made:?}");
    }
}

#[test]
fn one_of_many_begins_the_next_generation() {
    let home = Home::new();
    live_and_end(&home, &id(1), None);
    for _ in 0..ROUNDS {
        let won = at_once(&home, |store| store.reclaim(&id(1)));
        assert!(won.iter().all(|won| matches!(won, Ok(_) | Err(StoreError::Live { .. }))));
        let mut won: Vec<_> = won.into_iter().flatten().collect();
        assert_eq!(won.len(), 1);
        assert!(is_whole(&home, &won[0]));
        won[0].finish().expect("finished");
    }
}

/// Whoever finishes removes the lock; a claim must never hold what was removed.
#[test]
fn a_claim_never_holds_a_lock_without_a_name() {
    let home = Home::new();
    live_and_end(&home, &id(1), None);
    let holders = AtomicUsize::new(0);
    let claimed = at_once(&home, |store| {
        let mut claimed = 0;
        for _ in 0..ROUNDS {
            match store.reclaim(&id(1)) {
                Ok(mut run) => {
                    assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0, "two hold it");
                    assert!(is_whole(store, &run), "held without a name");
                    claimed += 1;
                    holders.fetch_sub(1, Ordering::SeqCst);
                    run.finish().expect("finished");
                }
                Err(StoreError::Live { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
        claimed
    });
    assert!(claimed.iter().sum::<usize>() > 0);
    assert_eq!(names(&home, &format!("runs/{}", id(1))), ["record.json", "spec.json"]);
}

/// The same against those who sweep what was left.
#[test]
fn a_claim_and_a_sweep_never_meet() {
    /// Only a mistake needs so many tries.
    const TRIES: usize = 100_000;
    let home = Home::new();
    live_and_end(&home, &id(1), None);
    let (holders, claimed, turn) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let broken = AtomicUsize::new(0);
    let alone = |store: &Store, run: &RunDir| {
        let alone = holders.fetch_add(1, Ordering::SeqCst) == 0 && is_whole(store, run);
        broken.fetch_add(usize::from(!alone), Ordering::SeqCst);
        holders.fetch_sub(1, Ordering::SeqCst);
    };
    // Each claim is left behind, and the next one needs a sweep before it.
    let claim = |store: &Store| match store.reclaim(&id(1)) {
        Ok(run) => {
            alone(store, &run);
            claimed.fetch_add(1, Ordering::SeqCst);
        }
        Err(StoreError::Live { .. }) => std::thread::yield_now(),
        Err(error) => panic!("{error}"),
    };
    let sweep = |store: &Store| match store.take_over(&id(1)).expect("asked") {
        Some(mut run) => {
            alone(store, &run);
            run.finish().expect("finished");
        }
        None => std::thread::yield_now(),
    };
    at_once(&home, |store| {
        let sweeps = turn.fetch_add(1, Ordering::Relaxed).is_multiple_of(2);
        for _ in 0..TRIES {
            let done = claimed.load(Ordering::SeqCst) >= ROUNDS * 4;
            if done || broken.load(Ordering::SeqCst) > 0 {
                return;
            }
            if sweeps { sweep(store) } else { claim(store) }
        }
        panic!("nobody gets on");
    });
    assert_eq!(broken.into_inner(), 0, "held by two, or without a name");
}

#[test]
fn one_of_many_takes_over() {
    let home = Home::new();
    for round in 0..ROUNDS as u64 {
        let run = begin(&home, &id(round), None);
        assert!(home.take_over(&id(round)).expect("asked").is_none());
        drop(run);
        let won = at_once(&home, |store| store.take_over(&id(round)).expect("asked"));
        let mut won: Vec<_> = won.into_iter().flatten().collect();
        assert_eq!(won.len(), 1);
        assert!(home.take_over(&id(round)).expect("asked").is_none());
        // A restart comes after the sweep.
        assert!(matches!(home.reclaim(&id(round)), Err(StoreError::Live { .. })));
        won[0].finish().expect("finished");
    }
}

#[test]
fn nobody_takes_over_while_it_is_held() {
    let home = Home::new();
    let run = begin(&home, &id(1), None);
    let lost = at_once(&home, |store| {
        (0..ROUNDS).any(|_| store.take_over(&id(1)).expect("asked").is_some())
    });
    assert!(lost.iter().all(|lost| !lost));
    drop(run);
}

/// What was put away is no sweep's business, even if somebody begins it anew.
#[test]
fn a_sweep_that_comes_late_finds_nothing() {
    let home = Home::new();
    drop(begin(&home, &id(1), None));
    home.take_over(&id(1)).expect("asked").expect("ours").finish().expect("finished");
    assert!(home.take_over(&id(1)).expect("asked").is_none());
    // A lock that is not listed: somebody is about to claim it.
    std::fs::write(home.run_path(&id(1)).join("lock"), b"").expect("a lock");
    assert!(home.take_over(&id(1)).expect("asked").is_none());
    home.reclaim(&id(1)).expect("claimed");
}

/// A guard that finishes what its keeper has finished already leaves the next
/// generation alone.
#[test]
fn whoever_is_late_does_not_finish_the_next_generation() {
    let home = Home::new();
    let mut old = begin(&home, &id(1), None);
    old.finish().expect("finished");
    let new = home.reclaim(&id(1)).expect("claimed");
    let socket = new.listen().expect("listening");
    old.finish().expect("nothing to do");
    assert!(is_whole(&home, &new));
    assert!(new.path().join("control.sock").exists());
    assert_eq!(home.standing(&id(1)).expect("asked"), Standing::Live);
    drop(socket);
}

/// A restart right behind a stop meets the old keeper on its last steps.
#[test]
fn a_claim_waits_for_whoever_is_about_to_let_go() {
    let home = Home::new();
    let mut old = begin(&home, &id(1), None);
    let lock = old.path().join("lock");
    let openers = || {
        let held = std::fs::read_dir("/proc/self/fd").expect("descriptors").flatten();
        held.filter(|fd| std::fs::read_link(fd.path()).is_ok_and(|path| path == lock)).count()
    };
    std::fs::remove_file(home.path().join(format!("live/{}", id(1)))).expect("put away");
    scope(|scope| {
        let claimer = scope.spawn(|| home.again().reclaim(&id(1)));
        while openers() < 2 && !claimer.is_finished() {
            std::thread::yield_now();
        }
        old.finish().expect("finished");
        drop(old);
        claimer.join().expect("no panic").expect("claimed");
    });
}

#[test]
fn a_generation_that_never_began_leaves_its_predecessor() {
    let home = Home::new();
    live_and_end(&home, &id(1), Some("first"));
    let (record, before) = (home.record(&id(1)), names(&home, &format!("runs/{}", id(1))));
    let next = home.reclaim(&id(1)).expect("claimed");
    next.write_spec(&SpecFile { generation: 2, ..spec(&id(1), Some("second")) }).expect("a spec");
    let socket = next.listen().expect("listening");
    next.abandon();
    drop(socket);
    assert_eq!(home.spec(&id(1)).expect("the first"), spec(&id(1), Some("first")));
    assert_eq!(home.record(&id(1)).expect("the first"), record.expect("a record"));
    assert_eq!(names(&home, &format!("runs/{}", id(1))), before);
    assert_eq!(home.standing(&id(1)).expect("asked"), Standing::Over);
    // One that had none leaves nothing.
    let first = begin(&home, &id(2), None);
    first.abandon();
    assert_eq!(home.all().expect("all"), [id(1)]);
}

/// Removing and restarting: one comes first, and the other is told.
#[test]
fn what_is_being_restarted_is_not_removed() {
    for _ in 0..ROUNDS {
        let home = Home::new();
        live_and_end(&home, &id(1), None);
        let start = Barrier::new(2);
        let (claimed, removed) = scope(|scope| {
            let claimer = scope.spawn(|| {
                let store = home.again();
                start.wait();
                store.reclaim(&id(1))
            });
            start.wait();
            let removed = home.remove(&id(1));
            (claimer.join().expect("no panic"), removed)
        });
        match (claimed, removed) {
            (Ok(run), Err(StoreError::Live { .. })) => {
                assert!(is_whole(&home, &run));
                assert!(home.spec(&id(1)).is_ok(), "a live run has lost its spec");
            }
            (Err(_), Ok(())) => assert!(home.all().expect("all").is_empty()),
            other => panic!("{other:?}"),
        }
    }
}

/// A prune that takes a new directory for a leaving does not prevent the run.
#[test]
fn what_is_being_begun_survives_a_prune() {
    let home = Home::new();
    let over = Over::default();
    scope(|scope| {
        let _end = over.at_end();
        scope.spawn(|| {
            let store = home.again();
            while !over.is_said() {
                for id in store.all().unwrap_or_default() {
                    let _ = store.remove(&id);
                }
            }
        });
        let failed = (0..ROUNDS as u64 * 4).find_map(|day| match home.create(&id(day)) {
            Ok(run) if is_whole(&home, &run) => {
                run.abandon();
                None
            }
            other => Some(other),
        });
        assert!(failed.is_none(), "{failed:?}");
    });
}
