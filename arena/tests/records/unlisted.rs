//! Runs that live and are not listed, and what is left of a run whose files were removed: each
//! is named, and ended if the kernel tells that it is the run's.

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use arena::{Context as _, Outcome, Registry, World, await_until, ensure, seconds};

use super::desk::{
    CommandOutput, QUIET, alive, all_clean, ask_with, behead, dir, expect_over, freeze, lose,
    proof, record, run_ids, say, start, thaw, who,
};
use super::vanished::{PLAIN, listed, remove, restored};
use crate::kit::{AS_ROOT, Lines, Place, SOON, add};

pub fn register(registry: &mut Registry) {
    add(registry, "vanished::named", &[AS_ROOT[0], PLAIN[0]], &[], named);
    for (name, play) in [
        ("cgroup-without-a-keeper", cgroup_without_a_keeper as fn(&mut World, Place) -> Outcome),
        ("cgroup-of-another-state-directory", cgroup_of_another),
        ("nothing-written-down", nothing_written_down),
        ("no-record-no-spec", no_record_no_spec),
        ("of-a-later-version", of_a_later_version),
    ] {
        add(registry, &format!("vanished::{name}"), &AS_ROOT[..1], &[], play);
    }
}

/// Says a command with another state directory.
fn say_elsewhere(world: &mut World, place: Place, words: &[&str]) -> Outcome<CommandOutput> {
    let other = world.dir().join("other");
    let asked = ask_with(world, place, words, |command| {
        command.env("FULLSTOP_DIR", other);
    })?;
    asked.hear(world, seconds(20))
}

/// What every command says that looks for runs, while there is one that is not written down.
fn expect_named(world: &mut World, place: Place, id: &str, whom: &str) -> Outcome {
    let names = |text: &str| text.contains(id) && text.contains(whom);
    let ps = say(world, place, &["ps", "--json"])?;
    ps.expect(0)?;
    ensure!(ps.out == "[]\n" && names(&ps.err), "ps: {ps:?}");
    for words in [
        &["stop", "--all"][..],
        &["kill", "--all", "--no-wait"],
        &["stop", "--group", "plan"],
        &["group", "stop", "plan"],
        &["group", "close", "other"],
        &["group", "close", "other", "--json"],
    ] {
        let said = say(world, place, words)?;
        said.expect_one_line(120, id)?;
        ensure!(names(&said.err), "{words:?}: {said:?}");
    }
    let sweep = say(world, place, &["sweep"])?;
    sweep.expect(120)?;
    ensure!(names(&sweep.out), "sweep: {sweep:?}");
    let sweep = say(world, place, &["sweep", "--json"])?;
    sweep.expect(120)?;
    let found = &sweep.json()?[0];
    ensure!(found["id"] == id && found["found"]["found"] == "unlisted", "sweep: {found}");
    let doctor = say(world, place, &["doctor", "--json"])?.json()?;
    let mut findings = doctor["findings"].as_array().into_iter().flatten();
    let finding = findings.find(|finding| finding["name"] == "unlisted").context("a finding")?;
    ensure!(finding["level"] == "yellow" && names(&finding.to_string()), "doctor: {finding}");
    // None of it is the business of another state directory.
    for words in [&["ps"][..], &["stop", "--all"], &["sweep"], &["doctor"]] {
        let said = say_elsewhere(world, place, words)?;
        said.expect(0)?;
        let told = format!("{}{}", said.out, said.err);
        ensure!(!told.contains(id), "{words:?} of another state directory: {told}");
    }
    Ok(())
}

/// A run whose keeper cannot restore it is named by all who find nothing listed, and
/// nobody is signalled: a title can be forged.
fn named(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let id = start(world, place, &[], &["sh", "-c", QUIET])?;
    let who = who(world, &id)?;
    freeze(&who)?;
    remove(&world.state())?;
    expect_named(world, place, &id, &who.keeper.pid.to_string())?;
    ensure!(alive(&who.leader) && alive(&who.keeper), "it was hurt");
    thaw(&who);
    restored(world, &id, &who)?;
    say(world, place, &["stop", "--all"])?.expect(0)?;
    expect_over(world, &id, "stopped", proof(place))?;
    all_clean(world)
}

