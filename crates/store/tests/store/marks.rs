//! The marks of groups, and their generations: a start that is late is refused.

use crate::disk::{fill, is_full, on_disk};
use crate::kit::{Home, begin, id, names};
use fullstop_protocol::GroupGenerations;
use fullstop_store::{GroupName, Store, StoreError};
use proptest::prelude::*;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::PathBuf;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::scope;
use std::time::Duration;

const INNER: &str = "plan/research";

fn group(name: &str) -> GroupName {
    name.parse().expect("a name")
}

fn mark(home: &Home, group: &str, name: &str) -> PathBuf {
    home.path().join("groups").join(group).join(name)
}

fn seen(home: &Home) -> GroupGenerations {
    group(INNER).ask(home.root()).expect("open").generations
}

fn close(home: &Home, name: &str) {
    group(name).close(home.root()).expect("closed");
}

fn open(home: &Home, name: &str) {
    group(name).open(home.root()).expect("opened");
}

fn prune(home: &Home) {
    for name in [INNER, "plan"] {
        group(name).forget_if_empty(home.root()).expect("pruned");
    }
}

/// A start that saw this comes to its birth only now.
fn join(home: &Home, seen: &GroupGenerations) -> Result<(), StoreError> {
    static DAY: AtomicU64 = AtomicU64::new(0);
    let id = id(DAY.fetch_add(1, Ordering::Relaxed));
    let mut run = begin(home, &id, None);
    let joined = run.join_as_asked(&group(INNER), seen);
    let members = group(INNER).members(home.root()).expect("listed");
    assert_eq!(members.contains(&id), joined.is_ok(), "a member, or refused");
    run.finish().expect("finished");
    joined
}

