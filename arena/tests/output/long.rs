//! Long output with followers that come and are killed: the log is what was written.

use arena::{Context, Deadline, Outcome, Registry, Signal, World, ensure, seconds, send_signal};

use super::tools::{collected, expect_drained, lines, log, noise, over, same};
use crate::desk::{all_clean, ask, start, zoo};
use crate::kit::{ANYWHERE, Place, add_with};

/// How many lines are written.
const LINES: &str = "FULLSTOP_ARENA_LINES";

pub fn register(registry: &mut Registry) {
    let adjust = |scenario: &mut arena::Scenario| {
        scenario.limit(seconds(120)).heavy();
    };
    add_with(registry, "long::followed", &ANYWHERE, &[], adjust, followed);
}

fn count() -> u64 {
    std::env::var(LINES).ok().and_then(|count| count.parse().ok()).unwrap_or(200_000)
}

fn followed(world: &mut World, place: Place) -> Outcome {
    let count = count();
    let words = [zoo(world, "count"), vec![count.to_string()]].concat();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let id = start(world, place, &[], &words)?;
    let waiting = ask(world, place, &["wait", &id])?;
    let all = lines(count);
    let deadline = Deadline::after(seconds(100));
    let mut chance = noise(1 << 16, 9).into_iter().cycle();
    let mut followers = 0;
    while world.ended(&waiting.spawned).is_none() {
        ensure!(deadline.stands(), "it does not end");
        let (follower, seen) = collected(world, place, &["logs", "-f", "--raw", &id])?;
        followers += 1;
        // Each is killed after another piece of what it should see.
        let enough = usize::from(chance.next().context("chance")?) * 4096;
        let seen_enough = || {
            seen.so_far().len() > enough
                || world.ended(&follower).is_some()
                || world.ended(&waiting.spawned).is_some()
        };
        arena::await_until(deadline.left(), seen_enough);
        if world.ended(&follower).is_none() {
            let _ = send_signal(follower.pid, Signal::KILL);
        }
        world.wait(&follower, deadline.left())?;
        let seen = seen.end()?;
        ensure!(all.starts_with(&seen), "follower {followers} saw something else");
    }
    world.note(format!("{followers} followers"));
    waiting.hear(world, deadline.left())?.expect(0)?;
    let (_, report) = over(world, place, &id)?;
    expect_drained(&report)?;
    same(&log(world, &id, "out.log")?, &all)?;
    all_clean(world)
}
