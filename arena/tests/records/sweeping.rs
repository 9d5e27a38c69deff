//! Keeper and guard are killed at the same instant: the next command cleans up.

use std::fs;

use arena::{
    Context, Outcome, Process, Ready, Registry, Signal, World, await_until, ensure, seconds,
    send_signal,
};

use super::desk::{
    Who, alive, all_clean, ask, behead, census, counted, dir, edit, expect_over, live_ids, lose,
    names, nobody, proof, record, run_ids, say, start, swept_proof, tell, who, zoo,
};
use crate::kit::{
    ANYWHERE, Cage, EVERYWHERE, Launch, Lines, Place, Run, SOON, add, children, no_cgroup,
};

pub fn register(registry: &mut Registry) {
    for (name, play) in [
        ("next-ps", (|w, p| next(w, p, &["ps"])) as fn(&mut World, Place) -> Outcome),
        ("next-sweep", |w, p| next(w, p, &["sweep"])),
        ("next-stop", |w, p| next(w, p, &["stop", "lost"])),
        ("next-kill", |w, p| next(w, p, &["kill", "lost"])),
        ("next-stop-of-another", |w, p| next(w, p, &["stop", "other"])),
        ("next-wait", |w, p| next(w, p, &["wait", "lost"])),
        ("next-start", |w, p| next(w, p, &["start", "--", "true"])),
        ("next-run", |w, p| next(w, p, &["run", "--", "true"])),
        ("restart-of-the-lost", restart_lost),
        ("of-a-run-in-front", in_front),
        ("in-the-middle-of-a-stop", stopping),
        ("says-what-it-did", says),
        ("dry-run", dry_run),
        ("two-at-once", two_at_once),
        ("live-ones-are-left", live_ones),
        ("released-ones-are-left", released),
        ("before-the-first-record", first_record),
        ("before-the-spec", before_spec),
        ("half-put-away", put_away),
        ("in-a-group", in_group),
        ("hostile-members", hostile),
    ] {
        add(registry, &format!("sweep::{name}"), &EVERYWHERE, &[], play);
    }
    add(registry, "sweep::unlisted", &ANYWHERE, &[], unlisted);
    let tree = [EVERYWHERE[1], EVERYWHERE[3]];
    for (name, play) in [
        ("by-identity", by_identity as fn(&mut World, Place) -> Outcome),
        ("by-marker", by_marker),
        ("by-parent", by_parent),
    ] {
        add(registry, &format!("sweep::{name}"), &tree, &[], play);
    }
}

/// A leader with an orphan in a session of its own, both deaf.
const TWO: &str = "trap '' TERM; (setsid sh -c 'trap \"\" TERM; echo up > ready; \
                   while :; do read n < never; done' &) ; while :; do read n < never; done";

struct Lost {
    id: String,
    who: Who,
    members: Vec<Process>,
    _never: Lines,
}

/// A run whose keeper and guard are gone, and whose two members live.
fn lost(world: &mut World, place: Place, options: &[&str]) -> Outcome<Lost> {
    let mut ready = Lines::create(world, "ready")?;
    let never = Lines::create(world, "never")?;
    let id = start(world, place, options, &["sh", "-c", TWO])?;
    ready.expect("up")?;
    let found = who(world, &id)?;
    let shells = || -> Vec<Process> {
        let all = world.survivors();
        all.into_iter().filter(|p| p.comm == "sh").collect()
    };
    // The one that forked the orphan may still be there.
    ensure!(await_until(SOON, || shells().len() == 2), "there are {} members", shells().len());
    let members = shells();
    let pids: Vec<i32> = members.iter().map(|member| member.pid).collect();
    if place.cage == Cage::Tree {
        counted(world, &id, &pids)?;
    }
    behead(&found)?;
    Ok(Lost { id, who: found, members, _never: never })
}

fn next(world: &mut World, place: Place, words: &[&str]) -> Outcome {
    if words.contains(&"other") {
        start(world, place, &["--name", "other"], &["sleep", "100"])?;
    }
    let lost = lost(world, place, &["--name", "lost"])?;
    let said = say(world, place, words)?;
    match words[0] {
        "wait" => said.expect(137)?,
        _ => said.expect(0)?,
    }
    match words[0] {
        // They sweep in the background, beside what they were asked for.
        "start" | "run" => world.expect_extinct(SOON)?,
        _ => nobody(world)?,
    }
    ensure!(!lost.members.iter().any(alive), "a member lives");
    let finished = || live_ids(world).is_empty();
    ensure!(await_until(SOON, finished), "still listed: {:?}", live_ids(world));
    expect_over(world, &lost.id, "keeper-died", swept_proof(place))?;
    all_clean(world)
}

