//! Records of another pid namespace, another machine, another boot; records that
//! cannot be read. Pids mean nothing there, and nobody is signalled by them.

use std::fs;

use arena::{Context, Outcome, Process, Registry, World, await_until, ensure};
use serde_json::{Value, json};

use super::desk::{
    QUIET, Who, alive, all_clean, dir, edit, expect_gone, expect_over, kill_frozen, live_ids, lose,
    nobody, record, say, start, swept_proof, tell, who,
};
use crate::kit::{AS_ROOT, Cage, EVERYWHERE, Lines, Place, SOON, add};

pub fn register(registry: &mut Registry) {
    for (name, play) in [
        (
            "another-pid-namespace",
            (|w, p| elsewhere(w, p, "pid_namespace", &json!(1)))
                as fn(&mut World, Place) -> Outcome,
        ),
        ("another-machine", |w, p| elsewhere(w, p, "machine", &json!("other"))),
        ("another-boot", another_boot),
        ("another-boot-of-another-machine", other_boot_of_other),
        ("a-damaged-record", damaged_record),
        ("a-damaged-spec", damaged_spec),
        ("both-damaged", both_damaged),
        ("a-newer-version", newer),
        ("a-live-run-elsewhere", live_elsewhere),
    ] {
        add(registry, &format!("worlds::{name}"), &EVERYWHERE, &[], play);
    }
    add(registry, "worlds::a-real-namespace", &AS_ROOT, &[], real_namespace);
    add(registry, "worlds::others-are-not-failed", &EVERYWHERE, &[], others);
    add(registry, "worlds::forgotten", &EVERYWHERE, &[], forgotten);
    add(registry, "worlds::not-forgotten", &EVERYWHERE, &[], not_forgotten);
    add(registry, "worlds::a-container-that-is-gone", &AS_ROOT, &[], gone_container);
}

fn set_world(world: &World, id: &str, field: &str, value: &Value) -> Outcome {
    for file in ["record.json", "spec.json"] {
        edit(world, id, file, |file| file["world"][field] = value.clone())?;
    }
    Ok(())
}

/// The world as it is, to be written back.
fn own_world(world: &World, id: &str) -> Outcome<Value> {
    Ok(record(world, id)?["world"].clone())
}

const COMMANDS: [&[&str]; 4] =
    [&["ps"], &["sweep"], &["start", "--", "true"], &["sweep", "--json"]];

/// Nobody but the leader is there any more: what was started to sweep has swept.
fn alone(world: &World, found: &Who) -> Outcome {
    let alone = || world.survivors().iter().all(|process| process.pid == found.leader.pid);
    ensure!(await_until(SOON, alone), "others are still there");
    ensure!(alive(&found.leader), "it was touched");
    Ok(())
}

/// It is left alone, with everybody in it, until it is where it belongs.
fn elsewhere(world: &mut World, place: Place, field: &str, value: &Value) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let id = start(world, place, &[], &["sh", "-c", QUIET])?;
    let found = lose(world, &id)?;
    let own = own_world(world, &id)?;
    set_world(world, &id, field, value)?;
    let before = record(world, &id)?;
    // Of another namespace it can be seen from here that processes live in its cgroup.
    let is_seen = place.cage == Cage::Cgroup && field == "pid_namespace";
    for words in COMMANDS {
        let lives_on = is_seen && words[0] == "sweep";
        say(world, place, words)?.expect(if lives_on { 120 } else { 0 })?;
        alone(world, &found).context(format!("after {words:?}"))?;
    }
    let said = say(world, place, &["sweep"])?.out;
    ensure!(said.contains("left alone") && said.contains(&id), "it said {said:?}");
    let refused = if is_seen { 120 } else { 125 };
    for verb in ["stop", "kill"] {
        let said = say(world, place, &[verb, &id])?;
        said.expect_one_line(refused, &id)?;
        ensure!(alive(&found.leader), "a {verb} has touched it");
    }
    say(world, place, &["rm", &id])?.expect_one_line(refused, &id)?;
    if place.cage == Cage::Cgroup {
        // From here it can be seen that processes live in it.
        say(world, place, &["rm", "--forget", &id])?.expect_one_line(125, "its cgroup")?;
        say(world, place, &["prune", "--forget"])?.expect_one_line(125, "its cgroup")?;
    }
    alone(world, &found).context("after it was not to be forgotten")?;
    ensure!(record(world, &id)? == before, "the record was written to");
    ensure!(live_ids(world).contains(&id), "it was put away");
    set_world(world, &id, field, &own[field])?;
    tell(world, place, &["sweep"])?;
    nobody(world)?;
    expect_over(world, &id, "keeper-died", swept_proof(place))?;
    all_clean(world)
}

