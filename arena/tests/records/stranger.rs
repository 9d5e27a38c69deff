//! A stranger's client: one page of Python, written from docs/protocol.md alone. What it
//! says of a run is what the kernel and the record say.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::net::UnixListener;
use std::process::Command;
use std::thread;

use arena::{Context, Need, Outcome, Process, Registry, World, await_until, ensure, seconds};

use super::desk::{
    CommandOutput, QUIET, RunningCommand, alive, all_clean, ask_program, dir, expect_over, lose,
    nobody, proof, record, say, start, swept_proof, tell, who,
};
use crate::kit::{Cage, EVERYWHERE, Lines, Place, SOON, add};

const CLIENT: &str = include_str!("../../../crates/protocol/examples/client.py");

pub fn register(registry: &mut Registry) {
    for (name, play) in [
        ("list", list as fn(&mut World, Place) -> Outcome),
        ("start-and-stop", start_and_stop),
        ("start-fails", start_fails),
        ("stop-by-its-ladder", stop_by_its_ladder),
        ("attach", attach),
        ("an-impostor", impostor),
    ] {
        let needs = [Need::Program("python3")];
        add(registry, &format!("stranger::{name}"), &EVERYWHERE, &needs, play);
    }
}

/// Calls the client, and does not wait.
fn call(
    world: &mut World,
    place: Place,
    words: &[&str],
    adjust: impl FnOnce(&mut Command),
) -> Outcome<RunningCommand> {
    let (script, fullstop) = (world.scratch().join("client.py"), world.fullstop());
    fs::write(&script, CLIENT).context("the client")?;
    ask_program(world, place, "python3", words, |command| {
        command.arg(script).args(words).env("FULLSTOP", fullstop);
        adjust(command);
    })
}

fn client(world: &mut World, place: Place, words: &[&str]) -> Outcome<CommandOutput> {
    call(world, place, words, |_| {})?.hear(world, seconds(30))
}

/// What is live, and what is lost.
fn list(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let one = start(world, place, &[], &["sh", "-c", QUIET])?;
    let other = start(world, place, &[], &["sh", "-c", QUIET])?;
    let said = client(world, place, &["list"])?;
    said.expect(0)?;
    ensure!(said.out == format!("{one} running\n{other} running\n"), "it lists {:?}", said.out);
    tell(world, place, &["stop", &one])?;
    let lost = lose(world, &other)?;
    let said = client(world, place, &["list"])?;
    ensure!(said.out == format!("{other} lost\n"), "it lists {:?}", said.out);
    ensure!(alive(&lost.leader), "looking has ended it");
    say(world, place, &["sweep"])?.expect(0)?;
    expect_over(world, &other, "keeper-died", swept_proof(place))?;
    let said = client(world, place, &["list"])?;
    said.expect(0)?;
    ensure!(said.out.is_empty(), "it lists {:?}", said.out);
    all_clean(world)
}

/// Two of a run, one of them in a session of its own.
const TWO: &str = "setsid sh -c 'echo up > ready; read n < never' & read n < never";

/// A run that the client has started outlives it, and ends with all that it has started.
fn start_and_stop(world: &mut World, place: Place) -> Outcome {
    let (mut ready, _never) = (Lines::create(world, "ready")?, Lines::create(world, "never")?);
    let said = client(world, place, &["start", "--", "sh", "-c", TWO])?;
    said.expect(0)?;
    let id = said.out.trim_end().to_owned();
    ready.expect("up")?;
    let leader = who(world, &id)?.leader;
    let shells: Vec<Process> = world.survivors().into_iter().filter(|it| it.comm == "sh").collect();
    ensure!(shells.len() == 2 && shells.iter().any(|it| it.pid == leader.pid), "{shells:?}");
    ensure!(tell(world, place, &["ps", "-q"])? == format!("{id}\n"), "ps does not know it");
    let follower = call(world, place, &["follow", &id], |_| {})?;
    let follows = || follower.stdout() == "running\n";
    ensure!(await_until(seconds(20), follows), "it follows by {:?}", follower.stdout());
    let stopped = client(world, place, &["stop", &id])?;
    ensure!(!shells.iter().any(alive), "somebody lives: {shells:?}");
    let followed = follower.hear(world, seconds(20))?;
    nobody(world)?;
    // The client leaves the cage to fullstop, which takes a cgroup where it can have one.
    let cage = if record(world, &id)?["cage"] == "cgroup" { Cage::Cgroup } else { Cage::Tree };
    let proof = proof(Place { cage, ..place });
    expect_over(world, &id, "stopped", proof)?;
    for said in [&stopped, &followed] {
        said.expect(0)?;
        let claim = format!("ended, stopped\nclaim: {proof} {{");
        ensure!(said.out.contains(&claim), "it ends with {:?}, not {claim:?}", said.out);
    }
    all_clean(world)
}

