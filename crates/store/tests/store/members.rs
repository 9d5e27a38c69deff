//! The file of the members: what it costs, and that nobody is read from it who was not
//! written to it.

use crate::disk::{fill, is_full, on_disk};
use crate::kit::{Home, begin, id, names, record};
use fullstop_core::identity::Identity;
use fullstop_protocol::{Record, RunState};
use fullstop_store::{KnownMembers, LostMembers, MemberFile, RunDir, Store};
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::path::PathBuf;

const SLOT: usize = 32;

/// Whoever is known by a number.
fn one(number: u64) -> Identity {
    let inode = (!number.is_multiple_of(5)).then_some(number + 7_000_000_000);
    let pid = i32::try_from(number % 50 + 300).expect("a pid");
    Identity { pid, start_ticks: number, inode }
}

fn ones(numbers: impl IntoIterator<Item = u64>) -> Vec<Identity> {
    numbers.into_iter().map(one).collect()
}

/// A run whose record names a file of members.
struct Stage {
    home: Home,
    run: RunDir,
    record: Record,
    members: MemberFile,
}

impl Stage {
    fn new() -> Stage {
        let home = Home::new();
        let run = begin(&home, &id(1), None);
        let record = Record { has_members_file: true, ..record(&id(1), RunState::Running) };
        Stage { home, run, record, members: MemberFile::new(&id(1), 1) }
    }

    fn write(&mut self, numbers: impl IntoIterator<Item = u64>) {
        self.members.update(ones(numbers));
        self.run.write_members(&mut self.members).expect("written");
    }

    fn read(&self) -> KnownMembers {
        self.home.members(&self.record).expect("a directory")
    }

    fn path(&self) -> PathBuf {
        self.run.path().join("members")
    }

    fn bytes(&self) -> Vec<u8> {
        std::fs::read(self.path()).expect("a file")
    }

    /// What is read if these bytes are in the file.
    fn read_from(&self, bytes: &[u8]) -> KnownMembers {
        std::fs::write(self.path(), bytes).expect("written");
        self.read()
    }
}

fn sorted(identities: &[Identity]) -> Vec<Identity> {
    let mut sorted = identities.to_vec();
    sorted.sort_unstable_by_key(|one| one.start_ticks);
    sorted
}

/// What this thread has written until now, in bytes.
fn bytes_written() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/io").expect("the kernel counts");
    let line = text.lines().find_map(|line| line.strip_prefix("wchar:")).expect("a count");
    line.trim().parse().expect("a number")
}

#[test]
fn a_change_costs_its_slot_alone() {
    let mut stage = Stage::new();
    stage.write(0..1000);
    for departed in [0, 17, 999] {
        let before = bytes_written();
        // Its place is taken by one that has just come.
        stage.write((0..1000).filter(|&number| number != departed).chain([1000]));
        assert_eq!(bytes_written() - before, SLOT as u64, "instead of {departed}");
        stage.write(0..1000);
    }
    let before = bytes_written();
    stage.write((0..1000).rev());
    assert_eq!(bytes_written(), before, "nobody came or went");
}

#[test]
fn neighbours_are_written_at_once() {
    let calls = || {
        let text = std::fs::read_to_string("/proc/thread-self/io").expect("the kernel counts");
        let line = text.lines().find_map(|line| line.strip_prefix("syscw:")).expect("a count");
        line.trim().parse::<u64>().expect("a number")
    };
    let mut stage = Stage::new();
    stage.write([0]);
    let before = calls();
    stage.write(0..1000);
    assert_eq!(calls() - before, 1);
}

#[test]
fn there_is_no_file_before_the_first_member() {
    let mut stage = Stage::new();
    stage.write([]);
    assert!(!stage.members.is_begun() && !stage.path().exists());
    // Until the record names it, it may not have been written yet.
    stage.record.has_members_file = false;
    assert!(stage.read().lost.is_none());
    stage.write([1]);
    assert!(stage.members.is_begun());
    assert_eq!(stage.read().identities, ones([1]));
}

#[test]
fn the_file_shrinks_with_its_crowd() {
    let mut stage = Stage::new();
    stage.write(0..1000);
    stage.write([]);
    assert_eq!(stage.bytes().len(), 2 * SLOT, "header and end");
    assert!(stage.read().identities.is_empty() && stage.read().lost.is_none());
    stage.write([5]);
    assert_eq!(stage.read().identities, ones([5]));
}

