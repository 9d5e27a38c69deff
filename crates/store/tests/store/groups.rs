//! Groups as directories: what `groups_model` explores, once more with a real kernel.

use crate::kit::{Home, Over, begin, id, live_and_end, names, spec};
use fullstop_core::id::Id;
use fullstop_store::format::SpecFile;
use fullstop_store::{GroupName, Standing, Store, StoreError};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::scope;

fn group(name: &str) -> GroupName {
    name.parse().expect("a name")
}

fn closed(result: Result<(), StoreError>) -> String {
    match result {
        Err(StoreError::GroupClosed(name)) => name,
        other => panic!("{other:?}"),
    }
}

#[test]
fn members_are_those_in_it_and_below() {
    let home = Home::new();
    let mut runs: Vec<_> = (1..=3).map(|day| begin(&home, &id(day), None)).collect();
    for (run, name) in runs.iter_mut().zip(["plan", "plan/research", "planned"]) {
        run.join(&group(name)).expect("joined");
    }
    let members = |name: &str| {
        let mut members = group(name).members(home.root()).expect("listed");
        members.sort();
        members
    };
    assert_eq!(members("plan"), [id(1), id(2)]);
    assert_eq!(members("plan/research"), [id(2)]);
    assert_eq!(members("plan/other"), []);
    let all = GroupName::all(home.root()).expect("all");
    assert_eq!(all, ["plan", "plan/research", "planned"].map(group));
    runs[1].finish().expect("finished");
    assert_eq!(members("plan"), [id(1)]);
}

#[test]
fn a_close_holds_below_and_until_it_is_opened() {
    let home = Home::new();
    let mut run = begin(&home, &id(1), None);
    group("plan").close(home.root()).expect("closed");
    group("plan").close(home.root()).expect("closed twice");
    assert_eq!(closed(run.join(&group("plan/research/deep"))), "plan");
    assert_eq!(closed(run.join(&group("plan"))), "plan");
    assert!(group("plan").members(home.root()).expect("listed").is_empty());
    run.join(&group("planned")).expect("another group");
    group("plan/research").close(home.root()).expect("closed");
    group("plan").open(home.root()).expect("opened");
    assert_eq!(closed(run.join(&group("plan/research/deep"))), "plan/research");
    group("plan/research").open(home.root()).expect("opened");
    run.join(&group("plan/research/deep")).expect("joined");
    group("never/made").open(home.root()).expect("was open");
}

#[test]
fn only_what_is_empty_and_open_is_forgotten() {
    let home = Home::new();
    let mut run = begin(&home, &id(1), None);
    run.join(&group("plan/research")).expect("joined");
    group("shut").close(home.root()).expect("closed");
    let forget = || {
        for group in GroupName::all(home.root()).expect("all").iter().rev() {
            group.forget_if_empty(home.root()).expect("pruned");
        }
        names(&home, "groups")
    };
    assert_eq!(forget(), ["plan", "shut"]);
    assert_eq!(group("plan").members(home.root()).expect("listed"), [id(1)]);
    run.finish().expect("finished");
    assert_eq!(forget(), ["shut"]);
}

/// A run that was restarted into a closed group keeps what its predecessor wrote.
#[test]
fn a_refused_restart_costs_no_history() {
    let home = Home::new();
    live_and_end(&home, &id(1), Some("first"));
    group("plan").close(home.root()).expect("closed");
    let mut next = home.reclaim(&id(1)).expect("claimed");
    next.write_spec(&SpecFile { generation: 2, ..spec(&id(1), Some("first")) }).expect("a spec");
    closed(next.join(&group("plan")));
    next.abandon();
    assert_eq!(home.spec(&id(1)).expect("the first").generation, 1);
    assert!(home.record(&id(1)).expect("the first").state.is_over());
}