fn restart_lost(world: &mut World, place: Place) -> Outcome {
    let lost = lost(world, place, &["--grace", "100ms"])?;
    let said = tell(world, place, &["restart", &lost.id])?;
    ensure!(said.contains("generation 2"), "it said {said:?}");
    ensure!(!lost.members.iter().any(alive), "the old generation lives");
    who(world, &lost.id)?;
    tell(world, place, &["kill", &lost.id])?;
    nobody(world)?;
    all_clean(world)
}

/// A run in front, of two, that others can find.
fn front(world: &mut World, place: Place) -> Outcome<(Run, String, Lines)> {
    let mut ready = Lines::create(world, "ready")?;
    let never = Lines::create(world, "never")?;
    let run = Launch::new(place).start(world, &["sh", "-c", TWO])?;
    ready.expect("up")?;
    ensure!(await_until(SOON, || live_ids(world).len() == 1), "it is not listed");
    Ok((run, live_ids(world).remove(0), never))
}

/// The record may not say yet why it was stopped, but it was told.
fn stopping(world: &mut World, place: Place) -> Outcome {
    let (run, id, _never) = front(world, place)?;
    let found = who(world, &id)?;
    send_signal(run.pid(), Signal::TERM)?;
    let events = dir(world, &id).join("events.jsonl");
    let is_told = || fs::read_to_string(&events).is_ok_and(|text| text.contains("@leader"));
    ensure!(await_until(SOON, is_told), "no step was told");
    behead(&found)?;
    tell(world, place, &["sweep"])?;
    nobody(world)?;
    expect_over(world, &id, "stopped", swept_proof(place))?;
    all_clean(world)
}

/// `fullstop run` is its own guard.
fn in_front(world: &mut World, place: Place) -> Outcome {
    let (run, id, _never) = front(world, place)?;
    let found = lose(world, &id)?;
    ensure!(found.guard.pid == run.pid(), "another guard: {}", found.guard);
    let listed = tell(world, place, &["ps", "--json"])?;
    nobody(world)?;
    ensure!(listed.trim() == "[]", "it is listed: {listed}");
    expect_over(world, &id, "keeper-died", swept_proof(place))?;
    all_clean(world)
}

fn says(world: &mut World, place: Place) -> Outcome {
    let lost = lost(world, place, &["--name", "lost"])?;
    let said = tell(world, place, &["sweep"])?;
    let line = format!("{} lost ended: 2 killed, {}\n", lost.id, swept_proof(place));
    ensure!(said == line, "it said {said:?}, not {line:?}");
    ensure!(tell(world, place, &["sweep"])? == "nothing to sweep\n", "there is still something");
    let report = record(world, &lost.id)?["report"].clone();
    ensure!(report["exit"] == "unknown", "the leader's end cannot be known: {}", report["exit"]);
    ensure!(report["steps"][0]["step"] == "kill", "the steps are {}", report["steps"]);
    let killed = report["steps"][0]["alive"].as_u64();
    ensure!(killed == Some(2), "{killed:?} were counted");
    all_clean(world)
}

/// It says what it would do, and does nothing at all.
fn dry_run(world: &mut World, place: Place) -> Outcome {
    let lost = lost(world, place, &[])?;
    let image = |world: &World| -> Outcome<Vec<(String, Vec<u8>)>> {
        let dir = dir(world, &lost.id);
        let mut files = Vec::new();
        for name in names(&dir).into_iter().filter(|name| name != "control.sock") {
            files.push((name.clone(), fs::read(dir.join(&name)).context(name)?));
        }
        Ok(files)
    };
    let before = image(world)?;
    for words in [&["sweep", "--dry-run"][..], &["sweep", "--dry-run", "--json"]] {
        let said = tell(world, place, words)?;
        ensure!(said.contains(&lost.id), "it says nothing of it: {said:?}");
        ensure!(said.contains("2 alive") || said.contains("\"alive\":2"), "it said {said:?}");
    }
    for member in &lost.members {
        ensure!(alive(member), "{member} was touched");
        let status =
            fs::read_to_string(format!("/proc/{}/status", member.pid)).context("status")?;
        let pending =
            status.lines().filter(|line| line.starts_with("ShdPnd") || line.starts_with("SigPnd"));
        for line in pending {
            ensure!(line.ends_with("0000000000000000"), "{member} has {line}");
        }
    }
    ensure!(image(world)? == before, "something was written");
    ensure!(live_ids(world) == [lost.id.clone()], "it was put away");
    tell(world, place, &["sweep"])?;
    nobody(world)?;
    all_clean(world)
}