/// Somebody removes, cuts or replaces the file of a live run.
#[test]
fn what_vanishes_is_written_again() {
    let elsewhere = crate::kit::Scratch::new();
    let target = elsewhere.path().join("not-ours");
    std::fs::write(&target, "untouched").expect("written");
    let mut stage = Stage::new();
    stage.write(0..100);
    let path = stage.path();
    let link = || std::os::unix::fs::symlink(&target, &path).expect("linked");
    let remove = || std::fs::remove_file(&path).expect("removed");
    let harms: [(&str, &dyn Fn()); 4] = [
        ("removed", &remove),
        ("cut", &|| std::fs::write(&path, "").expect("cut")),
        ("a link", &|| (remove(), link()).1),
        ("another", &|| (remove(), std::fs::write(&path, vec![0; 9000]).expect("written")).1),
    ];
    for (what, harm) in harms {
        harm();
        stage.write(0..100);
        assert_eq!(sorted(&stage.read().identities), ones(0..100), "{what}");
        assert!(stage.read().lost.is_none(), "{what}");
    }
    assert_eq!(std::fs::read(&target).expect("read"), b"untouched");
}

#[test]
fn what_is_not_whole_says_so() {
    let mut stage = Stage::new();
    stage.write(0..4);
    let whole = stage.bytes();
    let lost = |stage: &Stage, bytes: &[u8]| stage.read_from(bytes).lost;
    assert!(matches!(lost(&stage, &[]), Some(LostMembers::Header)));
    assert!(matches!(lost(&stage, &whole[..31]), Some(LostMembers::Header)));
    let mut zeroed = whole.clone();
    zeroed[SLOT..2 * SLOT].fill(0);
    assert!(matches!(lost(&stage, &zeroed), Some(LostMembers::Slots(1))));
    // A slot that was copied to another place is nobody's.
    let mut moved = whole.clone();
    moved.copy_within(SLOT..2 * SLOT, 2 * SLOT);
    assert!(matches!(lost(&stage, &moved), Some(LostMembers::Slots(1))));
    let mut newer = whole.clone();
    newer[8] = 2;
    assert!(matches!(lost(&stage, &newer), Some(LostMembers::Newer(2))));
    let sparse = std::fs::File::create(stage.path()).expect("a file");
    std::io::Write::write_all(&mut &sparse, &whole).expect("written");
    sparse.set_len(1 << 40).expect("a hole");
    assert!(stage.read().lost.is_none(), "what comes behind the end is nothing");
    sparse.set_len(4 * SLOT as u64).expect("cut");
    sparse.set_len(1 << 40).expect("a hole");
    assert!(matches!(stage.read().lost, Some(LostMembers::TooLong)));
    for length in SLOT..whole.len() {
        assert!(matches!(lost(&stage, &whole[..length]), Some(LostMembers::Cut)), "{length}");
    }
    // Until the record names the file, a kill may have cut its first write short.
    stage.record.has_members_file = false;
    assert!(lost(&stage, &whole[..2 * SLOT]).is_none());
    stage.record.has_members_file = true;
    std::fs::remove_file(stage.path()).expect("removed");
    assert!(matches!(stage.read().lost, Some(LostMembers::Missing)));
    std::fs::create_dir(stage.path()).expect("a directory");
    assert!(matches!(stage.read().lost, Some(LostMembers::Unreadable(_))));
}

#[test]
fn generations_do_not_mix() {
    let mut stage = Stage::new();
    stage.write(0..4);
    stage.record.generation = 2;
    let read = stage.read();
    assert!(read.identities.is_empty());
    assert!(matches!(read.lost, Some(LostMembers::OtherGeneration(1))));
    // It has not written its own yet.
    stage.record.has_members_file = false;
    assert!(stage.read().identities.is_empty() && stage.read().lost.is_none());
    stage.record.has_members_file = true;
    stage.members = MemberFile::new(&id(1), 2);
    stage.write([9]);
    assert_eq!(stage.read().identities, ones([9]));
    // Nor do runs.
    let bytes = stage.bytes();
    stage.record.id = id(2);
    let _other = begin(&stage.home, &id(2), None);
    let path = stage.home.run_path(&id(2)).join("members");
    std::fs::write(path, bytes).expect("copied");
    assert!(stage.read().identities.is_empty());
    assert!(matches!(stage.read().lost, Some(LostMembers::Header)));
}

#[test]
fn leader_and_members_are_known_once() {
    let mut stage = Stage::new();
    stage.record.leader = Some(one(1));
    // As records of before had it.
    stage.record.census = ones([1, 2]);
    stage.record.has_members_file = false;
    assert_eq!(stage.read().identities, ones([1, 2]));
    assert!(stage.read().lost.is_none());
}

#[test]
fn what_is_over_has_no_members() {
    for by_sweep in [false, true] {
        let mut stage = Stage::new();
        stage.write(0..4);
        let Stage { home, mut run, .. } = stage;
        if by_sweep {
            drop(run);
            run = home.take_over(&id(1)).expect("looked at").expect("lost");
        }
        run.finish().expect("finished");
        assert_eq!(names(&home, &format!("runs/{}", id(1))), ["record.json", "spec.json"]);
    }
}