/// No process outlives its kernel: it ended, and whoever has its pids is a stranger.
fn another_boot(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let id = start(world, place, &[], &["sh", "-c", QUIET])?;
    let found = lose(world, &id)?;
    set_world(world, &id, "boot", &json!("00000000-0000-0000-0000-000000000000"))?;
    let dry = tell(world, place, &["sweep", "--dry-run"])?;
    if place.cage == Cage::Cgroup {
        // A real reboot would have taken the cgroup away: the record is wrong.
        ensure!(dry.contains("would end it: 1 alive"), "it said {dry:?}");
        say(world, place, &["sweep"])?.expect(0)?;
        ensure!(!alive(&found.leader), "it lives");
        expect_over(world, &id, "keeper-died", "cgroup-empty")?;
        return all_clean(world);
    }
    ensure!(dry.contains("would end it: 0 alive"), "it said {dry:?}");
    say(world, place, &["sweep"])?.expect(0)?;
    ensure!(alive(&found.leader), "somebody was signalled by a pid of another boot");
    expect_over(world, &id, "rebooted", "rebooted")?;
    let said = say(world, place, &["stop", &id])?;
    said.expect(0)?;
    ensure!(said.out.contains("rebooted"), "it said {:?}", said.out);
    ensure!(alive(&found.leader), "somebody was signalled by a pid of another boot");
    end_by_hand(world, &found)
}

/// It is no run of ours any more: the scenario ends what it has made.
fn end_by_hand(world: &mut World, found: &Who) -> Outcome {
    arena::send_signal(found.leader.pid, arena::Signal::KILL)?;
    expect_gone(&found.leader, SOON)?;
    if let Some(cgroup) = world.cgroup().cloned() {
        remove_ours(&cgroup)?;
    }
    all_clean(world)
}

/// A cgroup that a real reboot would have taken away.
fn remove_ours(cgroup: &arena::Cgroup) -> Outcome {
    for child in cgroup.children() {
        remove_ours(&child)?;
        let name = child.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with("fullstop-") {
            child.remove(SOON)?;
        }
    }
    Ok(())
}

/// That another machine was started anew says nothing about its run.
fn other_boot_of_other(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let id = start(world, place, &[], &["sh", "-c", QUIET])?;
    let found = lose(world, &id)?;
    let own = own_world(world, &id)?;
    set_world(world, &id, "boot", &json!("00000000-0000-0000-0000-000000000000"))?;
    set_world(world, &id, "machine", &json!("other"))?;
    for words in COMMANDS {
        say(world, place, words)?.expect(0)?;
        alone(world, &found).context(format!("after {words:?}"))?;
    }
    ensure!(live_ids(world).contains(&id), "it was put away");
    for field in ["boot", "machine"] {
        set_world(world, &id, field, &own[field])?;
    }
    tell(world, place, &["sweep"])?;
    nobody(world)?;
    all_clean(world)
}

