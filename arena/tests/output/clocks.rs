//! Clocks: each ends a run with its own reason, and only if it is right.

use std::fs;
use std::time::Duration;

use arena::{Context, Outcome, Registry, World, await_until, ensure, seconds};

use super::tools::{LONG, over};
use crate::desk::{all_clean, ask, nobody, run_ids, say, start, tell};
use crate::kit::{ANYWHERE, AS_ROOT, Lines, Place, add};

pub fn register(registry: &mut Registry) {
    for (name, play) in [
        ("overall", overall as fn(&mut World, Place) -> Outcome),
        ("silent", silent),
        ("idle", idle),
        ("busy", busy),
        ("busy-child", busy_child),
        ("busy-with-short-lives", short_lives),
    ] {
        add(registry, &format!("clocks::{name}"), &AS_ROOT, &[], play);
    }
    for (name, play) in [
        ("speaks", speaks as fn(&mut World, Place) -> Outcome),
        ("start", start_timeout),
        ("start-in-a-flood", flood_before_ready),
        ("first-reason", first_reason),
        ("refused", refused),
        ("a-year", a_year),
    ] {
        add(registry, &format!("clocks::{name}"), &ANYWHERE, &[], play);
    }
}

/// Starts it, waits for its end by a clock, and looks at the reason.
fn expect(
    world: &mut World,
    place: Place,
    options: &[&str],
    script: &str,
    reason: &str,
) -> Outcome {
    let id = start(world, place, options, &["sh", "-c", script])?;
    let (said, report) = over(world, place, &id)?;
    nobody(world)?;
    ensure!(report["reason"] == reason, "the reason is {}, not {reason}", report["reason"]);
    said.expect(124)
}

const QUIET: &str = "while :; do read n < never; done";

fn overall(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    expect(world, place, &["--timeout", "300ms"], QUIET, "overall-timeout")?;
    all_clean(world)
}

/// It is asked first, and may save its work.
fn silent(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let script = format!("trap 'echo work > saved; exit 0' TERM; echo begun; {QUIET}");
    let options = ["--no-output-timeout", "500ms", "--grace", "20s"];
    expect(world, place, &options, &script, "no-output-timeout")?;
    ensure!(world.dir().join("saved").exists(), "it could not save its work");
    // `run` says so itself.
    let cage = place.cage.to_string();
    let words = ["run", "--log", "--cage", &cage, "--no-output-timeout", "500ms", "--"];
    let words = [&words[..], &["sh", "-c", QUIET]].concat();
    ask(world, place, &words)?.hear(world, LONG)?.expect(124)?;
    all_clean(world)
}

fn idle(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    expect(world, place, &["--idle-timeout", "600ms"], QUIET, "idle-timeout")?;
    all_clean(world)
}

/// Silent, but at work: the other clock must be the one that ends it. Whoever is at
/// work is assumed to run now and then within this time.
const IDLE: Duration = seconds(1);
const AT_WORK: [&str; 4] = ["--idle-timeout", "1s", "--timeout", "3s"];

fn at_work(world: &mut World, place: Place, script: &str) -> Outcome {
    let id = start(world, place, &AT_WORK, &["sh", "-c", script])?;
    let (said, report) = over(world, place, &id)?;
    nobody(world)?;
    let reason = &report["reason"];
    let worked = said.took.kept(IDLE, reason != "idle-timeout");
    ensure!(worked, "whoever was at work was called idle");
    ensure!(reason == "overall-timeout", "the reason is {reason}");
    said.expect(124)?;
    all_clean(world)
}

fn busy(world: &mut World, place: Place) -> Outcome {
    at_work(world, place, "while :; do :; done")
}

fn busy_child(world: &mut World, place: Place) -> Outcome {
    at_work(world, place, "setsid sh -c 'while :; do :; done' & wait")
}

/// None of those who work lives long enough to be met twice.
fn short_lives(world: &mut World, place: Place) -> Outcome {
    let script = "while :; do sh -c 'i=0; while [ $i -lt 300 ]; do i=$((i+1)); done'; done";
    at_work(world, place, script)
}