#[test]
fn a_full_disk_is_tried_again() {
    let test = "members::a_full_disk_is_tried_again";
    let Some(dir) = on_disk(test, "mount -t tmpfs -o size=128k,mode=700 none \"$DIR\"") else {
        return;
    };
    let store = Store::at(&dir).expect("a store");
    let run = begin(&store, &id(1), None);
    let record = Record { has_members_file: true, ..record(&id(1), RunState::Running) };
    let read = || store.members(&record).expect("a directory");
    let mut members = MemberFile::new(&id(1), 1);
    members.update(ones(0..10));
    run.write_members(&mut members).expect("written");
    let ballast = fill(&dir);
    members.update(ones(0..2000));
    is_full(run.write_members(&mut members));
    assert!(members.is_behind());
    // What could not be written hides none of what could, and is missed.
    let known: BTreeSet<u64> = read().identities.iter().map(|one| one.start_ticks).collect();
    assert!((0..10).all(|number| known.contains(&number)), "{known:?}");
    assert!(matches!(read().lost, Some(LostMembers::Cut)));
    std::fs::remove_file(ballast).expect("room");
    run.write_members(&mut members).expect("written");
    assert!(!members.is_behind());
    assert_eq!(sorted(&read().identities), ones(0..2000));
}

/// Who is there, time after time.
fn crowds() -> impl Strategy<Value = Vec<BTreeSet<u64>>> {
    vec(btree_set(0..60_u64, 0..60), 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// What is read is what was last written, and it has cost a slot for each who came or
    /// went at most, and one for the end.
    #[test]
    fn the_file_follows_its_crowd(crowds in crowds()) {
        let mut stage = Stage::new();
        let mut before = BTreeSet::new();
        for now in crowds {
            let written = bytes_written();
            let header = usize::from(!stage.members.is_begun());
            stage.write(now.iter().copied());
            let changed = before.symmetric_difference(&now).count();
            let cost = usize::try_from(bytes_written() - written).expect("few");
            let most = if changed == 0 { 0 } else { SLOT * (header + changed + 1) };
            prop_assert!(cost <= most, "{cost} bytes for {changed} changes");
            if stage.members.is_begun() {
                prop_assert_eq!(sorted(&stage.read().identities), ones(now.iter().copied()));
                prop_assert!(stage.read().lost.is_none());
            }
            before = now;
        }
    }

    /// A write that was cut short anywhere, between any two states, names nobody else; and
    /// it says so unless each slot is as it was before or after.
    #[test]
    fn what_is_torn_names_nobody_else(
        [before, after] in [btree_set(0..60_u64, 1..60), btree_set(0..60_u64, 1..60)],
        pieces in vec((0..3_u8, 1..100_usize), 1..60),
    ) {
        let mut stage = Stage::new();
        stage.write(before.iter().copied());
        let old = stage.bytes();
        stage.write(after.iter().copied());
        let new = stage.bytes();
        let mut torn = Vec::new();
        // Of the old one, of the new one, or zeros as after a power cut.
        for (of, length) in pieces.into_iter().cycle() {
            let from = torn.len();
            if from >= old.len().max(new.len()) {
                break;
            }
            let source = [&old, &new].get(usize::from(of)).copied();
            let byte = |at: usize| source.and_then(|source| source.get(at)).copied();
            torn.extend((from..from + length).map(|at| byte(at).unwrap_or_default()));
        }
        let read = stage.read_from(&torn);
        let all: BTreeSet<u64> = before.union(&after).copied().collect();
        for identity in &read.identities {
            prop_assert!(all.contains(&identity.start_ticks), "{identity:?} was never written");
            prop_assert_eq!(*identity, one(identity.start_ticks));
        }
        let is_whole = |(at, bytes): (usize, &[u8])| {
            let place = at * SLOT..(at + 1) * SLOT;
            [&old, &new].iter().any(|whole| whole.get(place.clone()) == Some(bytes))
        };
        let ends = [&old, &new].map(|whole| whole.chunks_exact(SLOT).enumerate().next_back());
        let end = torn.chunks_exact(SLOT).enumerate().position(|block| ends.contains(&Some(block)));
        let blocks = |end: usize| torn.chunks_exact(SLOT).enumerate().take(end);
        let whole = end.is_some_and(|end| blocks(end).all(is_whole));
        prop_assert_eq!(read.lost.is_none(), whole);
    }

    /// Whatever befalls the bytes at rest: whoever is not named any more is missed.
    #[test]
    fn damage_is_noticed(
        crowd in btree_set(0..60_u64, 1..60),
        scribbles in vec((any::<prop::sample::Index>(), any::<u8>()), 1..40),
    ) {
        let mut stage = Stage::new();
        stage.write(crowd.iter().copied());
        let mut bytes = stage.bytes();
        for (at, byte) in scribbles {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let read = stage.read_from(&bytes);
        for identity in &read.identities {
            prop_assert!(crowd.contains(&identity.start_ticks) && *identity == one(identity.start_ticks));
        }
        let missed = match read.lost {
            None => 0,
            Some(LostMembers::Slots(count)) => count,
            Some(_) => crowd.len() - read.identities.len(),
        };
        prop_assert_eq!(read.identities.len() + missed, crowd.len());
    }
}