/// One that cannot be read, between two that can: they are seen, swept and stopped.
fn with_others(
    world: &mut World,
    place: Place,
    damage: impl Fn(&World, &str) -> Outcome,
) -> Outcome<(String, Who)> {
    let lost = start(world, place, &[], &["sh", "-c", QUIET])?;
    let broken = start(world, place, &[], &["sh", "-c", QUIET])?;
    let live = start(world, place, &[], &["sh", "-c", QUIET])?;
    let kept = who(world, &live)?;
    let gone = who(world, &lost)?;
    let hurt = who(world, &broken)?;
    // Whoever is live sweeps once it is settled: what it finds must be damaged already.
    super::desk::freeze(&hurt)?;
    damage(world, &broken)?;
    kill_frozen(&hurt)?;
    super::desk::behead(&gone)?;
    let listed = say(world, place, &["ps", "--json"])?;
    listed.expect(0)?;
    ensure!(listed.out.contains(&live), "the live one is hidden: {}", listed.out);
    expect_gone(&gone.leader, SOON)?;
    // The sweep of the live one may be at it.
    ensure!(await_until(SOON, || !live_ids(world).contains(&lost)), "it is still listed");
    expect_over(world, &lost, "keeper-died", swept_proof(place))?;
    ensure!(alive(&kept.leader) && alive(&kept.keeper), "the live one was touched");
    tell(world, place, &["stop", &live])?;
    Ok((broken, hurt))
}

/// Half written, which our own writes never are; the spec says enough.
fn damaged_record(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let (broken, hurt) = with_others(world, place, |world, id| {
        fs::write(dir(world, id).join("record.json"), "{\"version\": 1, \"id\n").context("damage")
    })?;
    expect_gone(&hurt.leader, SOON)?;
    ensure!(await_until(SOON, || live_ids(world).is_empty()), "it is still listed");
    expect_over(world, &broken, "keeper-died", swept_proof(place))?;
    nobody(world)?;
    all_clean(world)
}

fn damaged_spec(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let (broken, hurt) = with_others(world, place, |world, id| {
        fs::write(dir(world, id).join("spec.json"), "no JSON at all\n").context("damage")
    })?;
    expect_gone(&hurt.leader, SOON)?;
    ensure!(await_until(SOON, || live_ids(world).is_empty()), "it is still listed");
    expect_over(world, &broken, "keeper-died", swept_proof(place))?;
    nobody(world)?;
    all_clean(world)
}

/// Nothing tells who they are: they are left alone, and that is said.
fn both_damaged(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let (broken, hurt) = with_others(world, place, |world, id| {
        for name in ["record.json", "spec.json"] {
            fs::write(dir(world, id).join(name), "[]\n").context("damage")?;
        }
        Ok(())
    })?;
    if place.cage == Cage::Tree {
        return left_alone(world, place, &broken, &hurt, "damaged");
    }
    // The cgroup that carries its tag is known all the same.
    expect_gone(&hurt.leader, SOON)?;
    ensure!(await_until(SOON, || live_ids(world).is_empty()), "it is still listed");
    tell(world, place, &["rm", &broken])?;
    all_clean(world)
}

/// Written by a later fullstop: it may mean other things by the same names.
fn newer(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let (broken, hurt) = with_others(world, place, |world, id| {
        for name in ["record.json", "spec.json"] {
            edit(world, id, name, |file| file["version"] = 99.into())?;
        }
        Ok(())
    })?;
    left_alone(world, place, &broken, &hurt, "newer")
}

fn left_alone(world: &mut World, place: Place, id: &str, hurt: &Who, state: &str) -> Outcome {
    for words in [&["sweep", "--dry-run"][..], &["sweep"]] {
        let said = say(world, place, words)?;
        // It may live, and belongs here.
        said.expect(120)?;
        let said = said.out;
        ensure!(said.contains(id) && said.contains("left alone"), "it said {said:?}");
    }
    ensure!(alive(&hurt.leader), "somebody was killed without a record");
    let listed = say(world, place, &["ps", "--json"])?.json()?;
    ensure!(listed[0]["id"] == id && listed[0]["state"] == state, "ps says {listed}");
    ensure!(listed[0]["damage"].is_string(), "ps does not say what is wrong: {listed}");
    say(world, place, &["show", id])?.expect(0)?;
    for words in [&["stop", id][..], &["kill", id], &["stop", "--all"], &["stop", "--no-wait", id]]
    {
        say(world, place, words)?.expect_one_line(120, id)?;
    }
    ensure!(alive(&hurt.leader), "somebody was killed without a record");
    arena::send_signal(hurt.leader.pid, arena::Signal::KILL)?;
    expect_gone(&hurt.leader, SOON)?;
    if let Some(cgroup) = world.cgroup().cloned() {
        remove_ours(&cgroup)?;
    }
    for path in [world.state().join("live").join(id), dir(world, id).join("lock")] {
        fs::remove_file(path).context("tidying up")?;
    }
    fs::remove_dir_all(dir(world, id)).context("tidying up")?;
    nobody(world)?;
    all_clean(world)
}

