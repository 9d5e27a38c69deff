//! What is written down of a run, and the kernel denies: processes live in the cgroup that
//! carries its tag. No command says that it is over, and none removes it.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::PathBuf;

use arena::{Context as _, Outcome, Registry, Signal, World, await_until, ensure, send_signal};
use serde_json::{Value, json};

use super::desk::{
    QUIET, Who, alive, all_clean, dir, edit, expect_over, freeze, live_ids, lose, proof, record,
    run_ids, say, start, thaw, who,
};
use crate::kit::{ANYWHERE, AS_ROOT, Lines, Place, SOON, add};

/// Keeps its terminal's end from ending it.
const ORPHAN: &str = "trap '' HUP; while :; do read gone < never; done";

pub fn register(registry: &mut Registry) {
    for (name, play) in [
        ("an-earlier-boot", earlier_boot as fn(&mut World, Place) -> Outcome),
        ("no-cgroup", no_cgroup),
        ("ended", ended),
        ("a-link-for-a-cgroup", link_for_a_cgroup),
        ("elsewhere", elsewhere),
        ("nothing-but-a-listing", nothing_but_a_listing),
        ("taken-off-the-list", taken_off_the_list),
        ("a-lock-that-was-replaced", replaced_lock),
        ("a-copy-without-files", copy_without_files),
    ] {
        add(registry, &format!("denied::{name}"), &AS_ROOT[..1], &[], play);
    }
    for (name, play) in [
        ("a-copy-of-the-disk", copy_of_the_disk as fn(&mut World, Place) -> Outcome),
        ("unlisted-and-lost", unlisted_and_lost),
        ("no-entry-in-its-group", no_entry_in_its_group),
        ("no-directory", no_directory),
        ("a-pipe-for-the-listing-of-an-ended-run", pipe_for_a_listing),
    ] {
        add(registry, &format!("denied::{name}"), &AS_ROOT, &[], play);
    }
    add(registry, "denied::files-removed", &ANYWHERE, &[], files_removed);
}

/// In a copy of the disk the lock has the same inode, and no process holds it.
fn copy_of_the_disk(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let id = start(world, place, &[], &["sh", "-c", QUIET])?;
    let who = who(world, &id)?;
    let lock = dir(world, &id).join("lock");
    let listing = world.state().join("live").join(&id);
    freeze(&who)?;
    for name in [&lock, &listing] {
        fs::remove_file(name).context("a name of the lock")?;
    }
    fs::write(&lock, "").context("a lock")?;
    fs::hard_link(&lock, &listing).context("list")?;
    let inode = fs::metadata(&lock).context("a lock")?.ino();
    for file in ["record.json", "spec.json"] {
        edit(world, &id, file, |it| it["lock"] = json!(inode))?;
    }
    is_left_alone(world, place, &id, &who)
}

/// It was taken off the list, and its keeper and guard are dead: by its record it is ended
/// as any lost run.
fn unlisted_and_lost(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    for words in [&["stop"][..], &["sweep"], &["rm"]] {
        let (id, who) = lost(world, place)?;
        fs::remove_file(world.state().join("live").join(&id)).context("unlist")?;
        let words: Vec<&str> =
            words.iter().copied().chain((words[0] != "sweep").then_some(id.as_str())).collect();
        let said = say(world, place, &words)?;
        said.expect(0)?;
        ensure!(!alive(&who.leader), "{words:?} left it alive: {said:?}");
        ensure!(live_ids(world).is_empty(), "it is still listed");
    }
    all_clean(world)
}

/// A group whose entries were removed is closed with all who are in it by their records.
fn no_entry_in_its_group(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let id = start(world, place, &["--group", "plan/research"], &["sh", "-c", QUIET])?;
    let who = who(world, &id)?;
    fs::remove_dir_all(world.state().join("groups")).context("remove")?;
    say(world, place, &["group", "close", "plan"])?.expect(0)?;
    ensure!(!alive(&who.leader), "the group is closed, and it lives");
    expect_over(world, &id, "group-closed", proof(place))?;
    all_clean(world)
}

/// Its keeper cannot be asked until it is awake: who it is, and what to do, is said.
fn no_directory(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let id = start(world, place, &[], &["sh", "-c", QUIET])?;
    let who = who(world, &id)?;
    freeze(&who)?;
    fs::remove_dir_all(dir(world, &id)).context("remove")?;
    let said = say(world, place, &["kill", &id])?;
    said.expect(120)?;
    let hint = format!("kill -TERM {}", who.keeper.pid);
    ensure!(said.err.contains(&hint), "it said {:?}", said.err);
    send_signal(who.keeper.pid, Signal::TERM)?;
    thaw(&who);
    ensure!(await_until(SOON, || !alive(&who.leader)), "it was asked to stop, and lives");
    ensure!(await_until(SOON, || live_ids(world).is_empty()), "it is still listed");
    all_clean(world)
}

