//! The wire, as a client speaks it that knows nothing but the lines: hello, ids, codes,
//! members, samples; and what becomes of a socket that another process has put in the
//! keeper's place.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{MetadataExt as _, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread;

use arena::{
    Context, Outcome, Process, Registry, Signal, World, await_until, ensure, millis, send_signal,
};
use serde_json::{Value, json};

use super::desk::{
    QUIET, alive, all_clean, await_settled, cgroup_procs, dir, edit, expect_over, nobody, proof,
    record, say, start, tell, who,
};
use crate::kit::{Cage, EVERYWHERE, Lines, Place, SOON, add};

pub fn register(registry: &mut Registry) {
    for (name, play) in [
        ("many-requests", many_requests as fn(&mut World, Place) -> Outcome),
        ("census", census),
        ("samples", samples),
        ("members-of-a-stop", members_of_a_stop),
        ("resize", resize),
        ("typed-with-the-request", typed_at_once),
        ("a-client-that-keeps-asking", keeps_asking),
        ("a-crowd-that-does-not-read", deaf_crowd),
        ("a-socket-of-another-run", swapped),
        ("nothing-acts-on-the-terminal", escapes),
        ("asked-by", asked_by),
        ("a-keeper-of-version-1", earlier_keeper),
        ("an-impostor-stop", |world, place| impostor(world, place, "stop")),
        ("an-impostor-kill", |world, place| impostor(world, place, "kill")),
    ] {
        add(registry, &format!("wire::{name}"), &EVERYWHERE, &[], play);
    }
}

/// A connection to a keeper.
pub struct Client {
    stream: UnixStream,
    reader: BufReader<UnixStream>,
}

impl Client {
    pub fn connect(world: &World, id: &str) -> Outcome<Client> {
        let path = dir(world, id).join("control.sock");
        let stream = UnixStream::connect(path).context("the keeper's socket")?;
        stream.set_read_timeout(Some(SOON)).context("timeout")?;
        let reader = BufReader::new(stream.try_clone().context("a second descriptor")?);
        let mut client = Client { stream, reader };
        let hello = client.ask(&json!({"type": "hello", "protocol": 2, "program": "arena"}))?;
        ensure!(hello["type"] == "hello" && hello["protocol"] == 2, "it greets with {hello}");
        Ok(client)
    }

    pub fn say(&mut self, request: &Value) -> Outcome {
        self.stream.write_all(format!("{request}\n").as_bytes()).context("saying")
    }

    pub fn hear(&mut self) -> Outcome<Value> {
        let mut line = String::new();
        self.reader.read_line(&mut line).context("hearing")?;
        serde_json::from_str(&line).context(format!("no JSON: {line:?}"))
    }

    pub fn ask(&mut self, request: &Value) -> Outcome<Value> {
        self.say(request)?;
        self.hear()
    }
}

/// Each is answered by its id, in the order in which they came.
fn many_requests(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let id = start(world, place, &[], &["sh", "-c", QUIET])?;
    let mut client = Client::connect(world, &id)?;
    let requests = [
        (json!({"id": 3, "type": "close-stdin"}), "no-stdin"),
        (json!({"id": 2, "type": "attach"}), "no-terminal"),
        (json!({"id": 2, "type": "resize", "size": {"rows": 5, "cols": 9}}), "no-terminal"),
        (json!({"id": 9, "type": "stay"}), "not-host"),
        (json!({"id": 4, "type": "dance"}), "unknown-request"),
        (json!({"id": 5, "type": "stop", "reason": "rebooted"}), "invalid-request"),
        (json!({"id": 6, "type": "kill", "generation": 7}), "superseded"),
    ];
    for (request, _) in &requests {
        client.say(request)?;
    }
    for (request, code) in &requests {
        let answer = client.hear()?;
        ensure!(answer["id"] == request["id"], "{request} was answered with {answer}");
        ensure!(answer["code"] == *code, "{request} was answered with {answer}");
    }
    let signalled = client.ask(&json!({"id": 1, "type": "signal", "signal": "cont"}))?;
    ensure!(signalled["type"] == "accepted" && signalled["run"] == id.as_str(), "{signalled}");
    ensure!(signalled["state"] == "running", "{signalled}");
    let stopped = client.ask(&json!({"id": 8, "type": "stop", "generation": 1}))?;
    ensure!(stopped["state"] == "stopping" && stopped["left_ms"].is_u64(), "{stopped}");
    say(world, place, &["wait", &id])?;
    nobody(world)?;
    expect_over(world, &id, "stopped", proof(place))?;
    all_clean(world)
}