/// Its keeper lives, elsewhere: nobody goes around it by pids of another world.
fn live_elsewhere(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let id = start(world, place, &[], &["sh", "-c", QUIET])?;
    let found = who(world, &id)?;
    let own = own_world(world, &id)?;
    super::desk::freeze(&found)?;
    set_world(world, &id, "pid_namespace", &json!(1))?;
    let said = say(world, place, &["stop", &id])?;
    said.expect_one_line(125, "another machine or pid namespace")?;
    for process in [&found.guard, &found.keeper, &found.leader] {
        ensure!(alive(process), "{process} was signalled by a pid of another namespace");
    }
    set_world(world, &id, "pid_namespace", &own["pid_namespace"])?;
    tell(world, place, &["stop", &id])?;
    nobody(world)?;
    all_clean(world)
}

/// A real run in a real namespace of its own, with the same records: from out here it
/// is seen and stopped through its keeper, and never by pid.
fn real_namespace(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let cage = place.cage.to_string();
    let mut command = world.command("unshare");
    command.args(["--pid", "--fork", "--mount-proc", "--kill-child"]).arg(world.fullstop());
    command.args(["run", "--cage", &cage, "--", "sh", "-c", QUIET]);
    let inside = world.spawn("a namespace", &mut command)?;
    ensure!(await_until(SOON, || live_ids(world).len() == 1), "it is not listed");
    let id = live_ids(world).remove(0);
    let listening = || dir(world, &id).join("control.sock").exists();
    ensure!(await_until(SOON, listening), "its keeper does not listen");
    let listed = say(world, place, &["ps", "--json"])?.json()?;
    ensure!(listed[0]["id"] == id.as_str(), "it is not seen: {listed}");
    ensure!(listed[0]["state"] == "running", "it is {}", listed[0]["state"]);
    if place.cage == Cage::Tree {
        ensure!(listed[0]["processes"] == 0, "pids of another namespace are shown: {listed}");
    }
    tell(world, place, &["sweep"])?;
    let shell = |p: &Process| p.comm == "sh" && p.command.contains("never");
    ensure!(world.survivors().iter().any(shell), "a sweep has touched it");
    say(world, place, &["stop", &id])?.expect(0)?;
    nobody(world).or_else(|_| world.expect_extinct(SOON))?;
    world.wait(&inside, SOON)?;
    all_clean(world)
}

/// A run of a container that is gone: nothing is left of it but its record, which names
/// another pid namespace, and perhaps a cgroup that is gone with it.
pub fn of_gone_container(world: &mut World, place: Place) -> Outcome<String> {
    let id = start(world, place, &["--group", "plan"], &["sh", "-c", QUIET])?;
    let found = who(world, &id)?;
    super::desk::freeze(&found)?;
    set_world(world, &id, "pid_namespace", &json!(1))?;
    kill_frozen(&found)?;
    arena::send_signal(found.leader.pid, arena::Signal::KILL)?;
    expect_gone(&found.leader, SOON)?;
    let cgroup = record(world, &id)?["cgroup"].as_str().map(arena::Cgroup::at);
    if let Some(cgroup) = cgroup.filter(|_| place.cage == Cage::Cgroup) {
        cgroup.remove(SOON)?;
    }
    Ok(id)
}

