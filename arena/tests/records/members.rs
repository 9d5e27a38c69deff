//! The members of a cage without a cgroup stand in a file of their own: what it costs to
//! keep it true, and what a sweep makes of one that is not.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use arena::{
    BLOCK, Context, MemberSlots, Outcome, Process, Registry, Signal, World, await_until, ensure,
    pidfd, send_signal,
};
use serde_json::{Value, json};

use super::desk::{
    all_clean, behead, census, counted, dir, edit, expect_over, live_ids, nobody, run_ids, say,
    start, tell, who,
};
use super::disk::{fill, small_state};
use crate::kit::{EVERYWHERE, Lines, Place, SOON, add};

pub fn register(registry: &mut Registry) {
    let tree = [EVERYWHERE[1], EVERYWHERE[3]];
    for (name, play) in [
        ("churn-costs-what-changed", churn as fn(&mut World, Place) -> Outcome),
        ("removed-under-a-live-run", |w, p| removed(w, p, |path| fs::remove_file(path))),
        ("removed-with-its-directory", |w, p| {
            removed(w, p, |path| path.parent().map_or(Ok(()), fs::remove_dir_all))
        }),
        ("a-damaged-slot", damaged),
        ("missing", missing),
        ("of-the-next-generation", next_generation),
        ("on-a-full-disk", full_disk),
        ("in-an-old-record", old_record),
    ] {
        add(registry, &format!("members::{name}"), &tree, &[], play);
    }
}

/// How many bytes a process has written, to whatever.
fn bytes_written(pid: i32) -> Outcome<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/io")).context("io")?;
    let line = text.lines().find_map(|line| line.strip_prefix("wchar:")).context("wchar")?;
    line.trim().parse().context("a number")
}

fn sleepers(world: &World) -> Vec<Process> {
    world.survivors().into_iter().filter(|process| process.comm == "sleep").collect()
}

/// Of a crowd one comes and one goes: that is written, and not the crowd.
fn churn(world: &mut World, place: Place) -> Outcome {
    const CROWD: usize = 200;
    const CHANGES: u64 = 5;
    /// A slot each for who came and who went, twice over: they may be seen apart.
    const EACH: u64 = 4 * BLOCK as u64;
    let _go = Lines::create(world, "go")?;
    let script = format!(
        "for n in $(seq {CROWD}); do sleep 1000 & done; while read g < go; do sleep 1000 & done"
    );
    let id = start(world, place, &[], &["sh", "-c", &script])?;
    let found = who(world, &id)?;
    ensure!(await_until(SOON, || sleepers(world).len() == CROWD), "{}", sleepers(world).len());
    let pids: Vec<i32> = sleepers(world).iter().map(|process| process.pid).collect();
    counted(world, &id, &pids)?;
    let record = dir(world, &id).join("record.json");
    let written =
        || fs::metadata(&record).map(|meta| (meta.ino(), meta.ctime(), meta.ctime_nsec()));
    // The record names the file once it is there.
    let is_named =
        || fs::read_to_string(&record).is_ok_and(|text| text.contains("has_members_file"));
    let named = await_until(SOON, is_named);
    let (before, record_before) = (bytes_written(found.keeper.pid)?, written().context("record")?);
    for (change, pid) in (1..=CHANGES).zip(pids) {
        send_signal(pid, Signal::KILL)?;
        fs::write(world.dir().join("go"), "now\n").context("go")?;
        let is_counted = || {
            let (now, known) = (sleepers(world), census(world, &id));
            let is_known =
                |process: &Process| known.contains(&(i64::from(process.pid), process.start_ticks));
            now.len() == CROWD && now.iter().all(is_known) && known.len() == CROWD + 1
        };
        ensure!(await_until(SOON, is_counted), "change {change} is not written down");
    }
    let cost = bytes_written(found.keeper.pid)? - before;
    ensure!(cost <= CHANGES * EACH, "{CHANGES} changes cost {cost} bytes");
    ensure!(written().context("record")? == record_before, "the record was written");
    ensure!(named, "the record does not name the file");
    tell(world, place, &["kill", &id])?;
    nobody(world)?;
    ensure!(!dir(world, &id).join("members").exists(), "the file is left");
    all_clean(world)
}

/// A run in a tree whose one orphan can be found by what was written down alone.
struct Bare {
    id: String,
    orphan: Process,
    ready: Lines,
    _never: Lines,
}

