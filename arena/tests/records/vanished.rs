//! What was removed, damaged or hidden under live runs: none of it makes a run that lives
//! one that is not there.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use arena::{
    Context as _, Ended, Need, Outcome, Process, Registry, Signal, User, World, await_until,
    ensure, send_signal,
};
use serde_json::Value;

use super::around::trace;
use super::desk::{
    QUIET, Who, alive, all_clean, ask, dir, expect_over, freeze, live_ids, lose, proof, read_json,
    record, run_ids, say, start, tell, thaw, who,
};
use crate::kit::{ANYWHERE, AS_ROOT, Cage, EVERYWHERE, Lines, Place, SOON, add};
use crate::tools::collected;

/// Where a directory can be closed to its owner.
pub const PLAIN: [Place; 1] = [Place { cage: Cage::Tree, user: User::Plain }];

pub fn register(registry: &mut Registry) {
    add(registry, "vanished::damaged-record", &EVERYWHERE, &[], damaged_record);
    add(registry, "vanished::unreadable", &PLAIN, &[], unreadable);
    add(registry, "vanished::untidied", &PLAIN, &[], untidied);
    for (name, play) in [
        ("state-directory", state_directory as fn(&mut World, Place) -> Outcome),
        ("state-directory-of-run", state_directory_of_run),
        ("directory-of-one", directory_of_one),
        ("listing", listing),
        ("keeper-killed", keeper_killed),
    ] {
        add(registry, &format!("vanished::{name}"), &EVERYWHERE, &[], play);
    }
    let strace = [Need::Program("strace")];
    add(registry, "vanished::tried-again", &AS_ROOT[..1], &strace, tried_again);
    for (name, play) in [
        ("asleep", asleep as fn(&mut World, Place) -> Outcome),
        ("log", log),
        ("only-the-lock", only_the_lock),
        ("one-of-two", one_of_two),
        ("while-all-are-stopped", while_all_are_stopped),
        ("followed", followed),
        ("group-closed", group_closed),
        ("ended-without-a-place", ended_without_a_place),
        ("a-directory-for-a-record", directory_for_a_record),
    ] {
        add(registry, &format!("vanished::{name}"), &ANYWHERE, &[], play);
    }
}

/// The rows of `ps --json`.
pub fn listed(world: &mut World, place: Place) -> Outcome<Vec<Value>> {
    let said = say(world, place, &["ps", "--json"])?;
    said.expect(0)?;
    said.json()?.as_array().cloned().context("no list")
}

/// A live run is shown and can be ended whatever its record looks like, and its keeper
/// writes a whole one again.
fn damaged_record(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    for (order, reason) in [("stop", "stopped"), ("kill", "killed")] {
        let id = start(world, place, &["--name", order], &["sh", "-c", QUIET])?;
        let leader = who(world, &id)?.leader;
        fs::write(dir(world, &id).join("record.json"), "{ \"version\": 1, \"id\"").context("it")?;
        let rows = listed(world, place)?;
        ensure!(rows.len() == 1, "{} are listed: {rows:?}", rows.len());
        let row = &rows[0];
        ensure!(row["id"] == id.as_str() && row["state"] == "damaged", "it is {row}");
        ensure!(row["live"] == true && row["name"] == order, "it is {row}");
        let shown = tell(world, place, &["show", &id])?;
        ensure!(shown.contains("damaged, live"), "it is shown as {shown}");
        ensure!(alive(&leader), "looking has hurt it");
        say(world, place, &[order, &id])?.expect(0)?;
        ensure!(!alive(&leader), "{order} left it alive");
        expect_over(world, &id, reason, proof(place))?;
    }
    all_clean(world)
}

/// Closes a directory to everybody, as long as that is done.
fn closed<T>(path: &Path, act: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    with_mode(0o000, path, act)
}

fn with_mode<T>(mode: u32, path: &Path, act: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    fs::set_permissions(path, Permissions::from_mode(mode)).context("close it")?;
    let done = act();
    fs::set_permissions(path, Permissions::from_mode(0o700)).context("open it again")?;
    done
}