/// It says what they are, once, and is not failed by them.
fn expect_told(said: &super::desk::CommandOutput, count: usize) -> Outcome {
    said.expect_one_line(0, &format!("{count} lost run"))?;
    ensure!(said.err.contains("fullstop prune --forget"), "no way out: {:?}", said.err);
    Ok(())
}

/// What is lost elsewhere is told, and fails no command that is about other runs.
fn others(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let lost = [of_gone_container(world, place)?, of_gone_container(world, place)?];
    let before = [record(world, &lost[0])?, record(world, &lost[1])?];
    for verb in ["stop", "kill"] {
        let live = start(world, place, &[], &["sh", "-c", QUIET])?;
        let said = say(world, place, &[verb, "--all"])?;
        expect_told(&said, 2)?;
        ensure!(said.out.contains(&live) && said.out.lines().count() == 1, "{:?}", said.out);
        expect_told(&say(world, place, &[verb, "--all", "--no-wait"])?, 2)?;
        // Who names one is told of it, and a group is closed only when all is proven.
        say(world, place, &[verb, &lost[0]])?.expect_one_line(125, "rm --forget")?;
    }
    let listed = say(world, place, &["ps", "--json"])?;
    listed.expect(0)?;
    for row in listed.json()?.as_array().context("no list")? {
        ensure!(row["state"] == "lost", "it is {row}");
        ensure!(row["elsewhere"] == "other-namespace", "no reason is given: {row}");
    }
    let table = tell(world, place, &["ps"])?;
    ensure!(table.matches("lost (another pid namespace)").count() == 2, "the table is {table:?}");
    for words in [&["sweep"][..], &["sweep", "--dry-run"], &["prune"]] {
        expect_told(&say(world, place, words)?, 2).context(words.join(" "))?;
    }
    let said = say(world, place, &["group", "close", "plan"])?;
    said.expect(120).context("a group is closed over the lost")?;
    let found = say(world, place, &["doctor", "--json"])?.json()?;
    let all = found["findings"].as_array().context("no findings")?;
    let told = all.iter().find(|one| one["name"] == "elsewhere").context("it is not told")?;
    ensure!(told["level"] == "yellow", "it is {told}");
    ensure!(told["next"] == "fullstop prune --forget", "it is {told}");
    ensure!(told["what"].as_str().is_some_and(|what| what.starts_with("2 lost")), "it is {told}");
    for (id, before) in lost.iter().zip(before) {
        ensure!(record(world, id)? == before, "the record of {id} was written to");
    }
    tell(world, place, &["prune", "--forget"])?;
    nobody(world)?;
    all_clean(world)
}

/// One line forgets them, and nothing else.
fn forgotten(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    // A guard that sweeps while such a run is being made would find its cgroup empty, and
    // prove its end.
    let lost: Outcome<Vec<String>> = (0..3).map(|_| of_gone_container(world, place)).collect();
    let lost = lost?;
    let over = start(world, place, &[], &["true"])?;
    say(world, place, &["wait", &over])?.expect(0)?;
    let live = start(world, place, &[], &["sh", "-c", QUIET])?;
    let kept = who(world, &live)?;
    tell(world, place, &["rm", "--forget", &lost[0]])?;
    let dry = tell(world, place, &["prune", "--forget", "--dry-run"])?;
    for (id, is_told) in [(&lost[0], false), (&lost[1], true), (&lost[2], true)] {
        ensure!(dry.contains(id.as_str()) == is_told, "a trial says {dry:?}");
        ensure!(live_ids(world).contains(id) == is_told, "{:?} are listed", live_ids(world));
    }
    let said = tell(world, place, &["prune", "--forget", "--json"])?;
    let said: Value = serde_json::from_str(&said).context("no JSON")?;
    let mut wanted = lost[1..].to_vec();
    wanted.sort();
    ensure!(said["forgotten"] == json!(wanted), "it said {said}");
    for id in &lost {
        ensure!(!dir(world, id).exists(), "{id} is still there");
        let member = world.state().join("groups/plan/.members").join(id);
        ensure!(!member.exists(), "{id} is still in its group");
    }
    ensure!(live_ids(world) == [live.clone()], "{:?} are listed", live_ids(world));
    ensure!(dir(world, &over).exists(), "one that has ended was forgotten as well");
    for process in [&kept.guard, &kept.keeper, &kept.leader] {
        ensure!(alive(process), "{process} was signalled");
    }
    tell(world, place, &["stop", "--all"])?;
    nobody(world)?;
    all_clean(world)
}