impl Bare {
    fn start(world: &mut World, place: Place) -> Outcome<Self> {
        let (mut ready, never) = (Lines::create(world, "ready")?, Lines::create(world, "never")?);
        let script = "(setsid env -i sh -c 'echo up > ready; while :; do read n < never; done' &); \
                      while :; do read n < never; done";
        let id = start(world, place, &[], &["sh", "-c", script])?;
        ready.expect("up")?;
        let leader = who(world, &id)?.leader.pid;
        let orphans = || -> Vec<Process> {
            let all = world.survivors();
            all.into_iter().filter(|one| one.comm == "sh" && one.pid != leader).collect()
        };
        ensure!(await_until(SOON, || orphans().len() == 1), "{} orphans", orphans().len());
        let orphan = orphans().remove(0);
        counted(world, &id, &[leader, orphan.pid])?;
        // The record names the file once it is there.
        let is_named =
            || super::desk::record(world, &id).is_ok_and(|it| it["has_members_file"] == true);
        ensure!(await_until(SOON, is_named), "the record does not name the file");
        Ok(Self { id, orphan, ready, _never: never })
    }

    /// Where the orphan stands in the file.
    fn place(&self, world: &World) -> Outcome<usize> {
        let mut slots = MemberSlots::read(&dir(world, &self.id), &self.id)
            .all()
            .collect::<Vec<_>>()
            .into_iter();
        let found = slots.find(|(_, slot)| slot.pid == self.orphan.pid);
        found.map(|(at, _)| at).context("the orphan has no slot")
    }

    /// The sweep ended what it could prove, and did not say that this was all.
    fn expect_not_concluded(&self, world: &mut World, place: Place, why: &str) -> Outcome {
        for _ in 0..2 {
            let said = say(world, place, &["sweep"])?;
            said.expect(120)?;
            let said = said.out;
            ensure!(said.contains("left alone") && said.contains(why), "it said {said:?}");
            ensure!(self.orphan.still_there().is_some(), "the orphan was found");
            ensure!(live_ids(world).contains(&self.id), "it is not listed any more");
        }
        let left = world.survivors();
        ensure!(left.iter().all(|one| one.pid == self.orphan.pid), "also alive: {left:?}");
        world.expect_bystanders_untouched()
    }
}

/// A slot is overwritten with a stranger's pid, or with zeros: nobody is signalled for it,
/// and nothing is concluded. Once it is whole again, the orphan is found.
fn damaged(world: &mut World, place: Place) -> Outcome {
    let bare = Bare::start(world, place)?;
    behead(&who(world, &bare.id)?)?;
    let stranger = world.bystander("sh", place.user, &[])?;
    let path = dir(world, &bare.id).join("members");
    let whole = fs::read(&path).context("members")?;
    let at = bare.place(world)?;
    let mut torn = whole.clone();
    torn[at + 4..at + 8].copy_from_slice(&stranger.process.pid.to_le_bytes());
    torn[at + 8..at + 16].copy_from_slice(&stranger.process.start_ticks.to_le_bytes());
    let held = fs::File::from(pidfd(stranger.process.pid)?);
    let inode = held.metadata().context("pidfd")?.ino();
    torn[at + 16..at + 24].copy_from_slice(&inode.to_le_bytes());
    let mut zeroed = whole.clone();
    zeroed[at..at + BLOCK].fill(0);
    for bytes in [torn, zeroed] {
        fs::write(&path, bytes).context("members")?;
        bare.expect_not_concluded(world, place, "1 of the members")?;
    }
    fs::write(&path, whole).context("members")?;
    tell(world, place, &["sweep"])?;
    nobody(world)?;
    expect_over(world, &bare.id, "keeper-died", "scan-clean")?;
    all_clean(world)
}

/// Without the file the orphan is nobody that could be proven to be ours. Only whoever
/// asks for it in so many words makes the run forgotten.
fn missing(world: &mut World, place: Place) -> Outcome {
    let bare = Bare::start(world, place)?;
    behead(&who(world, &bare.id)?)?;
    fs::remove_file(dir(world, &bare.id).join("members")).context("members")?;
    bare.expect_not_concluded(world, place, "is gone")?;
    let said = say(world, place, &["stop", &bare.id])?;
    ensure!(said.err.contains("is gone"), "stop says {said:?}");
    tell(world, place, &["rm", &bare.id])?;
    ensure!(run_ids(world).is_empty() && live_ids(world).is_empty(), "it is not forgotten");
    ensure!(bare.orphan.still_there().is_some(), "the orphan was signalled");
    send_signal(bare.orphan.pid, Signal::KILL)?;
    world.expect_extinct(SOON)?;
    all_clean(world)
}