/// A command that is not there is an error with the status that a shell gives.
fn start_fails(world: &mut World, place: Place) -> Outcome {
    let said = client(world, place, &["start", "--", "no-such-command"])?;
    said.expect(127)?;
    ensure!(said.out.contains("no-such-command"), "it says {:?}", said.out);
    let said = client(world, place, &["list"])?;
    ensure!(said.out.is_empty(), "it lists {:?}", said.out);
    all_clean(world)
}

/// It follows a stop that takes its steps.
fn stop_by_its_ladder(world: &mut World, place: Place) -> Outcome {
    let (mut ready, _never) = (Lines::create(world, "ready")?, Lines::create(world, "never")?);
    let deaf = "trap '' TERM; echo up > ready; while :; do read n < never; done";
    let ladder = ["--ladder", "term@leader:2s,kill"];
    let id = start(world, place, &ladder, &["sh", "-c", deaf])?;
    ready.expect("up")?;
    let said = client(world, place, &["stop", &id])?;
    said.expect(0)?;
    nobody(world)?;
    expect_over(world, &id, "stopped", proof(place))?;
    let is_step = |line: &str| {
        line.starts_with("stopping, stopped, term@leader, ") && line.ends_with(" s left")
    };
    ensure!(said.out.lines().any(is_step), "it has seen no step: {:?}", said.out);
    let end = format!("\nended, stopped\nclaim: {} {{", proof(place));
    ensure!(said.out.contains(&end), "it ends with {:?}", said.out);
    let again = client(world, place, &["stop", &id])?;
    again.expect(0)?;
    ensure!(again.out.starts_with("ended, stopped\n"), "it says {:?}", again.out);
    all_clean(world)
}

/// A window sees what was written, and its keys arrive.
fn attach(world: &mut World, place: Place) -> Outcome {
    let script = "echo hello; read one; echo \"heard <$one>\"; read two; exit 3";
    let id = start(world, place, &["--pty"], &["sh", "-c", script])?;
    let keys = world.out().join("keys");
    fs::write(&keys, "from outside\nbye\n").context("keys")?;
    let keys = File::open(keys).context("keys")?;
    let attached = call(world, place, &["attach", &id], |command| {
        command.stdin(keys);
    })?;
    let said = attached.hear(world, seconds(20))?;
    said.expect(0)?;
    for shown in ["hello", "heard <from outside>"] {
        ensure!(said.out.contains(shown), "{shown:?} is not in {:?}", said.out);
    }
    nobody(world)?;
    expect_over(world, &id, "exited", proof(place))?;
    ensure!(record(world, &id)?["report"]["exit"]["code"] == 3, "the last key did not arrive");
    // One that is over has nobody to attach to, and one without a terminal refuses.
    client(world, place, &["attach", &id])?.expect(1)?;
    let _never = Lines::create(world, "never")?;
    let id = start(world, place, &[], &["sh", "-c", QUIET])?;
    client(world, place, &["attach", &id])?.expect_one_line(1, "no-terminal")?;
    say(world, place, &["stop", &id])?.expect(0)?;
    all_clean(world)
}

/// Whoever binds a socket in the keeper's place accepts everything, and is not believed.
fn impostor(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let id = start(world, place, &["--ladder", "term@leader:100ms,kill"], &["sh", "-c", QUIET])?;
    let members = who(world, &id)?;
    let socket = dir(world, &id).join("control.sock");
    fs::remove_file(&socket).context("removing the socket")?;
    let listener = UnixListener::bind(&socket).context("a socket in its place")?;
    // So that it can be reached by a plain user as well.
    rustix::fs::chmod(&socket, rustix::fs::Mode::from_raw_mode(0o666)).context("chmod")?;
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
    let said = client(world, place, &["stop", &id])?;
    said.expect_one_line(1, "is not the keeper")?;
    ensure!(said.out.is_empty(), "it says {:?}", said.out);
    ensure!(alive(&members.leader), "it was ended by somebody else");
    say(world, place, &["kill", &id])?.expect(0)?;
    nobody(world)?;
    ensure!(await_until(SOON, || !alive(&members.leader)), "it lives");
    all_clean(world)
}
