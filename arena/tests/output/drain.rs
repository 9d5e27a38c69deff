//! A stranger holds a run's output open. The run ends all the same, in time, with all
//! that was written, and the stranger's name.

use std::process::Stdio;

use arena::{
    Context, Ended, Outcome, Process, Registry, Signal, World, await_until, ensure, millis,
    send_signal,
};
use serde_json::Value;

use super::tools::{Collect, LONG, dismiss, expect_drained, log, outsider, over, same};
use crate::desk::{all_clean, ask, nobody, record, start, who, zoo};
use crate::kit::{AS_ROOT, EVERYWHERE, Launch, Lines, Place, add};

pub fn register(registry: &mut Registry) {
    for (name, play) in [
        ("held-after-its-end", held as fn(&mut World, Place) -> Outcome),
        ("held-after-a-stop", stopped),
    ] {
        add(registry, &format!("drain::{name}"), &EVERYWHERE, &[], play);
    }
    for (name, play) in [
        ("held-in-front", in_front as fn(&mut World, Place) -> Outcome),
        ("written-on", on),
        ("written-once", once),
        ("killed-meanwhile", killed),
        ("keeper-dies", keeper_dies),
    ] {
        add(registry, &format!("drain::{name}"), &AS_ROOT, &[], play);
    }
}

/// A stranger that is older than the run, and waits for its output.
struct Borrower {
    process: Process,
    says: Lines,
}

impl Borrower {
    fn begin(world: &mut World, place: Place, does: &str) -> Outcome<Self> {
        let mut says = Lines::create(world, "borrower")?;
        let process = outsider(world, place, &["borrow", does])?;
        says.expect("listening")?;
        // Now it is the program, and not what became it.
        let process = process.still_there().context("the borrower is gone")?;
        Ok(Self { process, says })
    }

    /// The report says that it holds the output, and nobody else.
    fn expect_named(&self, report: &Value) -> Outcome {
        ensure!(report["drained"] == false, "it is said to be drained: {report}");
        let holders = report["holders"].as_array().context("holders")?;
        ensure!(holders.len() == 1, "not one holder is named: {holders:?}");
        let (pid, command) = (&holders[0]["pid"], &holders[0]["command"]);
        ensure!(*pid == self.process.pid, "{pid} is named, not {}", self.process);
        let command = command.as_str().unwrap_or_default();
        ensure!(command.contains("borrow"), "its command is {command:?}");
        Ok(())
    }

    fn leave(self, world: &World) -> Outcome {
        ensure!(self.process.still_there().is_some(), "the borrower was killed");
        dismiss(&self.process)?;
        all_clean(world)
    }
}

/// The words of a lender, which lives on or ends at once.
fn lender(world: &World, ends: bool) -> Vec<String> {
    let mut words = zoo(world, "lend");
    words.extend(ends.then(|| "end".to_owned()));
    words
}

fn lend(world: &mut World, place: Place, options: &[&str], ends: bool) -> Outcome<String> {
    let words = lender(world, ends);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    start(world, place, options, &words)
}

fn held(world: &mut World, place: Place) -> Outcome {
    let borrower = Borrower::begin(world, place, "hold")?;
    let id = lend(world, place, &["--drain-quiet", "200ms"], true)?;
    let (said, report) = over(world, place, &id)?;
    said.expect(0)?;
    borrower.expect_named(&report)?;
    ensure!(report["reason"] == "exited" && report["state"] == "ended", "{report}");
    same(&log(world, &id, "out.log")?, b"lent\n")?;
    let shown = crate::desk::tell(world, place, &["show", &id])?;
    let pid = borrower.process.pid.to_string();
    ensure!(shown.contains(&pid), "show does not name {pid}: {shown}");
    borrower.leave(world)
}

fn stopped(world: &mut World, place: Place) -> Outcome {
    let mut ready = arena::Ready::create(&world.dir())?;
    let mut borrower = Borrower::begin(world, place, "hold")?;
    let id = lend(world, place, &[], false)?;
    ready.wait(LONG).context("it does not lend")?;
    let said = ask(world, place, &["stop", &id])?.hear(world, LONG)?;
    said.expect(0)?;
    borrower.says.expect("alone")?;
    nobody(world)?;
    let report = record(world, &id)?["report"].clone();
    borrower.expect_named(&report)?;
    ensure!(report["reason"] == "stopped" && report["state"] == "ended", "{report}");
    same(&log(world, &id, "out.log")?, b"lent\n")?;
    borrower.leave(world)
}

