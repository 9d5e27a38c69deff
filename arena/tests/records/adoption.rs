//! Another host for a run, as the wire has it, and what becomes of one who is cut short on the way.

use arena::{Context, Outcome, Registry, Signal, World, await_until, ensure, send_signal};
use serde_json::{Value, json};

use super::desk::{QUIET, all_clean, expect_over, nobody, proof, record, say, start, who};
use super::wire::Client;
use crate::kit::{EVERYWHERE, Lines, Place, SOON, add};

pub fn register(registry: &mut Registry) {
    for (name, play) in [
        ("and-stopped-with-the-host", stopped_with_host as fn(&mut World, Place) -> Outcome),
        ("and-outlives-the-host", outlives_host),
        ("cut-short-before-the-next-request", cut_short),
        ("all-in-one-breath", one_breath),
        ("not-while-it-ends", not_adopted),
        ("when-the-keeper-dies", keeper_dies),
    ] {
        add(registry, &format!("adopted::{name}"), &EVERYWHERE, &[], play);
    }
}

/// A run that was started by a `fullstop start`, which is gone.
fn orphan(world: &mut World, place: Place) -> Outcome<(String, Lines)> {
    let never = Lines::create(world, "never")?;
    let id = start(world, place, &[], &["sh", "-c", QUIET])?;
    Ok((id, never))
}

fn adopt(on_host_exit: &str) -> Value {
    json!({"id": 1, "type": "adopt", "app": "arena", "on_host_exit": on_host_exit})
}

fn accepted(answer: &Value) -> Outcome {
    ensure!(answer["type"] == "accepted", "it was answered {answer}");
    Ok(())
}

fn refused(answer: &Value, code: &str) -> Outcome {
    ensure!(answer["code"] == code, "it was not answered {code}, but {answer}");
    Ok(())
}

/// A connection on which the run was adopted for good.
fn adopted(world: &World, id: &str, on_host_exit: &str) -> Outcome<Client> {
    let mut client = Client::connect(world, id)?;
    accepted(&client.ask(&adopt(on_host_exit))?)?;
    accepted(&client.ask(&adopt(on_host_exit))?)?;
    Ok(client)
}

fn host(world: &World, id: &str) -> Outcome<Value> {
    Ok(record(world, id)?["host"].clone())
}

fn own_pid() -> i64 {
    i64::from(std::process::id())
}

/// The end of the connection means what was asked for, and the record names the host from the
/// first answer on.
fn stopped_with_host(world: &mut World, place: Place) -> Outcome {
    let (id, _never) = orphan(world, place)?;
    let mut client = Client::connect(world, &id)?;
    accepted(&client.ask(&adopt("stop"))?)?;
    let named = host(world, &id)?;
    ensure!(named["app"] == "arena" && named["process"]["pid"] == own_pid(), "it names {named}");
    accepted(&client.ask(&json!({"id": 2, "type": "signal", "signal": "winch"}))?)?;
    drop(client);
    say(world, place, &["wait", &id])?;
    nobody(world)?;
    expect_over(world, &id, "host-gone", proof(place))?;
    let events = say(world, place, &["events", &id])?.out;
    ensure!(events.contains("adopted by arena"), "its events: {events}");
    all_clean(world)
}

/// The host's own word counts, on its line and on another one.
fn outlives_host(world: &mut World, place: Place) -> Outcome {
    let (id, _never) = orphan(world, place)?;
    let first = adopted(world, &id, "stop")?;
    let mut second = adopted(world, &id, "stop")?;
    drop(first);
    accepted(&second.ask(&adopt("ignore"))?)?;
    drop(second);
    let mut third = adopted(world, &id, "stop")?;
    accepted(&third.ask(&json!({"id": 3, "type": "stay"}))?)?;
    drop(third);
    lives(world, &id)?;
    say(world, place, &["stop", &id])?.expect(0)?;
    nobody(world)?;
    expect_over(world, &id, "stopped", proof(place))?;
    all_clean(world)
}

/// Whoever has not said a further word has adopted nothing, and stopped nothing.
fn cut_short(world: &mut World, place: Place) -> Outcome {
    let (id, _never) = orphan(world, place)?;
    let before = host(world, &id)?;
    for heard in [true, false] {
        let mut client = Client::connect(world, &id)?;
        client.say(&adopt("stop"))?;
        if heard {
            accepted(&client.hear()?)?;
            refused(&Client::connect(world, &id)?.ask(&adopt("stop"))?, "has-host")?;
        }
        drop(client);
        lives(world, &id)?;
        let is_again = || host(world, &id).is_ok_and(|host| host == before);
        ensure!(await_until(SOON, is_again), "the record names {}", host(world, &id)?);
    }
    say(world, place, &["stop", &id])?.expect(0)?;
    nobody(world)?;
    all_clean(world)
}

/// Adopted, acknowledged and left, all before the keeper has read a word.
fn one_breath(world: &mut World, place: Place) -> Outcome {
    let (id, _never) = orphan(world, place)?;
    let mut client = Client::connect(world, &id)?;
    client.say(&adopt("stop"))?;
    client.say(&adopt("stop"))?;
    drop(client);
    say(world, place, &["wait", &id])?;
    nobody(world)?;
    expect_over(world, &id, "host-gone", proof(place))?;
    all_clean(world)
}

/// One that is being stopped is not adopted, nor is any by what is no request.
fn not_adopted(world: &mut World, place: Place) -> Outcome {
    let (id, _never) = orphan(world, place)?;
    let deaf = "trap '' TERM; echo up > ready; while :; do read gone < never; done";
    let mut ready = Lines::create(world, "ready")?;
    let other = start(world, place, &["--ladder", "term:60s,kill"], &["sh", "-c", deaf])?;
    ready.expect("up")?;
    say(world, place, &["stop", "--no-wait", &other])?.expect(0)?;
    refused(&Client::connect(world, &other)?.ask(&adopt("stop"))?, "ending")?;
    let word = json!({"id": 1, "type": "adopt", "app": "no word", "on_host_exit": "stop"});
    refused(&Client::connect(world, &id)?.ask(&word)?, "invalid-request")?;
    let policy = json!({"id": 1, "type": "adopt", "on_host_exit": "perhaps"});
    refused(&Client::connect(world, &id)?.ask(&policy)?, "invalid-request")?;
    say(world, place, &["kill", &id, &other])?.expect(0)?;
    nobody(world)?;
    all_clean(world)
}

/// The guard that takes over names the new host.
fn keeper_dies(world: &mut World, place: Place) -> Outcome {
    let (id, _never) = orphan(world, place)?;
    let client = adopted(world, &id, "stop")?;
    let keeper = who(world, &id)?.keeper.pid;
    send_signal(keeper, Signal::KILL).context("killing the keeper")?;
    say(world, place, &["wait", &id])?;
    nobody(world)?;
    ensure!(host(world, &id)?["app"] == "arena", "it names {}", host(world, &id)?);
    drop(client);
    all_clean(world)
}

/// The keeper has heard all that was said before, and the run goes on.
fn lives(world: &World, id: &str) -> Outcome {
    let mut client = Client::connect(world, id)?;
    let answer = client.ask(&json!({"id": 1, "type": "signal", "signal": "winch"}))?;
    accepted(&answer)?;
    ensure!(answer["state"] == "running", "it is {answer}");
    Ok(())
}