/// Sweepers do not meet: one ends it, and it is written down once.
fn two_at_once(world: &mut World, place: Place) -> Outcome {
    let lost = lost(world, place, &[])?;
    let words = [&["sweep"][..], &["ps"], &["sweep"], &["stop", "--all"], &["sweep"]];
    let all: Vec<_> = words.iter().map(|words| ask(world, place, words)).collect::<Outcome<_>>()?;
    for asked in all {
        asked.hear(world, seconds(10))?.expect(0)?;
    }
    nobody(world)?;
    let events = fs::read_to_string(dir(world, &lost.id).join("events.jsonl")).context("events")?;
    let ends = events.lines().filter(|line| line.contains("\"ended\"")).count();
    ensure!(ends == 1, "it ended {ends} times: {events}");
    expect_over(world, &lost.id, "keeper-died", swept_proof(place))?;
    all_clean(world)
}

/// Another window's agents: whoever is looked after is not touched.
fn live_ones(world: &mut World, place: Place) -> Outcome {
    let _other_never = Lines::create(world, "also-never")?;
    let script = "while :; do read n < also-never; done";
    let mut live = Vec::new();
    for _ in 0..3 {
        let id = start(world, place, &[], &["sh", "-c", script])?;
        live.push((who(world, &id)?, id));
    }
    let lost = {
        let mut ready = Lines::create(world, "ready")?;
        let never = Lines::create(world, "never")?;
        let id = start(world, place, &[], &["sh", "-c", TWO])?;
        ready.expect("up")?;
        behead(&who(world, &id)?)?;
        (id, never)
    };
    for words in [&["sweep"][..], &["ps"], &["sweep"], &["start", "--", "true"]] {
        say(world, place, words)?.expect(0)?;
    }
    // Those that live sweep once they are settled, and one of them may be at it.
    ensure!(await_until(SOON, || !live_ids(world).contains(&lost.0)), "it is still listed");
    expect_over(world, &lost.0, "keeper-died", swept_proof(place))?;
    for (who, id) in &live {
        for process in [&who.guard, &who.keeper, &who.leader] {
            ensure!(alive(process), "{process} of {id} was touched");
        }
        ensure!(record(world, id)?["state"] == "running", "{id} was written to");
    }
    tell(world, place, &["stop", "--all"])?;
    nobody(world)?;
    for (_, id) in &live {
        expect_over(world, id, "stopped", proof(place))?;
    }
    all_clean(world)
}

/// What was let go is nobody's to end.
fn released(world: &mut World, place: Place) -> Outcome {
    let mut ready = Lines::create(world, "ready")?;
    let never = Lines::create(world, "never")?;
    let script = "setsid sh -c 'echo up > ready; read n < never' & exit 0";
    let id = start(world, place, &["--on-exit", "release"], &["sh", "-c", script])?;
    ready.expect("up")?;
    say(world, place, &["wait", &id])?;
    let released = || record(world, &id).is_ok_and(|r| r["state"] == "released");
    ensure!(await_until(SOON, released), "it was not released");
    let free: Vec<Process> =
        world.survivors().into_iter().filter(|process| process.comm == "sh").collect();
    ensure!(free.len() == 1, "{} were released", free.len());
    for words in [&["sweep"][..], &["ps"], &["stop", &id], &["kill", &id], &["stop", "--all"]] {
        say(world, place, words)?;
        ensure!(alive(&free[0]), "{words:?} ended what was released");
    }
    send_signal(free[0].pid, Signal::KILL)?;
    world.expect_extinct(SOON)?;
    drop(never);
    world.expect_bystanders_untouched()?;
    ensure!(live_ids(world).is_empty(), "it is listed");
    // Its cgroup, if it has one, is empty now; whether it stays is told apart.
    if let Err(left) = no_cgroup(world) {
        for cgroup in world.cgroup().map(arena::Cgroup::children).unwrap_or_default() {
            world.note(format!("left: {}", cgroup.path().display()));
        }
        tell(world, place, &["sweep"])?;
        tell(world, place, &["prune"])?;
        no_cgroup(world).context(left.text)?;
    }
    Ok(())
}

/// Only the spec was written: it says enough.
fn first_record(world: &mut World, place: Place) -> Outcome {
    let lost = lost(world, place, &[])?;
    fs::remove_file(dir(world, &lost.id).join("record.json")).context("record")?;
    let listed = tell(world, place, &["sweep"])?;
    ensure!(listed.contains(&lost.id), "it said {listed:?}");
    nobody(world)?;
    expect_over(world, &lost.id, "keeper-died", swept_proof(place))?;
    all_clean(world)
}