/// What cannot be read is an error or is shown as damaged, and never an absence.
fn unreadable(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let id = start(world, place, &[], &["sh", "-c", QUIET])?;
    let leader = who(world, &id)?.leader;
    let state = world.state();
    closed(&dir(world, &id), || {
        let rows = listed(world, place)?;
        ensure!(rows.len() == 1 && rows[0]["state"] == "damaged", "it is listed as {rows:?}");
        ensure!(rows[0]["live"] == true, "it is listed as {rows:?}");
        let shown = tell(world, place, &["show", &id])?;
        ensure!(shown.contains("damaged, live"), "it is shown as {shown}");
        let doctor = say(world, place, &["doctor"])?;
        ensure!(doctor.out.contains(&format!("runs/{id}")), "a doctor says {}", doctor.out);
        let said = say(world, place, &["stop", "--all"])?;
        ensure!(said.ended != Ended::Code(0), "stop --all: {said:?}");
        ensure!(said.err.contains(&id), "stop --all does not name it: {said:?}");
        Ok(())
    })?;
    closed(&state.join("live"), || {
        for words in [&["ps"][..], &["stop", "--all"], &["sweep"]] {
            let said = say(world, place, words)?;
            said.expect(125)?;
            ensure!(said.err.contains("live"), "{words:?} said {:?}", said.err);
        }
        let doctor = say(world, place, &["doctor"])?;
        doctor.expect(1)?;
        ensure!(doctor.out.contains("/live"), "a doctor says {}", doctor.out);
        Ok(())
    })?;
    ensure!(alive(&leader) && live_ids(world) == [id.clone()], "it was hurt");
    say(world, place, &["stop", &id])?.expect(0)?;
    expect_over(world, &id, "stopped", proof(place))?;
    // What is over can be removed, and nothing was: a prune that cannot list looks first.
    with_mode(0o300, &state.join("live"), || {
        say(world, place, &["prune"])?.expect_one_line(125, "live")
    })?;
    expect_over(world, &id, "stopped", proof(place))?;
    all_clean(world)
}

/// What a sweep has killed is told, also if it cannot tidy up afterwards.
fn untidied(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let id = start(world, place, &[], &["sh", "-c", QUIET])?;
    let who = lose(world, &id)?;
    let runs = world.state().join("runs");
    with_mode(0o300, &runs, || {
        let said = say(world, place, &["sweep"])?;
        said.expect(0)?;
        ensure!(said.out.contains(&id) && said.out.contains("ended"), "it said {said:?}");
        ensure!(!alive(&who.leader), "it lives");
        Ok(())
    })?;
    all_clean(world)
}

pub fn remove(path: &Path) -> Outcome {
    fs::remove_dir_all(path).context(format!("remove {}", path.display()))
}

/// Wakes a keeper, as any death in its tree would, until this has come about. It looks at
/// most once a second.
pub(super) fn awake(keeper: &Process, what: &str, mut is_so: impl FnMut() -> bool) -> Outcome {
    let woken = || {
        let _ = send_signal(keeper.pid, Signal::CHILD);
        is_so()
    };
    ensure!(await_until(SOON, woken), "the keeper was awake, and {what}");
    Ok(())
}

/// Everything by which others find a run is there again.
pub(super) fn restored(world: &World, id: &str, who: &Who) -> Outcome {
    let dir = dir(world, id);
    let files = ["spec.json", "record.json", "lock", "control.sock", "record.room"];
    let is_there = || {
        files.iter().all(|name| dir.join(name).exists())
            && live_ids(world).contains(&id.to_owned())
            && events(world, id).iter().any(|event| event["type"] == "restored")
    };
    awake(&who.keeper, "did not restore it", is_there)?;
    ensure!(alive(&who.leader) && alive(&who.guard), "it was hurt");
    let record = record(world, id)?;
    ensure!(record["state"] == "running", "it is written down as {}", record["state"]);
    ensure!(record["keeper"]["pid"] == who.keeper.pid, "its keeper is {}", record["keeper"]);
    Ok(())
}