/// Whoever speaks now and then, on either stream, is left alone.
fn speaks(world: &mut World, place: Place) -> Outcome {
    let script = "i=0; while [ $i -lt 14 ]; do i=$((i+1)); echo $i; sleep 0.2; \
         echo $i >&2; sleep 0.2; done; exit 6";
    let id = start(world, place, &["--no-output-timeout", "5s"], &["sh", "-c", script])?;
    let (said, report) = over(world, place, &id)?;
    let reason = &report["reason"];
    ensure!(said.took.kept(seconds(5), reason == "exited"), "the reason is {reason}");
    said.expect(6)?;
    all_clean(world)
}

fn start_timeout(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let words = ["start", "--wait-ready", "READY", "--start-timeout", "300ms", "--"];
    let words = [&words[..], &["sh", "-c", QUIET]].concat();
    never_ready(world, place, &words)
}

fn never_ready(world: &mut World, place: Place, words: &[&str]) -> Outcome {
    let said = ask(world, place, words)?.hear(world, LONG)?;
    nobody(world)?;
    said.expect(124)?;
    let id = run_ids(world).pop().context("no record")?;
    let (_, report) = over(world, place, &id)?;
    ensure!(report["reason"] == "start-timeout", "the reason is {}", report["reason"]);
    all_clean(world)
}

/// However much is to be looked through, the clock is looked at as well.
fn flood_before_ready(world: &mut World, place: Place) -> Outcome {
    let options = ["--wait-ready", "NEVER", "--start-timeout", "2s", "--log-max", "64MB"];
    let flood = ["timeout", "60", "yes", "the water rises, and rises, and rises"];
    let words = [&["start"], &options[..], &["--"], &flood].concat();
    never_ready(world, place, &words)
}

/// While it is being ended by one clock another runs out, and somebody asks as well.
fn first_reason(world: &mut World, place: Place) -> Outcome {
    let (mut up, _never) = (Lines::create(world, "up")?, Lines::create(world, "never")?);
    let script = format!("trap 'echo asked > up' TERM; {QUIET}");
    let options = [
        &["--timeout", "400ms", "--no-output-timeout", "600ms", "--idle-timeout", "600ms"][..],
        &["--ladder", "term@leader:60s,kill"],
    ]
    .concat();
    let id = start(world, place, &options, &["sh", "-c", &script])?;
    up.expect("asked")?;
    tell(world, place, &["stop", "--no-wait", &id])?;
    // The other clocks run out meanwhile, of which there is nothing to be seen.
    let record = || crate::desk::record(world, &id).unwrap_or_default();
    let ended = await_until(seconds(1), || record()["state"] == "ended");
    ensure!(!ended, "another clock has ended it: {}", record());
    tell(world, place, &["kill", &id])?;
    let (_, report) = over(world, place, &id)?;
    ensure!(report["reason"] == "overall-timeout", "the reason is {}", report["reason"]);
    all_clean(world)
}

fn refused(world: &mut World, place: Place) -> Outcome {
    for option in ["--timeout", "--no-output-timeout", "--idle-timeout", "--drain-max"] {
        for value in ["0", "0s", "-1s", "soon", "", "1e400s", "99999999999999999999s"] {
            let said = say(world, place, &["start", option, value, "--", "touch", "born"])?;
            said.expect_one_line(125, option).context(format!("{option} {value:?}"))?;
            ensure!(said.out.is_empty(), "an id was printed");
        }
    }
    ensure!(!world.dir().join("born").exists() && run_ids(world).is_empty(), "it was born");
    all_clean(world)
}

/// Longer than anybody waits: it works, and does not come round.
fn a_year(world: &mut World, place: Place) -> Outcome {
    let options = ["--timeout", "8760h", "--no-output-timeout", "8760h", "--idle-timeout", "8760h"];
    let options = [&options[..], &["--drain-quiet", "8760h", "--drain-max", "8760h"]].concat();
    let id = start(world, place, &options, &["sh", "-c", "echo here; exit 3"])?;
    let (said, report) = over(world, place, &id)?;
    said.expect(3)?;
    ensure!(report["reason"] == "exited", "{report}");
    let out = fs::read(crate::desk::dir(world, &id).join("out.log")).context("log")?;
    super::tools::same(&out, b"here\n")?;
    all_clean(world)
}