fn cgroup_without_a_keeper(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let id = start(world, place, &[], &["sh", "-c", QUIET])?;
    let who = lose(world, &id)?;
    let cgroup = record(world, &id)?["cgroup"].as_str().map(PathBuf::from).context("a cgroup")?;
    remove(&world.state())?;
    expect_named(world, place, &id, &cgroup.display().to_string())?;
    ensure!(alive(&who.leader), "it was killed without a record");
    // What it is told to do.
    fs::write(cgroup.join("cgroup.kill"), "1").context("kill it")?;
    ensure!(await_until(SOON, || !alive(&who.leader)), "it lives");
    ensure!(await_until(SOON, || fs::remove_dir(&cgroup).is_ok()), "its cgroup stays");
    say(world, place, &["stop", "--all"])?.expect(0)?;
    all_clean(world)
}

/// A sweep removes the empty cgroups of its own state directory, and no others.
fn cgroup_of_another(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let id = start(world, place, &[], &["sh", "-c", QUIET])?;
    let path = record(world, &id)?["cgroup"].as_str().map(PathBuf::from).context("a cgroup")?;
    say(world, place, &["stop", &id])?.expect(0)?;
    let (own, other) = (path.clone(), path.with_file_name(format!("fullstop-{id}-00000000")));
    let older = path.with_file_name("fullstop-2a00000000001");
    let long_ago = SystemTime::now() - Duration::from_hours(1);
    for made in [&own, &other, &older] {
        fs::create_dir(made).context("a cgroup")?;
        let aged = fs::File::open(made).and_then(|dir| dir.set_modified(long_ago));
        aged.context("an age")?;
    }
    let said = say(world, place, &["sweep"])?;
    said.expect(0)?;
    ensure!(!own.exists(), "its own is left: {said:?}");
    ensure!(other.exists() && older.exists(), "it has removed those of others: {said:?}");
    for made in [&other, &older] {
        fs::remove_dir(made).context("remove it again")?;
    }
    let name = path.file_name().and_then(OsStr::to_str).context("its name")?;
    ensure!(name.len() == format!("fullstop-{id}-01234567").len(), "it was called {name}");
    all_clean(world)
}

/// A run without record and spec was not simply never born: its cgroup tells, and ends it.
fn nothing_written_down(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let id = start(world, place, &[], &["sh", "-c", &format!("trap '' HUP; {QUIET}")])?;
    let other = start(world, place, &[], &["sh", "-c", QUIET])?;
    let who = who(world, &id)?;
    for name in ["record.json", "spec.json"] {
        fs::remove_file(dir(world, &id).join(name)).context(name)?;
    }
    behead(&who)?;
    ensure!(alive(&who.leader), "it died with its keeper");
    say(world, place, &["stop", "--all"])?.expect(0)?;
    ensure!(!alive(&who.leader), "all were said to be stopped, and it lives");
    expect_over(world, &other, "stopped", proof(place))?;
    all_clean(world)
}

/// A live run of which nothing can be read is shown, at once, and can be stopped.
fn no_record_no_spec(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let older = start(world, place, &["--name", "same"], &["true"])?;
    say(world, place, &["wait", &older])?.expect(0)?;
    let id = start(world, place, &["--name", "same"], &["sh", "-c", QUIET])?;
    let who = who(world, &id)?;
    for name in ["record.json", "spec.json"] {
        fs::remove_file(dir(world, &id).join(name)).context(name)?;
    }
    let rows = listed(world, place)?;
    ensure!(rows.len() == 1 && rows[0]["state"] == "damaged", "ps shows {rows:?}");
    ensure!(rows[0]["live"] == true, "ps shows {rows:?}");
    say(world, place, &["stop", "same"])?.expect(0)?;
    ensure!(!alive(&who.leader), "another one was taken for it");
    expect_over(world, &id, "stopped", proof(place))?;
    all_clean(world)
}

/// What a later fullstop has written is left alone, and not forgotten while it lives.
fn of_a_later_version(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let id = start(world, place, &[], &["sh", "-c", &format!("trap '' HUP; {QUIET}")])?;
    let who = who(world, &id)?;
    let path = dir(world, &id).join("record.json");
    let ours = fs::read_to_string(&path).context("record")?;
    fs::write(&path, ours.replace("\"version\":2", "\"version\":99")).context("record")?;
    behead(&who)?;
    let said = say(world, place, &["rm", &id])?;
    said.expect(120)?;
    ensure!(said.err.contains("processes live in its cgroup"), "it said {:?}", said.err);
    ensure!(alive(&who.leader) && run_ids(world) == [id.clone()], "it was not left alone");
    fs::write(&path, ours).context("record")?;
    say(world, place, &["sweep"])?.expect(0)?;
    expect_over(world, &id, "keeper-died", proof(place))?;
    all_clean(world)
}