fn events(world: &World, id: &str) -> Vec<Value> {
    let text = fs::read_to_string(dir(world, id).join("events.jsonl")).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// What cannot be restored is tried again, by a keeper that nothing else wakes; and as
/// long as nothing is lost it looks at most once a second, however often it is woken.
fn tried_again(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let id = start(world, place, &[], &["sh", "-c", QUIET])?;
    let who = who(world, &id)?;
    let (state, calls) = (world.state(), world.dir().join("calls"));
    let traced = |what: &str| fs::read_to_string(&calls).unwrap_or_default().matches(what).count();
    let path = calls.display().to_string();
    let tracer = trace(world, &who.keeper, &["-e", "trace=%file,ppoll", "-o", &path])?;
    let (listing, begun) = (format!("\"live/{id}\""), Instant::now());
    awake(&who.keeper, "is seldom woken", || traced("ppoll") > 100 && traced(&listing) > 1)?;
    let (looks, passed) = (traced(&listing) as u64, begun.elapsed());
    ensure!(looks <= passed.as_secs() + 2, "it has looked {looks} times in {passed:?}");
    remove(&state)?;
    // Nothing can be made where something else stands.
    fs::write(&state, "").context("something else")?;
    awake(&who.keeper, "did not try", || traced("ENOTDIR") > 0)?;
    fs::remove_file(&state).context("remove it again")?;
    let is_restored = || dir(world, &id).join("control.sock").exists();
    ensure!(await_until(SOON, is_restored), "it did not try again");
    say(world, place, &["stop", "--all"])?.expect(0)?;
    world.wait(&tracer, SOON)?;
    expect_over(world, &id, "stopped", proof(place))?;
    all_clean(world)
}

/// The spec, but for what tells one lock from another.
fn spec(world: &World, id: &str) -> Outcome<Value> {
    let mut spec = read_json(&dir(world, id).join("spec.json"))?;
    spec["lock"] = Value::Null;
    Ok(spec)
}

/// A careless `rm -rf` costs an agent no work, and others can stop it again.
fn state_directory(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let options = ["--name", "agent", "--env", "KEY=value"];
    let id = start(world, place, &options, &["sh", "-c", QUIET])?;
    let (who, before) = (who(world, &id)?, spec(world, &id)?);
    remove(&world.state())?;
    restored(world, &id, &who)?;
    let after = spec(world, &id)?;
    ensure!(after == before, "the spec is\n{after}\nand was\n{before}");
    let rows = listed(world, place)?;
    ensure!(rows.len() == 1 && rows[0]["state"] == "running", "it is listed as {rows:?}");
    let told = tell(world, place, &["events", "agent"])?;
    ensure!(told.contains("restored: lock, listing, spec"), "the events are {told}");
    ensure!(told.contains("lost: ") && told.contains("events"), "the events are {told}");
    say(world, place, &["stop", "--all"])?.expect(0)?;
    ensure!(!alive(&who.leader), "it was not stopped");
    expect_over(world, &id, "stopped", proof(place))?;
    all_clean(world)
}

/// The same for a run in front, whose caller sees nothing of it.
fn state_directory_of_run(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let cage = place.cage.to_string();
    let run = ask(world, place, &["run", "--cage", &cage, "--", "sh", "-c", QUIET])?;
    ensure!(await_until(SOON, || live_ids(world).len() == 1), "nothing is listed");
    let id = live_ids(world).remove(0);
    let who = who(world, &id)?;
    remove(&world.state())?;
    restored(world, &id, &who)?;
    say(world, place, &["stop", "--all"])?.expect(0)?;
    let said = run.hear(world, SOON)?;
    ensure!(said.ended == Ended::Signal(15), "run ended with {}", said.ended);
    ensure!(said.err.is_empty(), "run said {:?}", said.err);
    expect_over(world, &id, "stopped", proof(place))?;
    all_clean(world)
}

/// One loses its directory, and another nothing.
fn directory_of_one(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let id = start(world, place, &[], &["sh", "-c", QUIET])?;
    let other = start(world, place, &[], &["sh", "-c", QUIET])?;
    let (who, bystander) = (who(world, &id)?, who(world, &other)?);
    let before = read_json(&dir(world, &other).join("spec.json"))?;
    remove(&dir(world, &id))?;
    let rows = listed(world, place)?;
    ensure!(rows.len() == 2 && rows.iter().all(|row| row["live"] == true), "{rows:?}");
    restored(world, &id, &who)?;
    let after = read_json(&dir(world, &other).join("spec.json"))?;
    ensure!(after == before, "the other has another lock");
    let told = events(world, &other);
    ensure!(told.iter().all(|event| event["type"] != "restored"), "the other: {told:?}");
    say(world, place, &["stop", &id])?.expect(0)?;
    expect_over(world, &id, "stopped", proof(place))?;
    ensure!(alive(&bystander.leader), "the other was stopped");
    say(world, place, &["stop", &other])?.expect(0)?;
    all_clean(world)
}

fn listing(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let id = start(world, place, &[], &["sh", "-c", QUIET])?;
    let who = who(world, &id)?;
    let old = spec(world, &id)?;
    fs::remove_file(world.state().join("live").join(&id)).context("remove the listing")?;
    restored(world, &id, &who)?;
    ensure!(spec(world, &id)? == old, "the spec was changed");
    ensure!(tell(world, place, &["ps", "-q"])?.trim_end() == id, "it is not listed");
    say(world, place, &["stop", "--all"])?.expect(0)?;
    expect_over(world, &id, "stopped", proof(place))?;
    all_clean(world)
}

/// The guard, which holds what was removed, finds what the keeper has restored; and makes
/// it itself where the keeper had no time to.
fn keeper_killed(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    for is_restored in [true, false] {
        let id = start(world, place, &[], &["sh", "-c", QUIET])?;
        let who = who(world, &id)?;
        remove(&world.state())?;
        if is_restored {
            restored(world, &id, &who)?;
        }
        send_signal(who.keeper.pid, Signal::KILL)?;
        ensure!(await_until(SOON, || !alive(&who.guard)), "the guard does not leave");
        ensure!(!alive(&who.leader), "the leader lives");
        expect_over(world, &id, "keeper-died", proof(place))?;
        let told = events(world, &id);
        ensure!(told.iter().any(|event| event["type"] == "restored"), "the events: {told:?}");
    }
    all_clean(world)
}

/// A keeper that has not looked yet: its run is shown, and a stop that cannot reach it
/// says so.
fn asleep(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let id = start(world, place, &[], &["sh", "-c", QUIET])?;
    let who = who(world, &id)?;
    freeze(&who)?;
    remove(&dir(world, &id))?;
    let rows = listed(world, place)?;
    ensure!(rows.len() == 1 && rows[0]["id"] == id.as_str(), "it is listed as {rows:?}");
    ensure!(rows[0]["state"] == "damaged" && rows[0]["live"] == true, "it is {}", rows[0]);
    let said = say(world, place, &["stop", "--all"])?;
    ensure!(said.ended != Ended::Code(0), "stop --all is content: {said:?}");
    ensure!(said.err.contains(&id), "stop --all does not name it: {said:?}");
    thaw(&who);
    restored(world, &id, &who)?;
    say(world, place, &["stop", "--all"])?.expect(0)?;
    expect_over(world, &id, "stopped", proof(place))?;
    all_clean(world)
}

/// What was logged before is lost, and said to be; what comes after is not.
fn log(world: &mut World, place: Place) -> Outcome {
    let (_never, _go) = (Lines::create(world, "never")?, Lines::create(world, "go")?);
    let command = format!("echo before; read n < go; echo after; {QUIET}");
    let id = start(world, place, &[], &["sh", "-c", &command])?;
    let who = who(world, &id)?;
    let logs = |world: &mut World| tell(world, place, &["logs", &id]);
    ensure!(await_until(SOON, || logs(world).is_ok_and(|it| it == "before\n")), "no output");
    remove(&dir(world, &id))?;
    restored(world, &id, &who)?;
    let lost = events(world, &id).into_iter().find(|event| event["type"] == "restored");
    let lost = lost.map(|event| event["lost"].to_string()).unwrap_or_default();
    ensure!(lost.contains("out") && lost.contains("events"), "lost is {lost}");
    fs::write(world.dir().join("go"), "x\n").context("let it go on")?;
    let has_rest = || logs(world).is_ok_and(|it| it.ends_with("after\n"));
    ensure!(await_until(SOON, has_rest), "the output after it is lost: {:?}", logs(world));
    say(world, place, &["stop", &id])?.expect(0)?;
    let report = record(world, &id)?["report"]["output"].clone();
    ensure!(report[0]["bytes"] == 13 && report[0]["cut"] == 7, "the report says {report}");
    all_clean(world)
}

/// What is still there is not lost, whatever else is.
fn only_the_lock(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let id = start(world, place, &[], &["sh", "-c", &format!("echo before; {QUIET}")])?;
    let who = who(world, &id)?;
    let logs = |world: &mut World| tell(world, place, &["logs", &id]);
    ensure!(await_until(SOON, || logs(world).is_ok_and(|it| it == "before\n")), "no output");
    for name in [dir(world, &id).join("lock"), world.state().join("live").join(&id)] {
        fs::remove_file(name).context("a name of the lock")?;
    }
    restored(world, &id, &who)?;
    let all = events(world, &id);
    let restored = all.iter().find(|event| event["type"] == "restored").context("it is told")?;
    ensure!(restored["lost"] == Value::Array(Vec::new()), "lost is {restored}");
    ensure!(all.iter().any(|event| event["type"] == "started"), "its events are {all:?}");
    ensure!(logs(world)? == "before\n", "its output is {:?}", logs(world));
    say(world, place, &["stop", &id])?.expect(0)?;
    let report = record(world, &id)?["report"]["output"].clone();
    ensure!(report[0]["bytes"] == 7 && report[0]["cut"] == 0, "the report says {report}");
    all_clean(world)
}

/// Who follows its events is told of the restoring and of the end, in a file that was begun
/// anew.
fn followed(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let id = start(world, place, &[], &["sh", "-c", QUIET])?;
    let who = who(world, &id)?;
    let (follower, seen) = collected(world, place, &["events", "-f", "--json", &id])?;
    let has = |event: &str| {
        let word = format!("\"type\":\"{event}\"");
        String::from_utf8_lossy(&seen.so_far()).contains(&word)
    };
    ensure!(await_until(SOON, || has("started")), "its birth is not shown");
    remove(&dir(world, &id))?;
    restored(world, &id, &who)?;
    ensure!(await_until(SOON, || has("restored")), "that it was restored is not shown");
    say(world, place, &["stop", &id])?.expect(0)?;
    ensure!(await_until(SOON, || has("ended")), "its end is not shown");
    let _ = send_signal(follower.pid, Signal::TERM);
    world.wait(&follower, SOON)?;
    all_clean(world)
}

/// A group that was closed while its member was lost to it is closed to that too. Its member
/// is told so once, however long it takes to leave.
fn group_closed(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let options = ["--group", "plan/a", "--ladder", "term@leader:3s,kill"];
    let deaf = format!("trap '' TERM; {QUIET}");
    let id = start(world, place, &options, &["sh", "-c", &deaf])?;
    let who = who(world, &id)?;
    remove(&world.state())?;
    let said = say(world, place, &["group", "close", "plan"])?;
    said.expect_one_line(120, &id)?;
    ensure!(alive(&who.leader), "it could not be found, and was stopped");
    awake(&who.keeper, "did not stop", || !alive(&who.leader))?;
    ensure!(await_until(SOON, || !alive(&who.guard)), "the guard does not leave");
    expect_over(world, &id, "group-closed", proof(place))?;
    let all = events(world, &id);
    let restored = all.iter().filter(|event| event["type"] == "restored").count();
    ensure!(restored == 1, "it was restored {restored} times");
    all_clean(world)
}

/// The end itself is written even if the directory went a moment before it.
fn ended_without_a_place(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let id = start(world, place, &["--ladder", "kill"], &["sh", "-c", QUIET])?;
    let who = who(world, &id)?;
    remove(&world.state())?;
    send_signal(who.keeper.pid, Signal::TERM)?;
    ensure!(await_until(SOON, || !alive(&who.guard)), "the guard does not leave");
    expect_over(world, &id, "stopped", proof(place))?;
    ensure!(run_ids(world) == [id], "there are other runs");
    all_clean(world)
}

/// Something that is no file stands where the record was: the end is written down all the
/// same, and all of it can be removed.
fn directory_for_a_record(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let id = start(world, place, &[], &["sh", "-c", QUIET])?;
    let record = dir(world, &id).join("record.json");
    fs::remove_file(&record).context("record")?;
    fs::create_dir_all(record.join("below")).context("record")?;
    say(world, place, &["stop", &id])?.expect(0)?;
    expect_over(world, &id, "stopped", proof(place))?;
    say(world, place, &["rm", &id])?.expect(0)?;
    ensure!(run_ids(world).is_empty(), "it is left");
    all_clean(world)
}

/// That others are listed hides no run that is not.
fn one_of_two(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let id = start(world, place, &[], &["sh", "-c", QUIET])?;
    let who = who(world, &id)?;
    start(world, place, &[], &["sh", "-c", QUIET])?;
    fs::remove_file(world.state().join("live").join(&id)).context("its listing")?;
    let said = say(world, place, &["stop", "--all"])?;
    said.expect(120)?;
    ensure!(said.err.contains(&id), "it is not named: {:?}", said.err);
    ensure!(alive(&who.leader), "it was ended unlisted");
    restored(world, &id, &who)?;
    tell(world, place, &["stop", "--all"])?;
    ensure!(!alive(&who.leader), "it lives");
    all_clean(world)
}

/// A run that is listed again while all are stopped is stopped, or named.
fn while_all_are_stopped(world: &mut World, place: Place) -> Outcome {
    const ROUNDS: u64 = 4;
    for round in 0..ROUNDS {
        let command = "while :; do echo here; sleep 0.05; done";
        let id = start(world, place, &[], &["sh", "-c", command])?;
        let who = who(world, &id)?;
        // The keeper looks at most once a second: at another moment each time.
        std::thread::sleep(Duration::from_millis(400 + 150 * round));
        fs::remove_file(world.state().join("live").join(&id)).context("its listing")?;
        let said = say(world, place, &["stop", "--all"])?;
        let is_stopped = said.ended == Ended::Code(0) && !alive(&who.leader);
        let is_named = said.ended == Ended::Code(120) && said.err.contains(&id);
        ensure!(is_stopped || is_named, "it lives, and this was said: {said:?}");
        if is_named {
            restored(world, &id, &who)?;
            tell(world, place, &["stop", "--all"])?;
        }
    }
    all_clean(world)
}