/// Which group it was refused by, though that is open.
fn late(joined: Result<(), StoreError>) -> String {
    match joined {
        Err(StoreError::GroupClosedMeanwhile(name)) => name,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_start_that_saw_the_group_before_a_close_is_refused_after_it_is_opened() {
    for name in ["plan", INNER] {
        let home = Home::new();
        let before = seen(&home);
        join(&home, &before).expect("nothing has happened");
        close(&home, name);
        assert!(matches!(join(&home, &before), Err(StoreError::GroupClosed(_))));
        open(&home, name);
        assert_eq!(late(join(&home, &before)), name);
        join(&home, &seen(&home)).expect("asked for afterwards");
        // However often it goes on.
        close(&home, name);
        open(&home, name);
        assert_eq!(late(join(&home, &before)), name);
    }
}

/// A prune must not have a start refused that is under way, however late it is.
#[test]
fn a_prune_leaves_a_group_in_which_a_start_is_under_way() {
    let home = Home::new();
    let asked = group(INNER).ask(home.root()).expect("open");
    prune(&home);
    join(&home, &asked.generations).expect("not disturbed");
    prune(&home);
    assert_eq!(names(&home, "groups"), ["plan"], "it is still under way");
    drop(asked);
    prune(&home);
    assert!(names(&home, "groups").is_empty());
}

/// A prune that hangs in the middle holds up no start.
#[test]
fn a_prune_that_hangs_is_not_waited_for() {
    let home = Home::new();
    let before = seen(&home);
    let hung = std::fs::File::open(mark(&home, INNER, ".open")).expect("a mark");
    rustix::fs::flock(&hung, rustix::fs::FlockOperation::LockExclusive).expect("locked");
    assert_eq!(seen(&home), before);
    close(&home, INNER);
    open(&home, INNER);
    late(join(&home, &before));
}

#[test]
fn what_was_closed_and_then_forgotten_is_no_group_that_was_seen() {
    let home = Home::new();
    let before = seen(&home);
    close(&home, "plan");
    open(&home, "plan");
    prune(&home);
    assert!(names(&home, "groups").is_empty());
    late(join(&home, &before));
    let anew = seen(&home);
    late(join(&home, &before));
    join(&home, &anew).expect("seen anew");
}

/// Several starts that make a group at once must not refuse each other.
#[test]
fn starts_that_make_a_group_at_once_see_one_generation() {
    const STARTS: usize = 8;
    for _ in 0..20 {
        let home = Home::new();
        let start = Barrier::new(STARTS);
        let all: Vec<GroupGenerations> = scope(|scope| {
            let ask = || {
                let store = home.again();
                start.wait();
                group(INNER).ask(store.root()).expect("open").generations
            };
            let asked: Vec<_> = (0..STARTS).map(|_| scope.spawn(ask)).collect();
            asked.into_iter().map(|asked| asked.join().expect("asked")).collect()
        });
        assert!(all.iter().all(|seen| *seen == all[0]), "{all:?}");
        assert_eq!(names(&home, "groups"), ["plan"], "something was left");
    }
}

/// A close makes nothing: on a full disk it has all that it needs.
#[test]
fn a_close_renames_the_mark_that_was_made_at_the_first_join() {
    let home = Home::new();
    let mut run = begin(&home, &id(1), None);
    run.join(&group(INNER)).expect("joined");
    for name in ["plan", INNER] {
        let made = mark(&home, name, ".open").metadata().expect("a mark");
        close(&home, name);
        let closed = mark(&home, name, ".closed").metadata().expect("the mark");
        assert_eq!(
            (made.ino(), made.len(), made.blocks()),
            (closed.ino(), closed.len(), closed.blocks())
        );
        assert!(!mark(&home, name, ".open").exists());
        open(&home, name);
    }
    // Where only one below it was joined, it has its mark as well, and nothing else.
    assert_eq!(names(&home, "groups/plan"), [".open", "research"]);
    assert_eq!(names(&home, "groups/plan/research"), [".members", ".open"]);
}

/// Of two that open a group, one may sleep with the mark in its hands until the other has opened
/// it, a start has seen that, and a close has come. So a mark is never written to, and none comes
/// back.
#[test]
fn a_mark_that_was_closed_is_left_as_it_is_and_does_not_come_back() {
    let home = Home::new();
    seen(&home);
    close(&home, INNER);
    let closed = std::fs::File::open(mark(&home, INNER, ".closed")).expect("a mark");
    let before = std::io::read_to_string(&closed).expect("read");
    open(&home, INNER);
    let mut now = vec![0; before.len()];
    closed.read_exact_at(&mut now, 0).expect("read");
    assert_eq!(String::from_utf8_lossy(&now), before);
    assert_eq!(closed.metadata().expect("looked").nlink(), 0, "it is in place again");
    assert_eq!(names(&home, "groups"), ["plan"], "something was left");
}

#[test]
fn a_group_is_closed_and_opened_on_a_full_disk() {
    let test = "marks::a_group_is_closed_and_opened_on_a_full_disk";
    let Some(dir) = on_disk(test, "mount -t tmpfs -o size=64k,mode=700 none \"$DIR\"") else {
        return;
    };
    let (store, inner) = (Store::at(&dir).expect("a store"), group(INNER));
    let before = inner.ask(store.root()).expect("open").generations;
    let ballast = fill(&dir);
    inner.close(store.root()).expect("closed");
    // While this is held, removing the mark makes no room for the next one.
    let _held = std::fs::File::open(dir.join("groups").join(INNER).join(".closed"));
    inner.open(store.root()).expect("opened");
    assert_eq!(inner.closed_by(store.root()).expect("looked"), None);
    is_full(inner.ask(store.root()));
    std::fs::remove_file(ballast).expect("removed");
    assert_ne!(inner.ask(store.root()).expect("open").generations, before);
}

/// A process that makes the mark late, after a close, leaves both.
#[test]
fn a_group_with_both_marks_is_closed() {
    let home = Home::new();
    let before = seen(&home);
    let half_open = || {
        close(&home, INNER);
        std::fs::write(mark(&home, INNER, ".open"), "another").expect("a second mark");
        assert!(matches!(group(INNER).ask(home.root()), Err(StoreError::GroupClosed(_))));
        assert!(matches!(join(&home, &before), Err(StoreError::GroupClosed(_))));
        prune(&home);
    };
    half_open();
    close(&home, INNER);
    assert_eq!(names(&home, "groups/plan/research"), [".closed", ".members"]);
    half_open();
    open(&home, INNER);
    assert!(!mark(&home, INNER, ".closed").exists());
    late(join(&home, &before));
    join(&home, &seen(&home)).expect("asked for afterwards");
}

/// Until now a group that was open had no mark, and that of a closed one was empty.
#[test]
fn groups_of_an_older_version() {
    let home = Home::new();
    std::fs::create_dir_all(home.path().join("groups/plan/.members")).expect("an old group");
    std::fs::create_dir_all(home.path().join("groups/shut/.members")).expect("an old group");
    std::fs::write(mark(&home, "shut", ".closed"), "").expect("an old mark");
    let shut = || group("shut").ask(home.root()).map(|asked| asked.generations);
    assert!(matches!(shut(), Err(StoreError::GroupClosed(name)) if name == "shut"));
    close(&home, "shut");
    open(&home, "shut");
    let before = shut().expect("open");
    // One that is open gets its mark when it is joined, or else when it is closed.
    close(&home, "plan");
    assert_eq!(group(INNER).closed_by(home.root()).expect("looked"), Some("plan"));
    open(&home, "plan");
    join(&home, &seen(&home)).expect("joined");
    // An older version closes one by a second file, and opens it by removing that.
    std::fs::write(mark(&home, "shut", ".closed"), "").expect("closed by an older version");
    assert!(matches!(shut(), Err(StoreError::GroupClosed(_))));
    open(&home, "shut");
    assert_eq!(names(&home, "groups/shut"), [".members", ".open"]);
    assert_ne!(shut().expect("open"), before);
}

/// A process that is killed while it makes a mark leaves it half made beside the groups.
#[test]
fn what_a_killed_maker_has_left_is_removed_once_it_is_old() {
    let home = Home::new();
    seen(&home);
    let (old, young) = (mark(&home, "", ".new-old"), mark(&home, "", ".new-young"));
    for path in [&old, &young] {
        std::fs::write(path, "half").expect("left");
    }
    let long_ago = std::time::SystemTime::now() - Duration::from_mins(1);
    let file = std::fs::File::options().write(true).open(&old).expect("left");
    file.set_modified(long_ago).expect("aged");
    GroupName::tidy(home.root()).expect("tidied");
    assert!(!old.exists() && young.exists());
    assert!(mark(&home, "plan", ".open").exists());
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Ask(usize),
    Join(usize),
    Close(&'static str),
    Open(&'static str),
    Prune,
}

fn step() -> impl Strategy<Value = Step> {
    let place = || prop::sample::select(vec!["plan", INNER]);
    prop_oneof![
        (0..3usize).prop_map(Step::Ask),
        (0..3usize).prop_map(Step::Join),
        place().prop_map(Step::Close),
        place().prop_map(Step::Open),
        Just(Step::Prune),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Whatever was done in between: a start is born exactly if its groups are open, and
    /// neither was closed or forgotten since it was asked for.
    #[test]
    fn a_start_is_born_only_into_what_it_saw(steps in prop::collection::vec(step(), 1..40)) {
        let home = Home::new();
        // What each has seen, and whether that still holds.
        let mut starts: [Option<(GroupGenerations, bool)>; 3] = Default::default();
        let mut closed: Vec<&str> = Vec::new();
        for step in steps {
            match step {
                Step::Ask(who) => {
                    let asked = group(INNER).ask(home.root()).map(|asked| asked.generations);
                    prop_assert_eq!(asked.is_ok(), closed.is_empty());
                    starts[who] = asked.ok().map(|seen| (seen, true));
                }
                Step::Join(who) => {
                    let Some((seen, holds)) = &starts[who] else { continue };
                    let joined = join(&home, seen);
                    prop_assert_eq!(joined.is_ok(), *holds && closed.is_empty(), "{:?}", joined);
                }
                Step::Close(name) => {
                    close(&home, name);
                    starts.iter_mut().flatten().for_each(|(_, holds)| *holds = false);
                    closed.retain(|other| *other != name);
                    closed.push(name);
                }
                Step::Open(name) => {
                    open(&home, name);
                    closed.retain(|other| *other != name);
                }
                Step::Prune => {
                    prune(&home);
                    if !mark(&home, INNER, ".open").exists() {
                        starts.iter_mut().flatten().for_each(|(_, holds)| *holds = false);
                    }
                }
            }
        }
    }
}
