//! A disk that is full, read-only, somebody else's, or too deep: `run` goes on with
//! one line, `start` fails with one line, and a run that lives keeps its keeper.

use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use arena::{Context, Outcome, Registry, User, World, await_until, ensure, seconds};
use rustix::mount::{MountFlags, mount, mount_remount};

use super::desk::{
    CommandOutput, alive, ask_with, dir, live_ids, lose, nobody, record, start, tell, who,
};
use crate::kit::{EVERYWHERE, Launch, Lines, Place, SOON, add, no_cgroup, text};

pub fn register(registry: &mut Registry) {
    for (name, play) in [
        ("full", full as fn(&mut World, Place) -> Outcome),
        ("few-inodes", few_inodes),
        ("read-only", read_only),
        ("somebody-elses", foreign),
        ("a-file", file),
        ("too-deep", too_deep),
        ("deep", deep),
        ("fills-up", fills_up),
        ("fills-up-and-stays", stays_full),
        ("fills-up-in-front", fills_up_in_front),
        ("fills-up-while-swept", swept_full),
    ] {
        add(registry, &format!("disk::{name}"), &EVERYWHERE, &[], play);
    }
}

/// A small file system where the records are to be.
fn small(world: &World, place: Place, name: &str) -> Outcome<PathBuf> {
    let point = world.scratch().join(name);
    fs::create_dir_all(&point).context("mount point")?;
    let uid = place.user.uid();
    let options = format!("size=256k,nr_inodes=200,mode=700,uid={uid},gid={uid}\0");
    let options = std::ffi::CStr::from_bytes_with_nul(options.as_bytes()).context("options")?;
    mount("small", &point, "tmpfs", MountFlags::empty(), options).context("mounting")?;
    Ok(point)
}

/// Fills it to the last byte.
pub fn fill(point: &std::path::Path) -> Outcome {
    let mut file = File::create(point.join("filler")).context("filler")?;
    for size in [4096, 256, 1] {
        while file.write_all(&vec![0; size]).is_ok() {}
    }
    Ok(())
}

fn with_dir(
    world: &mut World,
    place: Place,
    records: &str,
    words: &[&str],
) -> Outcome<CommandOutput> {
    let records = records.to_owned();
    let asked = ask_with(world, place, words, |command| {
        command.env("FULLSTOP_DIR", records);
    })?;
    asked.hear(world, seconds(15))
}

/// `run` says one line and goes on; `start` says one line and does not.
fn run_goes_on(world: &mut World, place: Place, records: &str, about: &str) -> Outcome {
    let cage = place.cage.to_string();
    let script = "setsid sh -c 'while :; do read n < never; done' & echo done; exit 7";
    let said =
        with_dir(world, place, records, &["run", "--cage", &cage, "--", "sh", "-c", script])?;
    nobody(world)?;
    said.expect_one_line(7, about)?;
    ensure!(said.err.contains("no record"), "what follows is not said: {:?}", said.err);
    ensure!(said.out == "done\n", "its output was {:?}", said.out);
    let said =
        with_dir(world, place, records, &["start", "--cage", &cage, "--", "sh", "-c", ": > born"])?;
    nobody(world)?;
    said.expect_one_line(125, about)?;
    ensure!(said.out.is_empty(), "an id was printed: {:?}", said.out);
    ensure!(!world.dir().join("born").exists(), "it was born");
    let words = ["run", "--cage", &cage, "--group", "plan", "--", "sh", "-c", ": > born"];
    let said = with_dir(world, place, records, &words)?;
    nobody(world)?;
    said.expect_one_line(125, about)?;
    ensure!(!world.dir().join("born").exists(), "it was born, and nobody could close its group");
    clean(world)
}

fn clean(world: &World) -> Outcome {
    nobody(world)?;
    world.expect_no_zombies()?;
    no_cgroup(world)?;
    world.expect_bystanders_untouched()
}

fn full(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let point = small(world, place, "small")?;
    let records = text(point.join("fullstop"));
    fill(&point)?;
    run_goes_on(world, place, &records, "no space left")
}