/// One joiner's life, again and again, until its group is closed. What it counts as
/// born stands for processes.
fn join_until_closed(
    store: &Store,
    group: &GroupName,
    ids: impl Iterator<Item = Id>,
    (born, over): (&AtomicUsize, &Over),
) {
    for (turn, id) in ids.enumerate() {
        let mut run = begin(store, &id, None);
        let listener = UnixListener::from(run.listen().expect("listening"));
        let late = over.is_said();
        match run.join(group) {
            Ok(()) => {
                assert!(!late, "joined after the close");
                born.fetch_add(1, Ordering::SeqCst);
                // Every other one exits by itself; the rest when they are asked to.
                while turn % 2 > 0 && listener.accept().is_err() && !over.is_said() {
                    std::thread::yield_now();
                }
                born.fetch_sub(1, Ordering::SeqCst);
                run.finish().expect("finished");
            }
            Err(StoreError::GroupClosed(_)) => return run.abandon(),
            Err(error) => panic!("{error}"),
        }
    }
}

/// As `Group::close`: writes, then lists and stops until nobody is found.
fn close(store: &Store, group: &GroupName) {
    // Whoever joins meanwhile is met once, and then refused.
    const ROUNDS: usize = 100;
    group.close(store.root()).expect("closed");
    for _ in 0..ROUNDS {
        let members = group.members(store.root()).expect("listed");
        let live = |id: &&Id| store.standing(id).expect("asked") != Standing::Over;
        let live: Vec<_> = members.iter().filter(live).collect();
        if live.is_empty() {
            return;
        }
        for id in live {
            while store.standing(id).expect("asked") == Standing::Live {
                if let Ok((_held, address)) = store.socket(id) {
                    drop(UnixStream::connect(address));
                }
                std::thread::yield_now();
            }
            // Nobody crashes here.
            assert_eq!(store.standing(id).expect("asked"), Standing::Over);
        }
    }
    panic!("there is always somebody in it");
}

#[test]
fn after_a_close_nobody_is_in_it() {
    const JOINERS: u32 = 4;
    for round in 0..15 {
        let home = Home::new();
        let (inner, outer) = (group("plan/research"), group("plan"));
        let (born, over) = (AtomicUsize::new(0), Over::default());
        let start = Barrier::new(JOINERS as usize + 1);
        scope(|scope| {
            let _end = over.at_end();
            for joiner in 0..JOINERS {
                let ids = (0..).map(move |day| id(u64::from(joiner) * 10_000 + day));
                let group = if joiner == 0 { &outer } else { &inner };
                let (store, start, seen) = (home.again(), &start, (&born, &over));
                scope.spawn(move || {
                    start.wait();
                    join_until_closed(&store, group, ids, seen);
                });
            }
            // Somebody prunes all the while.
            scope.spawn(|| {
                while !over.is_said() {
                    inner.forget_if_empty(home.root()).expect("pruned");
                    outer.forget_if_empty(home.root()).expect("pruned");
                }
            });
            start.wait();
            // Now before, now amid, now after their births.
            while round % 3 > 0 && born.load(Ordering::SeqCst) < round % 5 {
                std::thread::yield_now();
            }
            close(&home, &outer);
            assert_eq!(born.load(Ordering::SeqCst), 0, "alive after the close");
        });
        assert_eq!(born.load(Ordering::SeqCst), 0);
        assert!(outer.members(home.root()).expect("listed").is_empty());
        assert!(home.live().expect("live").is_empty());
        let mut late = begin(&home, &id(90_000), None);
        assert_eq!(closed(late.join(&inner)), "plan");
    }
}

/// A prune beside them makes neither a join nor a close fail.
#[test]
fn a_prune_disturbs_nobody() {
    let home = Home::new();
    let deep = group("a/b/c");
    let over = Over::default();
    scope(|scope| {
        let _end = over.at_end();
        scope.spawn(|| {
            while !over.is_said() {
                for name in deep.line().collect::<Vec<_>>().into_iter().rev() {
                    group(name).forget_if_empty(home.root()).expect("pruned");
                }
            }
        });
        let mut run = begin(&home, &id(1), None);
        let tried = (0..500).try_for_each(|_| {
            run.join(&deep)?;
            assert_eq!(group("a").members(home.root())?, [id(1)]);
            run.finish()?;
            deep.close(home.root())?;
            assert_eq!(deep.closed_by(home.root())?, Some("a/b/c"));
            deep.open(home.root())?;
            run = home.reclaim(&id(1))?;
            Ok::<(), StoreError>(())
        });
        tried.expect("undisturbed");
    });
}