/// The members as the kernel has them.
fn members(world: &World, place: Place, id: &str) -> Outcome<Vec<i64>> {
    let keeper = who(world, id)?.keeper.pid;
    let mut pids: Vec<i64> = match place.cage {
        Cage::Cgroup => cgroup_procs(world, id).into_iter().map(Into::into).collect(),
        Cage::Tree => {
            let mut below = vec![keeper];
            let all = Process::all();
            let mut next = 0;
            while let Some(&parent) = below.get(next) {
                below.extend(all.iter().filter(|it| it.ppid == parent).map(|it| it.pid));
                next += 1;
            }
            below[1..].iter().copied().map(Into::into).collect()
        }
    };
    pids.sort_unstable();
    Ok(pids)
}

fn told_members(census: &Value) -> Vec<i64> {
    let members = census["members"].as_array().into_iter().flatten();
    let mut pids: Vec<i64> = members.filter_map(|member| member["pid"].as_i64()).collect();
    pids.sort_unstable();
    pids
}

const CROWD: &str = "for n in 1 2 3; do setsid sh -c 'while :; do read gone < never; done' & done; \
                     echo up > ready; while :; do read gone < never; done";

fn census(world: &mut World, place: Place) -> Outcome {
    let (mut ready, _never) = (Lines::create(world, "ready")?, Lines::create(world, "never")?);
    let id = start(world, place, &[], &["sh", "-c", CROWD])?;
    ready.expect("up")?;
    let mut client = Client::connect(world, &id)?;
    let mut told = Value::Null;
    // One of them may be between its fork and its session.
    let mut is_true = || -> Outcome<bool> {
        told = client.ask(&json!({"id": 1, "type": "census"}))?;
        let meant = members(world, place, &id)?;
        Ok(told["alive"] == 4 && told_members(&told) == meant)
    };
    let seen = await_until(SOON, || is_true().unwrap_or_default());
    ensure!(seen, "the census is {told}, the kernel knows {:?}", members(world, place, &id)?);
    for member in told["members"].as_array().into_iter().flatten() {
        for figure in ["age_ms", "cpu_ms", "memory_bytes"] {
            ensure!(member[figure].is_u64(), "{figure} of {member}");
        }
    }
    say(world, place, &["kill", &id])?.expect(0)?;
    nobody(world)?;
    all_clean(world)
}

/// One who subscribes is told at once, and again; and what a run uses never goes back.
fn samples(world: &mut World, place: Place) -> Outcome {
    let (mut ready, _never) = (Lines::create(world, "ready")?, Lines::create(world, "never")?);
    let id = start(world, place, &[], &["sh", "-c", CROWD])?;
    ready.expect("up")?;
    let mut client = Client::connect(world, &id)?;
    let accepted = client.ask(&json!({"id": 5, "type": "subscribe"}))?;
    ensure!(accepted["type"] == "accepted" && accepted["id"] == 5, "it was answered {accepted}");
    let mut last = 0;
    for _ in 0..3 {
        let sample = client.hear()?;
        ensure!(sample["type"] == "sample" && sample["id"] == 5, "a sample: {sample}");
        ensure!(sample["memory_bytes"].as_u64().is_some_and(|it| it > 0), "{sample}");
        let cpu = sample["cpu_ms"].as_u64().context("its processor time")?;
        ensure!(cpu >= last, "it was {last} ms: {sample}");
        last = cpu;
    }
    say(world, place, &["kill", &id])?.expect(0)?;
    nobody(world)?;
    all_clean(world)
}