/// `run --log` returns, and whoever reads its output sees the end.
fn in_front(world: &mut World, place: Place) -> Outcome {
    let borrower = Borrower::begin(world, place, "hold")?;
    let words = lender(world, true);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let launch = Launch::new(place).options(&["--log"]).stdout(Stdio::piped());
    let mut run = launch.start(world, &words)?;
    let shown = Collect::start(run.child.stdout.take().context("a pipe")?);
    same(&shown.end()?, b"lent\n")?;
    let ended = world.wait(&run.spawned, LONG)?;
    ensure!(ended == Ended::Code(0), "run ended with {ended}: {}", run.stderr());
    let id = run.expect_ended(place, "exited")?.id;
    borrower.expect_named(&record(world, &id)?["report"])?;
    borrower.leave(world)
}

/// It never becomes quiet, and is cut off.
fn on(world: &mut World, place: Place) -> Outcome {
    let mut borrower = Borrower::begin(world, place, "on")?;
    let id = lend(world, place, &["--drain-max", "1500ms"], true)?;
    let (said, report) = over(world, place, &id)?;
    said.expect(0)?;
    borrower.expect_named(&report)?;
    borrower.says.expect("alone")?;
    borrower.says.expect("cut")?;
    let out = String::from_utf8_lossy(&log(world, &id, "out.log")?).into_owned();
    let mut said = out.lines();
    ensure!(said.next() == Some("lent"), "the log is {out:?}");
    let more: Vec<&str> = said.collect();
    ensure!(!more.is_empty() && more.iter().all(|line| *line == "on and on"), "it is {out:?}");
    borrower.leave(world)
}

/// What comes while it is waited for is kept, and then it was all.
fn once(world: &mut World, place: Place) -> Outcome {
    let _go = Lines::create(world, "go")?;
    let mut borrower = Borrower::begin(world, place, "once")?;
    let options = ["--drain-quiet", "60s", "--drain-max", "60s"];
    let id = lend(world, place, &options, true)?;
    borrower.says.expect("alone")?;
    rests(&crate::kit::keeper(world)?)?;
    std::fs::write(world.dir().join("go"), "now\n").context("go")?;
    let (said, report) = over(world, place, &id)?;
    said.expect(0)?;
    expect_drained(&report)?;
    same(&log(world, &id, "out.log")?, b"lent\nafter\n")?;
    borrower.leave(world)
}

/// Whoever wants the end now gets it.
fn killed(world: &mut World, place: Place) -> Outcome {
    let mut borrower = Borrower::begin(world, place, "hold")?;
    let options = ["--drain-quiet", "10m", "--drain-max", "10m"];
    let id = lend(world, place, &options, true)?;
    borrower.says.expect("alone")?;
    rests(&crate::kit::keeper(world)?)?;
    let said = ask(world, place, &["kill", &id])?.hear(world, LONG)?;
    said.expect(0)?;
    nobody(world)?;
    borrower.expect_named(&record(world, &id)?["report"])?;
    borrower.leave(world)
}

/// Whoever waits does not work: it is found asleep, each time for a while.
fn rests(process: &Process) -> Outcome {
    let asleep = || process.still_there().is_some_and(|now| now.state == 'S');
    let rests = || (0..20).all(|_| await_until(millis(2), || false).is_so() || asleep());
    ensure!(await_until(LONG, rests), "{process} is busy with waiting");
    Ok(())
}

/// The guard drains in its place, no longer than it would have.
fn keeper_dies(world: &mut World, place: Place) -> Outcome {
    let mut ready = arena::Ready::create(&world.dir())?;
    let borrower = Borrower::begin(world, place, "hold")?;
    let id = lend(world, place, &[], false)?;
    ready.wait(LONG).context("it does not lend")?;
    send_signal(who(world, &id)?.keeper.pid, Signal::KILL)?;
    let (_, report) = over(world, place, &id)?;
    nobody(world)?;
    ensure!(report["reason"] == "keeper-died", "{report}");
    borrower.expect_named(&report)?;
    same(&log(world, &id, "out.log")?, b"lent\n")?;
    borrower.leave(world)
}