/// Room for one more file each time: whatever cannot be made, a `start` that fails says
/// one line and leaves nothing, and one that works works.
fn few_inodes(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let (mut failed, mut worked) = (0, 0);
    for inodes in 2..18 {
        let point = world.scratch().join(format!("few-{inodes}"));
        fs::create_dir(&point).context("mount point")?;
        let uid = place.user.uid();
        let options = format!("nr_inodes={inodes},mode=700,uid={uid},gid={uid}\0");
        let options = std::ffi::CStr::from_bytes_with_nul(options.as_bytes()).context("options")?;
        mount("few", &point, "tmpfs", MountFlags::empty(), options).context("mounting")?;
        let records = point.join("fullstop");
        let cage = place.cage.to_string();
        let script = "while :; do read n < never; done";
        let words = ["start", "--cage", &cage, "--", "sh", "-c", script];
        let said = with_dir(world, place, &text(&records), &words)?;
        if said.ended == arena::Ended::Code(0) {
            worked += 1;
            let id = said.out.trim_end().to_owned();
            let said = with_dir(world, place, &text(&records), &["kill", &id])?;
            nobody(world)?;
            said.expect(0)?;
            continue;
        }
        failed += 1;
        nobody(world)?;
        said.expect_one_line(125, "no space left").context(format!("{inodes} inodes"))?;
        for name in ["runs", "live"] {
            let left = super::desk::names(&records.join(name));
            ensure!(left.is_empty(), "with {inodes} inodes {name} holds {left:?}");
        }
    }
    ensure!(failed > 2 && worked > 0, "{failed} failed, {worked} worked: nothing was tried");
    clean(world)
}

fn read_only(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let point = small(world, place, "small")?;
    let records = point.join("fullstop");
    fs::create_dir(&records).context("records")?;
    fs::set_permissions(&records, Permissions::from_mode(0o700)).context("chmod")?;
    std::os::unix::fs::chown(&records, Some(place.user.uid()), None).context("chown")?;
    mount_remount(&point, MountFlags::RDONLY, c"").context("remount")?;
    run_goes_on(world, place, &text(records), "read-only")
}

/// Whoever owns it could read and change what is in it.
fn foreign(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let records = world.scratch().join("foreign");
    fs::create_dir(&records).context("records")?;
    fs::set_permissions(&records, Permissions::from_mode(0o777)).context("chmod")?;
    let owner = if place.user == User::Root { 1234 } else { 0 };
    std::os::unix::fs::chown(&records, Some(owner), Some(owner)).context("chown")?;
    run_goes_on(world, place, &text(&records), &format!("belongs to uid {owner}"))?;
    for words in [&["ps"][..], &["sweep"], &["stop", "--all"], &["prune"], &["group", "ls"]] {
        let said = with_dir(world, place, &text(&records), words)?;
        said.expect_one_line(125, "belongs to uid")?;
    }
    ensure!(super::desk::names(&records).is_empty(), "something was written there");
    Ok(())
}

fn file(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let records = world.scratch().join("file");
    fs::write(&records, "a file").context("file")?;
    run_goes_on(world, place, &text(&records), "file")
}

/// Longer than any path may be.
fn too_deep(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let records = format!("{}/{}", text(world.dir()), "deep/".repeat(1000));
    run_goes_on(world, place, &records, "too long")
}

/// Longer than the path of a socket may be, which is short: all works.
fn deep(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let below = world.scratch().join("state").join("a-rather-long-name/".repeat(20));
    let records = text(below.join("fullstop"));
    let words = ["start", "--group", "plan", "--", "sh", "-c", "while :; do read n < never; done"];
    let said = with_dir(world, place, &records, &words)?;
    said.expect(0)?;
    let id = said.out.trim_end().to_owned();
    let said = with_dir(world, place, &records, &["stop", &id])?;
    nobody(world)?;
    said.expect(0)?;
    ensure!(said.err.is_empty(), "it went around its keeper: {:?}", said.err);
    clean(world)
}

/// Makes the usual place of records a small file system.
pub fn small_state(world: &World, place: Place) -> Outcome<PathBuf> {
    small(world, place, "state/fullstop")
}

const DEAF: &str = "trap '' TERM; echo up > ready; while :; do read n < never; done";