/// A subscriber sees which steps each member was asked by and has outlived, and who died when.
fn members_of_a_stop(world: &mut World, place: Place) -> Outcome {
    let (mut ready, _never) = (Lines::create(world, "ready")?, Lines::create(world, "never")?);
    // Deaf to INT, and to TERM.
    let deaf = format!("trap '' INT TERM; {CROWD}");
    let ladder = ["--ladder", "int@leader:1500ms,term@tree:1500ms,kill"];
    let id = start(world, place, &ladder, &["sh", "-c", &deaf])?;
    ready.expect("up")?;
    let leader = i64::from(who(world, &id)?.leader.pid);
    let mut subscriber = Client::connect(world, &id)?;
    subscriber.ask(&json!({"id": 1, "type": "subscribe"}))?;
    let first = subscriber.hear()?;
    ensure!(told_members(&first).contains(&leader), "the first sample: {first}");
    Client::connect(world, &id)?.ask(&json!({"id": 1, "type": "stop"}))?;
    let (mut seen, mut died) = (Vec::new(), Vec::new());
    while let Ok(sample) = subscriber.hear() {
        let members = sample["members"].as_array().into_iter().flatten();
        for member in members.filter(|member| member["pid"] == leader) {
            seen.push((member["asked_by"].clone(), member["outlived"].clone()));
        }
        died.extend(sample["died"].as_array().cloned().unwrap_or_default());
    }
    let asked = |steps: &[&str], outlived: &[&str]| {
        let or_none = |words: &[&str]| if words.is_empty() { Value::Null } else { json!(words) };
        seen.contains(&(or_none(steps), or_none(outlived)))
    };
    ensure!(asked(&["int@leader"], &[]), "while it is asked: {seen:?}");
    ensure!(asked(&["int@leader", "term@tree"], &["int@leader"]), "while all are: {seen:?}");
    let mut dead: Vec<i64> = died.iter().filter_map(|death| death["pid"].as_i64()).collect();
    dead.sort_unstable();
    ensure!(dead == told_members(&first) && dead.len() == 4, "{dead:?} died, of {first}");
    ensure!(died.iter().all(|death| death["is_exact"] == true), "they were reaped: {died:?}");
    say(world, place, &["wait", &id])?;
    nobody(world)?;
    expect_over(world, &id, "stopped", proof(place))?;
    all_clean(world)
}

/// A client that is no window gives a terminal its size, and the command hears of it.
fn resize(world: &mut World, place: Place) -> Outcome {
    let mut sizes = Lines::create(world, "sizes")?;
    let script = "trap 'stty size > sizes' WINCH; stty size > sizes; while :; do sleep 0.01; done";
    let id = start(world, place, &["--pty"], &["sh", "-c", script])?;
    sizes.expect("24 80")?;
    let mut client = Client::connect(world, &id)?;
    let size = json!({"rows": 30, "cols": 100});
    let answer = client.ask(&json!({"id": 1, "type": "resize", "size": size}))?;
    ensure!(answer["type"] == "accepted", "it was answered {answer}");
    sizes.expect("30 100")?;
    let fixed = start(world, place, &["--pty", "--size", "24x80"], &["sh", "-c", script])?;
    let request = json!({"id": 1, "type": "resize", "size": size});
    let answer = Client::connect(world, &fixed)?.ask(&request)?;
    ensure!(answer["code"] == "invalid-request", "it stays as it was made: {answer}");
    say(world, place, &["kill", &id, &fixed])?.expect(0)?;
    nobody(world)?;
    all_clean(world)
}

/// What comes in one piece with the request to attach is typed at once.
fn typed_at_once(world: &mut World, place: Place) -> Outcome {
    let mut heard = Lines::create(world, "heard")?;
    let script = "echo up > heard; read line; echo $line > heard; while :; do sleep 0.01; done";
    let id = start(world, place, &["--pty"], &["sh", "-c", script])?;
    heard.expect("up")?;
    let mut client = Client::connect(world, &id)?;
    let request = json!({"id": 1, "type": "attach"});
    let all = [format!("{request}\n").as_bytes(), b"b\0\0\0\x03hi\r"].concat();
    client.stream.write_all(&all).context("saying")?;
    heard.expect("hi")?;
    say(world, place, &["kill", &id])?.expect(0)?;
    nobody(world)?;
    all_clean(world)
}

