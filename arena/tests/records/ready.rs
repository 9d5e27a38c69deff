//! `start --wait-ready`: by a line, a port or a file, with a deadline.

use std::fs;
use std::net::TcpListener;
use std::time::Duration;

use arena::{Context, Outcome, Registry, World, await_until, ensure, millis, seconds};

use super::desk::{all_clean, ask, expect_over, live_ids, nobody, proof, run_ids, say, tell};
use crate::kit::{EVERYWHERE, Lines, Place, SOON, add};

pub fn register(registry: &mut Registry) {
    for (name, play) in [
        ("line", line as fn(&mut World, Place) -> Outcome),
        ("file", file),
        ("tcp", tcp),
        ("deadline", deadline),
        ("ends-before", ends_before),
        ("last-words", last_words),
    ] {
        add(registry, &format!("ready::{name}"), &EVERYWHERE, &[], play);
    }
}

fn line(world: &mut World, place: Place) -> Outcome {
    for stream in ["", " >&2"] {
        let script =
            format!("echo no; read go < go; echo now it is READY at last{stream}; read n < never");
        waits_for_go(world, place, "READY", &script)?;
    }
    all_clean(world)
}

fn file(world: &mut World, place: Place) -> Outcome {
    waits_for_go(world, place, "file:there", "read go < go; : > there; read n < never")?;
    all_clean(world)
}

/// A port that somebody else opens once the run has begun: a shell has no sockets.
fn tcp(world: &mut World, place: Place) -> Outcome {
    let (_go, _never) = (Lines::create(world, "go")?, Lines::create(world, "never")?);
    let port = TcpListener::bind("127.0.0.1:0").context("a port")?.local_addr().context("port")?;
    let what = format!("tcp:{}", port.port());
    let asked = begin(world, place, &what, "read n < never")?;
    let (id, _) = not_yet(world, &asked)?;
    let _listener = TcpListener::bind(port).context("the port again")?;
    let said = asked.hear(world, SOON)?;
    said.expect(0)?;
    ensure!(said.out.trim_end() == id, "another id: {:?}", said.out);
    tell(world, place, &["kill", &id])?;
    all_clean(world)
}

fn begin(
    world: &mut World,
    place: Place,
    what: &str,
    script: &str,
) -> Outcome<super::desk::RunningCommand> {
    let cage = place.cage.to_string();
    ask(world, place, &["start", "--cage", &cage, "--wait-ready", what, "--", "sh", "-c", script])
}

/// The run is there, and `start` has not returned, however often it has looked.
fn not_yet(world: &World, asked: &super::desk::RunningCommand) -> Outcome<(String, Duration)> {
    let find = || live_ids(world).into_iter().next();
    ensure!(await_until(SOON, || find().is_some()), "there is no run");
    let id = find().context("it was there")?;
    super::desk::who(world, &id)?;
    // It looks every 20 ms; that it has looked and seen nothing leaves no trace.
    let returned = await_until(millis(120), || world.ended(&asked.spawned).is_some());
    ensure!(!returned, "start returned before the run was ready");
    Ok((id, asked.since().elapsed()))
}

fn waits_for_go(world: &mut World, place: Place, what: &str, script: &str) -> Outcome {
    for name in ["go", "never"] {
        let _ = fs::remove_file(world.dir().join(name));
    }
    let (_go, _never) = (Lines::create(world, "go")?, Lines::create(world, "never")?);
    let asked = begin(world, place, what, script)?;
    let (id, _) = not_yet(world, &asked)?;
    fs::write(world.dir().join("go"), "now\n").context("go")?;
    let said = asked.hear(world, SOON)?;
    said.expect(0)?;
    ensure!(said.out.trim_end() == id, "another id: {:?}", said.out);
    ensure!(said.err.is_empty(), "it said {:?}", said.err);
    ensure!(!world.survivors().is_empty(), "the run did not live on");
    tell(world, place, &["kill", &id])?;
    nobody(world)
}

/// When the time is over the run is stopped, and nothing is left.
fn deadline(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let cage = place.cage.to_string();
    let script = "trap '' TERM; setsid sh -c 'read n < never' & read n < never; wait";
    let mut words = vec!["start", "--cage", &cage, "--grace", "200ms"];
    words.extend(["--wait-ready", "READY", "--start-timeout", "300ms", "--", "sh", "-c", script]);
    let said = say(world, place, &words)?;
    nobody(world)?;
    said.expect_one_line(124, "not ready after 300ms")?;
    ensure!(said.out.is_empty(), "an id was printed: {:?}", said.out);
    ensure!(said.took.within(seconds(5)), "it took {:?}", said.took);
    let id = run_ids(world).into_iter().next().context("no record")?;
    expect_over(world, &id, "start-timeout", proof(place))?;
    all_clean(world)
}

fn ends_before(world: &mut World, place: Place) -> Outcome {
    let cage = place.cage.to_string();
    for (what, script) in [("READY", "echo no; exit 4"), ("file:never", "exit 0")] {
        let mut words = vec!["start", "--cage", &cage, "--wait-ready", what];
        words.extend(["--start-timeout", "20s", "--", "sh", "-c", script]);
        let said = say(world, place, &words)?;
        said.expect_one_line(125, "ended before it was ready")?;
        ensure!(said.took.within(seconds(5)), "it took {:?}", said.took);
        nobody(world)?;
    }
    all_clean(world)
}

/// A run that says the word and ends at once was ready.
fn last_words(world: &mut World, place: Place) -> Outcome {
    let cage = place.cage.to_string();
    for _ in 0..10 {
        let words =
            ["start", "--cage", &cage, "--wait-ready", "READY", "--", "sh", "-c", "echo READY"];
        say(world, place, &words)?.expect(0)?;
    }
    world.expect_extinct(SOON)?;
    all_clean(world)
}
