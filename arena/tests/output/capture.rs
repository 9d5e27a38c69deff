//! What a run in the background writes is kept, byte for byte, in order, to the end.

use std::fs;

use arena::{Context, Outcome, Ready, Registry, World, ensure};

use super::tools::{LONG, expect_drained, lines, log, noise, over, same, stream};
use crate::desk::{all_clean, nobody, say, start, tell, zoo};
use crate::kit::{ANYWHERE, AS_ROOT, EVERYWHERE, Lines, Place, add};

pub fn register(registry: &mut Registry) {
    add(registry, "capture::byte-for-byte", &EVERYWHERE, &[], exact);
    add(registry, "capture::last-words", &AS_ROOT, &[], last_words);
    add(registry, "capture::order", &ANYWHERE, &[], order);
    add(registry, "capture::restart-goes-on", &AS_ROOT, &[], restart);
    add(registry, "capture::born-with-nothing", &ANYWHERE, &[], nothing);
}

/// Both streams at once, with every byte there is, and no end of line for long.
fn exact(world: &mut World, place: Place) -> Outcome {
    let mut out = noise(5 << 20, 1);
    out.extend([0; 5000]);
    out.extend(vec![b'x'; 2 << 20]);
    let err = noise(1 << 20, 2);
    fs::write(world.dir().join("one"), &out).context("one")?;
    fs::write(world.dir().join("other"), &err).context("other")?;
    let id = start(world, place, &[], &["sh", "-c", "cat one & cat other >&2; wait; exit 3"])?;
    let (said, report) = over(world, place, &id)?;
    said.expect(3)?;
    same(&log(world, &id, "out.log")?, &out)?;
    same(&log(world, &id, "err.log")?, &err)?;
    for (name, should) in [("out", &out), ("err", &err)] {
        let told = stream(&report, name)?;
        ensure!(told["bytes"] == should.len(), "{told} of {} bytes", should.len());
        ensure!(told["cut"] == 0 && told["failure"].is_null(), "something is cut: {told}");
    }
    expect_drained(&report)?;
    all_clean(world)
}

/// What was written before a SIGKILL was written.
fn last_words(world: &mut World, place: Place) -> Outcome {
    let (mut ready, _never) = (Lines::create(world, "up")?, Lines::create(world, "never")?);
    let script = "printf last; printf words >&2; echo up > up; while :; do read n < never; done";
    let id = start(world, place, &[], &["sh", "-c", script])?;
    ready.expect("up")?;
    tell(world, place, &["kill", &id])?;
    nobody(world)?;
    let (_, report) = over(world, place, &id)?;
    same(&log(world, &id, "out.log")?, b"last")?;
    same(&log(world, &id, "err.log")?, b"words")?;
    expect_drained(&report)?;
    all_clean(world)
}

fn order(world: &mut World, place: Place) -> Outcome {
    const COUNT: u64 = 100_000;
    let mut ready = Ready::create(&world.dir())?;
    let words = [zoo(world, "count"), vec![COUNT.to_string()]].concat();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let id = start(world, place, &[], &words)?;
    ready.wait(LONG).context("it does not count")?;
    let (said, report) = over(world, place, &id)?;
    said.expect(0)?;
    same(&log(world, &id, "out.log")?, &lines(COUNT))?;
    expect_drained(&report)?;
    all_clean(world)
}

/// The next generation writes behind the one before.
fn restart(world: &mut World, place: Place) -> Outcome {
    let script = "echo $FULLSTOP_ID; echo once >&2; echo x >> rounds; wc -l < rounds";
    let id = start(world, place, &[], &["sh", "-c", script])?;
    let (said, first) = over(world, place, &id)?;
    said.expect(0)?;
    let bytes = stream(&first, "out")?["bytes"].clone();
    for _ in 0..2 {
        tell(world, place, &["restart", &id])?;
        over(world, place, &id)?.0.expect(0)?;
    }
    let (_, last) = over(world, place, &id)?;
    ensure!(last["generation"] == 3, "it is generation {}", last["generation"]);
    let told = stream(&last, "out")?["bytes"].clone();
    ensure!(told == bytes, "the third generation is said to have written {told}, not {bytes}");
    let out = String::from_utf8_lossy(&log(world, &id, "out.log")?).into_owned();
    let numbers: Vec<&str> = out.lines().filter(|line| line.trim().len() == 1).collect();
    ensure!(numbers.iter().map(|n| n.trim()).eq(["1", "2", "3"]), "the log is {out:?}");
    same(&log(world, &id, "err.log")?, b"once\nonce\nonce\n")?;
    all_clean(world)
}

/// Nobody knows what it would have written: there is nothing, and no trouble.
fn nothing(world: &mut World, place: Place) -> Outcome {
    let id = start(world, place, &[], &["true"])?;
    let (said, report) = over(world, place, &id)?;
    said.expect(0)?;
    ensure!(stream(&report, "out")?["bytes"] == 0, "{report}");
    expect_drained(&report)?;
    let id = start(world, place, &[], &["sh", "-c", "exec >&- 2>&-; exit 4"])?;
    let (said, report) = over(world, place, &id)?;
    said.expect(4)?;
    expect_drained(&report)?;
    say(world, place, &["logs", &id])?.expect(0)?;
    all_clean(world)
}