/// One that asks without end, and reads the answers, holds up no stop.
fn keeps_asking(world: &mut World, place: Place) -> Outcome {
    let (mut ready, _never) = (Lines::create(world, "ready")?, Lines::create(world, "never")?);
    let deaf = format!("trap '' TERM; {CROWD}");
    let id = start(world, place, &["--ladder", "term@leader:500ms,kill"], &["sh", "-c", &deaf])?;
    ready.expect("up")?;
    for _ in 0..2 {
        let Client { mut stream, mut reader } = Client::connect(world, &id)?;
        let requests =
            b"{\"id\":1,\"type\":\"census\"}\n{\"id\":2,\"type\":\"signal\",\"signal\":\"cont\"}\n";
        thread::spawn(move || while stream.write_all(requests).is_ok() {});
        thread::spawn(move || while reader.read_line(&mut String::new()).is_ok_and(|it| it > 0) {});
    }
    let said = say(world, place, &["stop", &id])?;
    said.expect(0)?;
    ensure!(said.took.within(millis(5_500)), "the stop took {:?}", said.took);
    nobody(world)?;
    expect_over(world, &id, "stopped", proof(place))?;
    all_clean(world)
}

/// A crowd of subscribers that reads nothing keeps no stop out, and its leader hears of it.
fn deaf_crowd(world: &mut World, place: Place) -> Outcome {
    let (mut ready, _never) = (Lines::create(world, "ready")?, Lines::create(world, "never")?);
    let mut saved = Lines::create(world, "saved")?;
    let saves = "trap 'echo saved > saved; exit' TERM; echo up > ready; \
                 while :; do read gone < never; done";
    let id = start(world, place, &["--ladder", "term@leader:4s,kill"], &["sh", "-c", saves])?;
    ready.expect("up")?;
    let path = dir(world, &id).join("control.sock");
    let subscribe = b"{\"type\":\"hello\",\"protocol\":2}\n{\"id\":1,\"type\":\"subscribe\"}\n";
    // Each is owed more than its socket holds.
    let census = b"{\"id\":2,\"type\":\"census\"}\n".repeat(600);
    let crowd: Vec<UnixStream> = (0..300)
        .filter_map(|_| {
            let mut stream = UnixStream::connect(&path).ok()?;
            stream.set_write_timeout(Some(millis(200))).ok()?;
            let _ = stream.write_all(subscribe).and_then(|()| stream.write_all(&census));
            Some(stream)
        })
        .collect();
    let said = say(world, place, &["stop", &id])?;
    said.expect(0)?;
    saved.expect("saved")?;
    drop(crowd);
    nobody(world)?;
    expect_over(world, &id, "stopped", proof(place))?;
    all_clean(world)
}

/// The socket of another run is no keeper of this one, also where the record cannot be read.
fn swapped(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let one = start(world, place, &[], &["sh", "-c", QUIET])?;
    let other = start(world, place, &[], &["sh", "-c", QUIET])?;
    let (meant, stranger) = (who(world, &one)?, who(world, &other)?);
    await_settled(world, &one)?;
    let socket = dir(world, &one).join("control.sock");
    fs::remove_file(&socket).context("removing the socket")?;
    fs::hard_link(dir(world, &other).join("control.sock"), &socket).context("another's")?;
    fs::write(dir(world, &one).join("record.json"), "{").context("damage")?;
    let said = say(world, place, &["stop", &one])?;
    ensure!(alive(&stranger.leader) && alive(&stranger.keeper), "another run was stopped");
    // Its keeper cannot be asked, and nothing that can be read names it. With a cgroup its
    // processes are killed; without one nothing tells who they are.
    said.expect(120)?;
    if alive(&meant.leader) {
        ensure!(place.cage == Cage::Tree, "it lives in its cgroup");
        send_signal(meant.keeper.pid, Signal::TERM)?;
    }
    say(world, place, &["wait", &one])?;
    say(world, place, &["stop", &other])?.expect(0)?;
    nobody(world)
}

/// What a member writes into a record or an event does not act on the terminal of a person.
fn escapes(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let id = start(world, place, &[], &["sh", "-c", QUIET])?;
    say(world, place, &["stop", &id])?.expect(0)?;
    let act = "\u{1b}]0;owned\u{7}\u{9b}2J";
    edit(world, &id, "record.json", |record| {
        for field in ["name", "group", "reason"] {
            record[field] = act.into();
        }
        for field in ["reason", "proof", "error"] {
            record["report"][field] = act.into();
        }
    })?;
    let events = dir(world, &id).join("events.jsonl");
    let text = fs::read_to_string(&events).context("events")?;
    let escaped = serde_json::to_string(act).context("json")?;
    fs::write(&events, text.replace("\"stopped\"", &escaped)).context("events")?;
    for words in
        [&["ps", "-a"][..], &["show", &id], &["wait", &id], &["events", &id], &["tree", &id]]
    {
        let said = say(world, place, words)?;
        for told in [&said.out, &said.err] {
            ensure!(told.contains(&id) || told.is_empty(), "{words:?} tells of another: {told}");
            ensure!(!told.contains(['\u{1b}', '\u{7}', '\u{9b}']), "{words:?} acts: {told:?}");
        }
    }
    all_clean(world)
}