/// What is live, or can be judged from here, is not forgotten.
fn not_forgotten(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let over = start(world, place, &[], &["true"])?;
    say(world, place, &["wait", &over])?.expect(0)?;
    let live = start(world, place, &[], &["sh", "-c", QUIET])?;
    let kept = who(world, &live)?;
    for (id, why) in [(&over, "it is over"), (&live, "its keeper or its guard lives")] {
        say(world, place, &["rm", "--forget", id])?.expect_one_line(125, why)?;
    }
    // Its keeper lives in another namespace.
    super::desk::freeze(&kept)?;
    let own = own_world(world, &live)?;
    set_world(world, &live, "pid_namespace", &json!(1))?;
    let live_elsewhere = ["rm", "--forget", &live];
    say(world, place, &live_elsewhere)?.expect_one_line(125, "its keeper or its guard lives")?;
    tell(world, place, &["prune", "--forget"])?;
    set_world(world, &live, "pid_namespace", &own["pid_namespace"])?;
    ensure!(alive(&kept.leader) && alive(&kept.keeper), "it was touched");
    kill_frozen(&kept)?;
    // Now it is lost, and here: a sweep can judge it.
    say(world, place, &["rm", "--forget", &live])?.expect_one_line(125, "fullstop sweep")?;
    ensure!(alive(&kept.leader), "it was signalled");
    // So it can before a reboot.
    set_world(world, &live, "boot", &json!("00000000-0000-0000-0000-000000000000"))?;
    say(world, place, &["rm", "--forget", &live])?.expect_one_line(125, "fullstop sweep")?;
    set_world(world, &live, "boot", &own["boot"])?;
    tell(world, place, &["sweep"])?;
    expect_over(world, &live, "keeper-died", swept_proof(place))?;
    nobody(world)?;
    all_clean(world)
}

/// A real pid namespace that ends with all its processes. Outside, an empty cgroup is a
/// proof; without a cgroup there is none.
fn gone_container(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let cage = place.cage.to_string();
    let mut command = world.command("unshare");
    command.args(["--pid", "--fork", "--mount-proc", "--kill-child"]).arg(world.fullstop());
    command.args(["run", "--cage", &cage, "--", "sh", "-c", QUIET]);
    let inside = world.spawn("a container", &mut command)?;
    let written = || live_ids(world).first().is_some_and(|id| record(world, id).is_ok());
    ensure!(await_until(SOON, written), "it is not written down");
    let id = live_ids(world).remove(0);
    arena::send_signal(inside.pid, arena::Signal::KILL)?;
    world.wait(&inside, SOON)?;
    world.expect_extinct(SOON)?;
    let listed = say(world, place, &["ps", "--all", "--json"])?.json()?;
    let row = &listed[0];
    ensure!(row["id"] == id.as_str(), "ps says {listed}");
    match place.cage {
        Cage::Cgroup => expect_over(world, &id, "keeper-died", "cgroup-empty")?,
        Cage::Tree => {
            ensure!(row["state"] == "lost", "it is {row}");
            ensure!(row["elsewhere"] == "other-namespace", "no reason is given: {row}");
            expect_told(&say(world, place, &["stop", "--all"])?, 1)?;
            tell(world, place, &["prune", "--forget"])?;
            ensure!(!dir(world, &id).exists(), "it is still there");
        }
    }
    all_clean(world)
}