/// What stands in the place of a listing does not make a run that is over one that is not.
fn pipe_for_a_listing(world: &mut World, place: Place) -> Outcome {
    let id = start(world, place, &[], &["true"])?;
    say(world, place, &["wait", &id])?.expect(0)?;
    let listing = world.state().join("live").join(&id);
    fs::create_dir(&listing).context("a directory")?;
    for words in [&["stop", &id][..], &["wait", &id], &["sweep"], &["stop", &id]] {
        say(world, place, words)?.expect(0)?;
    }
    ensure!(live_ids(world).iter().all(|name| *name != id), "{:?} are listed", live_ids(world));
    say(world, place, &["rm", &id])?.expect(0)?;
    for name in live_ids(world) {
        fs::remove_dir(world.state().join("live").join(name)).context("moved aside")?;
    }
    all_clean(world)
}

/// Without record, spec and cgroup nothing leads to its processes: it is not said to be over.
fn files_removed(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let (id, who) = lost(world, place)?;
    for name in ["record.json", "spec.json"] {
        fs::remove_file(dir(world, &id).join(name)).context(name)?;
    }
    for words in [&["sweep"][..], &["stop", &id]] {
        let said = say(world, place, words)?;
        said.expect(120)?;
        let told = format!("{}{}", said.out, said.err);
        ensure!(told.contains("some of it may live"), "it said {told:?}");
    }
    ensure!(alive(&who.leader), "it was killed without a record");
    send_signal(who.leader.pid, Signal::KILL)?;
    ensure!(await_until(SOON, || !alive(&who.leader)), "it lives");
    say(world, place, &["rm", &id])?.expect(0)?;
    all_clean(world)
}

fn lost(world: &mut World, place: Place) -> Outcome<(String, Who)> {
    let id = start(world, place, &[], &["sh", "-c", ORPHAN])?;
    let who = lose(world, &id)?;
    ensure!(alive(&who.leader), "it died with its keeper");
    Ok((id, who))
}

/// After an edit of its record a lost run is ended all the same, and its cgroup proves it.
fn is_ended(world: &mut World, place: Place, change: impl FnOnce(&mut Value)) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let (id, who) = lost(world, place)?;
    edit(world, &id, "record.json", change)?;
    say(world, place, &["stop", &id])?.expect(0)?;
    ensure!(!alive(&who.leader), "it was said to be stopped, and lives");
    expect_over(world, &id, "keeper-died", "cgroup-empty")?;
    all_clean(world)
}

fn earlier_boot(world: &mut World, place: Place) -> Outcome {
    is_ended(world, place, |record| {
        record["world"]["boot"] = json!("11111111-ec55-4b59-b3e5-7ef73d9a16c9");
    })
}

fn no_cgroup(world: &mut World, place: Place) -> Outcome {
    is_ended(world, place, |record| {
        record["cgroup"] = Value::Null;
        record["leader"] = Value::Null;
    })
}

fn ended(world: &mut World, place: Place) -> Outcome {
    is_ended(world, place, |record| {
        record["state"] = json!("ended");
        record["reason"] = json!("exited");
    })
}

/// A path that is called like its cgroup leads to the cgroup of a stranger.
fn link_for_a_cgroup(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let (id, who) = lost(world, place)?;
    let other = start(world, place, &[], &["sh", "-c", QUIET])?;
    let stranger = super::desk::who(world, &other)?.leader;
    let strangers = record(world, &other)?["cgroup"].as_str().map(PathBuf::from);
    let link = world.state().parent().context("a parent")?.join(format!("fullstop-{id}"));
    symlink(strangers.context("a cgroup")?, &link).context("link")?;
    edit(world, &id, "record.json", |record| record["cgroup"] = json!(link))?;
    say(world, place, &["sweep"])?.expect(0)?;
    ensure!(alive(&stranger), "the stranger was killed");
    ensure!(!alive(&who.leader), "it lives");
    fs::remove_file(&link).context("unlink")?;
    say(world, place, &["stop", &other])?.expect(0)?;
    all_clean(world)
}