/// A confused member removes the file, alone or with all around it: the keeper writes it
/// again.
fn removed(world: &mut World, place: Place, remove: fn(&Path) -> io::Result<()>) -> Outcome {
    let bare = Bare::start(world, place)?;
    remove(&dir(world, &bare.id).join("members")).context("members")?;
    counted(world, &bare.id, &[bare.orphan.pid])?;
    behead(&who(world, &bare.id)?)?;
    tell(world, place, &["sweep"])?;
    nobody(world)?;
    expect_over(world, &bare.id, "keeper-died", "scan-clean")?;
    all_clean(world)
}

/// Each generation begins its own file, and what is left of an earlier one is no part of it.
fn next_generation(world: &mut World, place: Place) -> Outcome {
    let mut bare = Bare::start(world, place)?;
    let path = dir(world, &bare.id).join("members");
    let first = fs::read(&path).context("members")?;
    tell(world, place, &["kill", &bare.id])?;
    ensure!(!path.exists(), "the file outlives its run");
    // As if the end of the first generation had been cut short.
    fs::write(&path, &first).context("members")?;
    std::os::unix::fs::chown(&path, Some(place.user.uid()), Some(place.user.uid()))
        .context("chown")?;
    tell(world, place, &["restart", &bare.id])?;
    bare.ready.expect("up")?;
    let found = who(world, &bare.id)?;
    let is_second =
        || fs::read(&path).is_ok_and(|bytes| bytes.get(12..16) == Some(&2_u32.to_le_bytes()[..]));
    ensure!(await_until(SOON, is_second), "it has no file of its own");
    let pids: Vec<i32> = MemberSlots::read(&dir(world, &bare.id), &bare.id)
        .all()
        .map(|(_, slot)| slot.pid)
        .collect();
    ensure!(!pids.contains(&bare.orphan.pid), "one of the first generation is in it: {pids:?}");
    behead(&found)?;
    tell(world, place, &["sweep"])?;
    nobody(world)?;
    all_clean(world)
}

/// The first member is born when the disk is full: it is written down once there is room.
fn full_disk(world: &mut World, place: Place) -> Outcome {
    let (mut ready, _never) = (Lines::create(world, "ready")?, Lines::create(world, "never")?);
    let _go = Lines::create(world, "go")?;
    let point = small_state(world, place)?;
    let script = "read g < go; \
                  (setsid env -i sh -c 'echo up > ready; while :; do read n < never; done' &); \
                  while :; do read n < never; done";
    let id = start(world, place, &[], &["sh", "-c", script])?;
    let found = who(world, &id)?;
    fill(&point)?;
    fs::write(world.dir().join("go"), "now\n").context("go")?;
    ready.expect("up")?;
    // The keeper has tried: the file is made before there is no room for what is in it.
    let path = dir(world, &id).join("members");
    ensure!(await_until(SOON, || path.exists()), "it was never tried");
    ensure!(Process::read(found.keeper.pid).is_some(), "a full disk cost it its keeper");
    fs::remove_file(point.join("filler")).context("filler")?;
    let is_counted = || MemberSlots::read(&dir(world, &id), &id).all().count() == 1;
    ensure!(await_until(SOON, is_counted), "what was missed is never written");
    behead(&found)?;
    tell(world, place, &["sweep"])?;
    nobody(world)?;
    expect_over(world, &id, "keeper-died", "scan-clean")?;
    all_clean(world)
}

/// A fullstop of before has written the members into the record itself.
fn old_record(world: &mut World, place: Place) -> Outcome {
    let bare = Bare::start(world, place)?;
    behead(&who(world, &bare.id)?)?;
    let run = dir(world, &bare.id);
    let slots = MemberSlots::read(&run, &bare.id);
    let old = slots.all().map(|(_, slot)| {
        json!({ "pid": slot.pid, "start_ticks": slot.start_ticks, "inode": slot.inode })
    });
    let old: Vec<Value> = old.collect();
    edit(world, &bare.id, "record.json", |record| {
        record["census"] = old.into();
        record.as_object_mut().map(|record| record.remove("has_members_file"));
    })?;
    fs::remove_file(run.join("members")).context("members")?;
    tell(world, place, &["sweep"])?;
    nobody(world)?;
    expect_over(world, &bare.id, "keeper-died", "scan-clean")?;
    all_clean(world)
}