/// Killed between making the directory and writing the spec: nobody was born, and
/// nothing is left of it.
fn before_spec(world: &mut World, place: Place) -> Outcome {
    let first = start(world, place, &[], &["true"])?;
    say(world, place, &["wait", &first])?.expect(0)?;
    nobody(world)?;
    tell(world, place, &["rm", &first])?;
    let run = dir(world, &first);
    for (name, spec) in [("nothing", None), ("half", Some("{\"version\":1,\"id\":\""))] {
        fs::create_dir(&run).context("directory")?;
        fs::write(run.join("lock"), "").context("lock")?;
        if let Some(spec) = spec {
            fs::write(run.join("spec.json.new"), spec).context("spec")?;
        }
        fs::hard_link(run.join("lock"), world.state().join("live").join(&first)).context("link")?;
        for path in names(&run).into_iter().map(|name| run.join(name)).chain([run.clone()]) {
            std::os::unix::fs::chown(&path, Some(place.user.uid()), Some(place.user.uid()))
                .context("chown")?;
        }
        say(world, place, &["sweep"])?.expect(0).context(name)?;
        ensure!(live_ids(world).is_empty(), "{name}: it is still listed");
        ensure!(run_ids(world).is_empty(), "{name}: its directory is left");
    }
    all_clean(world)
}

/// Killed between the last word and putting it away.
fn put_away(world: &mut World, place: Place) -> Outcome {
    let id = start(world, place, &[], &["sh", "-c", "exit 3"])?;
    say(world, place, &["wait", &id])?.expect(3)?;
    nobody(world)?;
    let before = record(world, &id)?;
    let run = dir(world, &id);
    fs::write(run.join("lock"), "").context("lock")?;
    fs::hard_link(run.join("lock"), world.state().join("live").join(&id)).context("link")?;
    std::os::unix::fs::chown(run.join("lock"), Some(place.user.uid()), None).context("chown")?;
    let said = tell(world, place, &["sweep"])?;
    ensure!(said.contains("put away"), "it said {said:?}");
    ensure!(record(world, &id)? == before, "the last word was changed");
    say(world, place, &["wait", &id])?.expect(3)?;
    all_clean(world)
}

/// Killed before it was listed, or after it was not any more: nothing leads there but a
/// look at all there is, which an explicit sweep can afford.
fn unlisted(world: &mut World, place: Place) -> Outcome {
    let id = start(world, place, &[], &["true"])?;
    say(world, place, &["wait", &id])?.expect(0)?;
    nobody(world)?;
    let run = dir(world, &id);
    // As if long ago: one that is just being born looks the same for a moment.
    let long_ago = std::time::SystemTime::now() - seconds(3600);
    let blank = world.state().join("runs").join("0000000000000");
    fs::create_dir(&blank).context("directory")?;
    for (dir, file) in [(&run, "lock"), (&run, "control.sock"), (&blank, "lock")] {
        fs::write(dir.join(file), "").context("leavings")?;
        let file = fs::File::open(dir.join(file)).and_then(|file| file.set_modified(long_ago));
        file.context("age")?;
        let dir = fs::File::open(dir).and_then(|dir| dir.set_modified(long_ago));
        dir.context("age")?;
    }
    let listed = say(world, place, &["ps", "--all", "--json"])?.json()?;
    world.note(format!("ps says {listed}"));
    tell(world, place, &["sweep"])?;
    ensure!(!blank.exists(), "a directory of nobody is left");
    for name in ["lock", "control.sock"] {
        ensure!(!run.join(name).exists(), "a run that is over has left its {name}");
    }
    all_clean(world)
}

/// What is swept leaves its group.
fn in_group(world: &mut World, place: Place) -> Outcome {
    let lost = lost(world, place, &["--group", "plan/research"])?;
    tell(world, place, &["sweep"])?;
    nobody(world)?;
    let members = world.state().join("groups/plan/research/.members");
    ensure!(names(&members).is_empty(), "it is still a member: {:?}", names(&members));
    expect_over(world, &lost.id, "keeper-died", swept_proof(place))?;
    ensure!(!alive(&lost.who.leader), "the leader lives");
    all_clean(world)
}