/// The record and the report tell who asked, as the kernel knows that process, and on whose
/// behalf it said that it came.
fn asked_by(world: &mut World, place: Place) -> Outcome {
    let (mut ready, _never) = (Lines::create(world, "ready")?, Lines::create(world, "never")?);
    let deaf = "trap '' TERM; echo up > ready; while :; do read gone < never; done";
    let id = start(world, place, &[], &["sh", "-c", deaf])?;
    ready.expect("up")?;
    let mut client = Client::connect(world, &id)?;
    client.ask(&json!({"id": 1, "type": "stop", "by": "Ada's phone"}))?;
    // The second one joins, and was not the first.
    client.ask(&json!({"id": 2, "type": "kill", "by": "Grace"}))?;
    say(world, place, &["wait", &id])?;
    nobody(world)?;
    expect_over(world, &id, "stopped", proof(place))?;
    let record = record(world, &id)?;
    for asked in [&record["asked"], &record["report"]["asked"]] {
        ensure!(asked["by"] == "Ada's phone", "it was asked by {asked}");
        ensure!(asked["pid"] == std::process::id(), "it was asked by {asked}");
        ensure!(asked["uid"] == 0 && asked["program"].is_string(), "it was asked by {asked}");
    }
    let events = tell(world, place, &["events", &id])?;
    ensure!(events.contains("asked to end by Ada's phone (not verified)"), "{events}");
    all_clean(world)
}

/// A keeper of version 1 does not speak this wire: it is asked by the signal that it takes for
/// a request to stop.
fn earlier_keeper(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let id = start(world, place, &["--ladder", "term@leader:100ms,kill"], &["sh", "-c", QUIET])?;
    await_settled(world, &id)?;
    edit(world, &id, "record.json", |record| {
        record["version"] = 1.into();
        record["state"] = json!({"state": "running"});
        record["started_at"] = 1_790_000_000_123_u64.into();
        for later in ["at", "events", "cgroup_inode", "cgroup_parent_inode"] {
            record.as_object_mut().map(|fields| fields.remove(later));
        }
    })?;
    let listed = say(world, place, &["ps", "--json"])?.json()?;
    ensure!(listed[0]["state"] == "running", "ps says {listed}");
    let said = say(world, place, &["stop", &id])?;
    said.expect(0)?;
    ensure!(said.err.contains("asked by SIGTERM"), "it said {:?}", said.err);
    nobody(world)?;
    expect_over(world, &id, "stopped", proof(place))?;
    all_clean(world)
}

/// A process of the same user binds a socket of its own in the keeper's place, and accepts all
/// that it is asked. The keeper ends the run all the same, or is gone around.
fn impostor(world: &mut World, place: Place, verb: &str) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let id = start(world, place, &["--ladder", "term@leader:100ms,kill"], &["sh", "-c", QUIET])?;
    let members = who(world, &id)?;
    let socket = dir(world, &id).join("control.sock");
    fs::remove_file(&socket).context("removing the socket")?;
    let listener = UnixListener::bind(&socket).context("a socket in its place")?;
    let owner = fs::metadata(dir(world, &id)).context("the run's owner")?.uid();
    chown(&socket, Some(owner), None).context("as the run's owner")?;
    let lie = format!(
        "{{\"type\":\"hello\",\"protocol\":2}}\n{{\"id\":1,\"type\":\"accepted\",\"run\":\"{id}\",\
         \"generation\":1,\"state\":\"ended\",\"reason\":\"stopped\",\
         \"at\":\"2026-11-16T00:00:00.000Z\"}}\n"
    );
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let _ = (&stream).write_all(lie.as_bytes());
        }
    });
    let said = say(world, place, &[verb, &id])?;
    said.expect(0)?;
    ensure!(!alive(&members.leader), "it lives");
    nobody(world)?;
    let record = record(world, &id)?;
    ensure!(record["state"] == "ended", "it is {}", record["state"]);
    all_clean(world)
}