/// The disk fills up while it lives, and has room again: all is written in the end.
fn fills_up(world: &mut World, place: Place) -> Outcome {
    let (mut ready, _never) = (Lines::create(world, "ready")?, Lines::create(world, "never")?);
    let point = small_state(world, place)?;
    let options = ["--ladder", "term@leader:20s,kill"];
    let id = start(world, place, &options, &["sh", "-c", DEAF])?;
    ready.expect("up")?;
    let found = who(world, &id)?;
    fill(&point)?;
    tell(world, place, &["stop", "--no-wait", &id])?;
    // The keeper lives, and does what it was told, though it cannot write that down.
    ensure!(alive(&found.keeper) && alive(&found.guard), "a full disk cost it its keeper");
    let said = tell(world, place, &["ps", "-q"])?;
    ensure!(said == format!("{id}\n"), "ps says {said:?}");
    fs::remove_file(point.join("filler")).context("filler")?;
    let caught_up = || record(world, &id).is_ok_and(|r| r["state"] == "stopping");
    ensure!(await_until(SOON, caught_up), "what was missed is never written");
    tell(world, place, &["kill", &id])?;
    nobody(world)?;
    super::desk::expect_over(world, &id, "stopped", super::desk::proof(place))?;
    let events = fs::read_to_string(dir(world, &id).join("events.jsonl")).context("events")?;
    ensure!(events.contains("term@leader"), "an event is lost: {events}");
    super::desk::all_clean(world)
}

/// It stays full: the run is stopped, that is written into the room taken at its birth,
/// and whoever stops it is told the truth.
fn stays_full(world: &mut World, place: Place) -> Outcome {
    let (mut ready, _never) = (Lines::create(world, "ready")?, Lines::create(world, "never")?);
    let point = small_state(world, place)?;
    let options = ["--ladder", "term@leader:100ms,kill"];
    let id = start(world, place, &options, &["sh", "-c", DEAF])?;
    ready.expect("up")?;
    who(world, &id)?;
    fill(&point)?;
    let said = super::desk::say(world, place, &["stop", &id])?;
    nobody(world)?;
    said.expect(0)?;
    ensure!(said.out.contains(super::desk::proof(place)), "it said {:?}", said.out);
    is_written(world, place, &id, "stopped")?;
    fs::remove_file(point.join("filler")).context("filler")?;
    super::desk::all_clean(world)
}

/// All of its end stands in its directory, and nothing else is left there.
pub fn is_written(world: &mut World, place: Place, id: &str, reason: &str) -> Outcome {
    ensure!(live_ids(world).is_empty(), "it is still listed");
    super::desk::expect_over(world, id, reason, super::desk::proof(place))?;
    let events = fs::read_to_string(dir(world, id).join("events.jsonl")).context("events")?;
    ensure!(events.contains(r#""type":"ended""#), "its end is no event: {events}");
    for name in ["record.json.new", "record.room"] {
        ensure!(!dir(world, id).join(name).exists(), "{name} was left");
    }
    Ok(())
}

/// A run in front has the same room, once it has lived for a moment.
fn fills_up_in_front(world: &mut World, place: Place) -> Outcome {
    let (mut ready, _never) = (Lines::create(world, "ready")?, Lines::create(world, "never")?);
    let _go = Lines::create(world, "go")?;
    let point = small_state(world, place)?;
    let script = "echo up > ready; read g < go; exit 3";
    let run = Launch::new(place).start(world, &["sh", "-c", script])?;
    ready.expect("up")?;
    ensure!(await_until(SOON, || live_ids(world).len() == 1), "it is not listed");
    let id = live_ids(world).remove(0);
    who(world, &id)?;
    fill(&point)?;
    fs::write(world.dir().join("go"), "now\n").context("go")?;
    let ended = world.wait(&run.spawned, SOON)?;
    nobody(world)?;
    ensure!(ended == arena::Ended::Code(3), "run ended with {ended}");
    ensure!(run.stderr().is_empty(), "it said {:?}", run.stderr());
    run.expect_ended(place, "exited")?;
    is_written(world, place, &id, "exited")?;
    fs::remove_file(point.join("filler")).context("filler")?;
    super::desk::all_clean(world)
}

/// A sweep ends what it finds, and has the room to write that down.
fn swept_full(world: &mut World, place: Place) -> Outcome {
    let (mut ready, _never) = (Lines::create(world, "ready")?, Lines::create(world, "never")?);
    let point = small_state(world, place)?;
    let id = start(world, place, &[], &["sh", "-c", DEAF])?;
    ready.expect("up")?;
    let found = lose(world, &id)?;
    fill(&point)?;
    tell(world, place, &["sweep"])?;
    super::desk::expect_gone(&found.leader, SOON)?;
    nobody(world)?;
    ensure!(live_ids(world).is_empty(), "it is still listed");
    super::desk::expect_over(world, &id, "keeper-died", super::desk::swept_proof(place))?;
    fs::remove_file(point.join("filler")).context("filler")?;
    super::desk::all_clean(world)
}