/// Members that do not want to be found.
fn hostile(world: &mut World, place: Place) -> Outcome {
    for member in ["daemon", "respawn-pair", "own-session", "stopped-child", "daemon-bare-env"] {
        let fifo = world.dir().join("ready");
        let _ = fs::remove_file(&fifo);
        let mut ready = Ready::create(&world.dir())?;
        let words = zoo(world, member);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let id = start(world, place, &[], &words)?;
        let count = ready.wait(seconds(10)).context("it is not ready")?;
        let found = who(world, &id)?;
        if place.cage == Cage::Tree {
            // Those who never change are counted; a pair that respawns is a moving one.
            ensure!(
                await_until(SOON, || census(world, &id).len() >= count),
                "{member}: {:?} of {count} are counted",
                census(world, &id)
            );
        }
        behead(&found)?;
        let said = tell(world, place, &["sweep"])?;
        nobody(world).context(format!("{member}: {said}"))?;
        expect_over(world, &id, "keeper-died", swept_proof(place)).context(member)?;
    }
    all_clean(world)
}

/// Without a marker, by what was written down alone.
fn by_identity(world: &mut World, place: Place) -> Outcome {
    let (mut ready, _never) = (Lines::create(world, "ready")?, Lines::create(world, "never")?);
    let script = "(setsid env -i sh -c 'echo up > ready; while :; do read n < never; done' &); \
                  while :; do read n < never; done";
    let id = start(world, place, &[], &["sh", "-c", script])?;
    ready.expect("up")?;
    let found = who(world, &id)?;
    let shells =
        || -> Vec<Process> { world.survivors().into_iter().filter(|p| p.comm == "sh").collect() };
    ensure!(await_until(SOON, || shells().len() == 2), "there are {} members", shells().len());
    let members = shells();
    let pids: Vec<i32> = members.iter().map(|member| member.pid).collect();
    counted(world, &id, &pids)?;
    let bare = members.iter().find(|member| member.pid != found.leader.pid).context("orphan")?;
    ensure!(environ(bare.pid).is_empty(), "it has an environment");
    behead(&found)?;
    tell(world, place, &["sweep"])?;
    nobody(world)?;
    all_clean(world)
}

/// Born after the last census, orphaned, with the marker in its environment.
fn by_marker(world: &mut World, place: Place) -> Outcome {
    let (mut ready, _never) = (Lines::create(world, "ready")?, Lines::create(world, "never")?);
    let _go = Lines::create(world, "go")?;
    // The leader is gone as well by the time of the sweep: only the marker is left.
    let script = "echo up > ready; read g < go; \
                  (setsid sh -c 'echo born > ready; while :; do read n < never; done' &); exit 0";
    let id = start(world, place, &[], &["sh", "-c", script])?;
    ready.expect("up")?;
    let found = who(world, &id)?;
    counted(world, &id, &[found.leader.pid])?;
    behead(&found)?;
    fs::write(world.dir().join("go"), "now\n").context("go")?;
    ready.expect("born")?;
    super::desk::expect_gone(&found.leader, SOON)?;
    let orphan = only_shell(world)?;
    ensure!(orphan.ppid == 1, "it is no orphan: {orphan}");
    ensure!(
        !census(world, &id).iter().any(|&(pid, _)| pid == i64::from(orphan.pid)),
        "it is counted"
    );
    ensure!(environ(orphan.pid).contains(&id), "it has no marker");
    tell(world, place, &["sweep"])?;
    nobody(world)?;
    expect_over(world, &id, "keeper-died", "scan-clean")?;
    all_clean(world)
}

/// Born after the last census without a marker, but to a parent that is known.
fn by_parent(world: &mut World, place: Place) -> Outcome {
    let (mut ready, _never) = (Lines::create(world, "ready")?, Lines::create(world, "never")?);
    let _go = Lines::create(world, "go")?;
    let script = "echo up > ready; read g < go; \
                  env -i sh -c 'echo born > ready; while :; do read n < never; done' & \
                  while :; do read n < never; done";
    let id = start(world, place, &[], &["sh", "-c", script])?;
    ready.expect("up")?;
    let found = who(world, &id)?;
    counted(world, &id, &[found.leader.pid])?;
    behead(&found)?;
    fs::write(world.dir().join("go"), "now\n").context("go")?;
    ready.expect("born")?;
    let child = children(found.leader.pid);
    ensure!(child.len() == 1 && environ(child[0].pid).is_empty(), "{child:?}");
    tell(world, place, &["sweep"])?;
    nobody(world)?;
    edit(world, &id, "record.json", |_| ())?;
    all_clean(world)
}

fn only_shell(world: &World) -> Outcome<Process> {
    let mut shells: Vec<Process> =
        world.survivors().into_iter().filter(|p| p.comm == "sh").collect();
    ensure!(shells.len() == 1, "there are {} shells", shells.len());
    shells.pop().context("no shell")
}

fn environ(pid: i32) -> String {
    let bytes = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}