/// It is not forgotten while processes live in its cgroup, wherever it is said to belong.
fn elsewhere(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let (id, who) = lost(world, place)?;
    let namespace = record(world, &id)?["world"]["pid_namespace"].clone();
    let cgroup = record(world, &id)?["cgroup"].clone();
    edit(world, &id, "record.json", |record| {
        record["world"]["pid_namespace"] = json!(1);
        record["cgroup"] = Value::Null;
    })?;
    for words in [&["prune", "--forget"][..], &["rm", "--forget", &id], &["stop", &id]] {
        let said = say(world, place, words)?;
        ensure!(run_ids(world) == [id.clone()], "{words:?} removed it: {said:?}");
    }
    ensure!(live_ids(world) == [id.clone()], "it was taken off the list");
    say(world, place, &["stop", &id])?.expect(120)?;
    ensure!(alive(&who.leader), "it was killed, though it belongs elsewhere");
    edit(world, &id, "record.json", |record| {
        record["world"]["pid_namespace"] = namespace;
        record["cgroup"] = cgroup;
    })?;
    say(world, place, &["stop", &id])?.expect(0)?;
    ensure!(!alive(&who.leader), "it lives");
    all_clean(world)
}

/// Its directory is gone, and its keeper and guard are dead.
fn nothing_but_a_listing(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    for words in [&["sweep"][..], &["stop", "--all"]] {
        let (id, who) = lost(world, place)?;
        fs::remove_dir_all(dir(world, &id)).context("remove")?;
        let said = say(world, place, words)?;
        said.expect(0)?;
        ensure!(!alive(&who.leader), "{words:?} left it alive: {said:?}");
        ensure!(live_ids(world).is_empty(), "it is still listed");
    }
    all_clean(world)
}

/// It is not listed any more, has no lock, and its keeper and guard are dead.
fn taken_off_the_list(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let (id, who) = lost(world, place)?;
    let cgroup = record(world, &id)?["cgroup"].as_str().map(PathBuf::from).context("a cgroup")?;
    for name in [world.state().join("live").join(&id), dir(world, &id).join("lock")] {
        fs::remove_file(name).context("a name of the lock")?;
    }
    for words in [&["stop", &id][..], &["rm", &id], &["wait", &id], &["stop", "--all"]] {
        say(world, place, words)?.expect(120)?;
    }
    say(world, place, &["prune", "--keep", "0"])?.expect(0)?;
    ensure!(run_ids(world) == [id.clone()], "it was removed");
    ensure!(alive(&who.leader), "it was killed, and said not to be");
    fs::write(cgroup.join("cgroup.kill"), "1").context("kill it")?;
    ensure!(await_until(SOON, || !alive(&who.leader)), "it lives");
    ensure!(await_until(SOON, || fs::remove_dir(&cgroup).is_ok()), "its cgroup stays");
    say(world, place, &["rm", &id])?.expect(0)?;
    all_clean(world)
}

/// A free lock in the place of that which the keeper holds, and no file that tells: the run
/// is live all the same.
fn replaced_lock(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let id = start(world, place, &[], &["sh", "-c", QUIET])?;
    let who = who(world, &id)?;
    freeze(&who)?;
    let listing = world.state().join("live").join(&id);
    fs::remove_file(&listing).context("unlist")?;
    for name in ["lock", "record.json", "spec.json"] {
        fs::remove_file(dir(world, &id).join(name)).context(name)?;
    }
    fs::write(dir(world, &id).join("lock"), "").context("a lock")?;
    fs::hard_link(dir(world, &id).join("lock"), &listing).context("list")?;
    is_left_alone(world, place, &id, &who)
}

/// A copy in the place of the state directory has locks that nobody holds.
fn copy_without_files(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let id = start(world, place, &[], &["sh", "-c", QUIET])?;
    let who = who(world, &id)?;
    freeze(&who)?;
    let (state, run) = (world.state(), dir(world, &id));
    let aside = state.with_extension("aside");
    fs::rename(&run, &aside).context("move")?;
    fs::create_dir(&run).context("a directory")?;
    fs::write(run.join("lock"), "").context("a lock")?;
    fs::remove_file(state.join("live").join(&id)).context("unlist")?;
    fs::hard_link(run.join("lock"), state.join("live").join(&id)).context("list")?;
    is_left_alone(world, place, &id, &who)?;
    fs::remove_dir_all(&aside).context("remove")
}

fn is_left_alone(world: &mut World, place: Place, id: &str, who: &Who) -> Outcome {
    for words in [&["run", "true"][..], &["sweep"], &["ps"]] {
        say(world, place, words)?;
        ensure!(alive(&who.leader) && alive(&who.keeper), "{words:?} killed a live run");
    }
    thaw(who);
    // A keeper that is awake looks at its names once a second.
    let is_restored = || {
        let _ = send_signal(who.keeper.pid, Signal::CHILD);
        let rows = say(world, place, &["ps", "--json"]).and_then(|said| said.json());
        rows.is_ok_and(|rows| rows[0]["live"] == true && rows[0]["state"] == "running")
    };
    ensure!(await_until(SOON, is_restored), "its keeper restores nothing");
    say(world, place, &["stop", id])?.expect(0)?;
    ensure!(!alive(&who.leader), "it was said to be stopped, and lives");
    all_clean(world)
}
