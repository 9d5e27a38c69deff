//! What is handed to the command while it runs: steps of a ladder that close or
//! write its stdin, and signals that are passed on.

use std::fs::{self, File};
use std::io::Write;
use std::process::Stdio;
use std::time::Instant;

use arena::{
    Context, Ended, Outcome, Registry, Signal, Took, World, await_until, ensure, seconds,
    send_signal,
};

use super::kit::{EVERYWHERE, Launch, Lines, Place, SOON, add, all_clean, keeper};

pub fn register(registry: &mut Registry) {
    add(registry, "ladder::close-stdin", &EVERYWHERE, &[], close_stdin);
    add(registry, "ladder::input", &EVERYWHERE, &[], input);
    add(registry, "ladder::input-passes-through", &EVERYWHERE, &[], passes_through);
    add(registry, "ladder::input-nobody-reads", &EVERYWHERE, &[], nobody_reads);
    add(registry, "signals::forwarded", &EVERYWHERE, &[], forwarded);
}

fn close_stdin(world: &mut World, place: Place) -> Outcome {
    let mut ready = Lines::create(world, "ready")?;
    let mut run = Launch::new(place)
        .options(&["--ladder", "close-stdin:5s,kill"])
        .stdin(Stdio::piped())
        .start(world, &["sh", "-c", "echo up > ready; cat > copy; echo end > ready; exit 4"])?;
    let mut stdin = run.child.stdin.take().context("stdin")?;
    ready.expect("up")?;
    stdin.write_all(b"first\n").context("writing to run")?;
    let copied = || fs::read_to_string(world.dir().join("copy")).unwrap_or_default();
    ensure!(await_until(SOON, || copied() == "first\n"), "stdin does not pass through");
    // A signal takes the place of a first step that is one; this is none.
    let asked = Instant::now();
    send_signal(run.pid(), Signal::TERM)?;
    ready.expect("end")?;
    let ended = world.wait(&run.spawned, SOON)?;
    ensure!(ended == Ended::Code(4), "run ended with {ended}");
    let took = Took::since(asked);
    ensure!(took.within(seconds(4)), "it took {took:?}");
    let report = run.expect_ended(place, "stopped")?;
    ensure!(report.has_step("close-stdin"), "the steps were {:?}", report.steps);
    ensure!(!report.has_step("kill"), "an obedient command was killed");
    let gone = await_until(seconds(1), || stdin.write_all(b"x").is_err());
    ensure!(gone, "somebody still holds the other end of stdin");
    all_clean(world)
}

fn input(world: &mut World, place: Place) -> Outcome {
    let mut ready = Lines::create(world, "ready")?;
    let command = "echo up > ready; while read line; do \
                   [ \"$line\" = quit ] && exit 4; echo \"$line\" > ready; done; exit 1";
    let mut run = Launch::new(place)
        .options(&["--ladder", "input:\"quit\\n\":5s,kill"])
        .stdin(Stdio::piped())
        .start(world, &["sh", "-c", command])?;
    let mut stdin = run.child.stdin.take().context("stdin")?;
    ready.expect("up")?;
    stdin.write_all(b"hello\n").context("writing to run")?;
    ready.expect("hello")?;
    send_signal(run.pid(), Signal::TERM)?;
    let ended = world.wait(&run.spawned, SOON)?;
    ensure!(ended == Ended::Code(4), "run ended with {ended}");
    let report = run.expect_ended(place, "stopped")?;
    ensure!(report.has_step("input"), "the steps were {:?}", report.steps);
    all_clean(world)
}

/// A stdin that is held for a later step still is the command's stdin.
fn passes_through(world: &mut World, place: Place) -> Outcome {
    const SIZE: usize = 3_000_000;
    let path = world.out().join("bytes");
    let bytes: Vec<u8> = (0..SIZE).map(|n| u8::try_from(n * 7 % 251).unwrap_or(0)).collect();
    fs::write(&path, &bytes).context("bytes")?;
    for shell in ["cat > copy; exit 0", "sleep 0.2; cat > copy; exit 0"] {
        let launch = Launch::new(place).options(&["--ladder", "close-stdin:5s,kill"]);
        let mut run = launch.stdin(Stdio::piped()).start(world, &["sh", "-c", shell])?;
        let mut stdin = run.child.stdin.take().context("stdin")?;
        let mut file = File::open(&path).context("bytes")?;
        let writer = std::thread::spawn(move || std::io::copy(&mut file, &mut stdin));
        let ended = world.wait(&run.spawned, seconds(10))?;
        ensure!(ended == Ended::Code(0), "run ended with {ended}");
        ensure!(writer.join().is_ok_and(|done| done.is_ok()), "the writer failed");
        let copy = fs::read(world.dir().join("copy")).context("copy")?;
        ensure!(copy == bytes, "{} of {SIZE} bytes came, or others", copy.len());
    }
    all_clean(world)
}

/// A pipe full of input does not keep a stop from going on.
fn nobody_reads(world: &mut World, place: Place) -> Outcome {
    let mut ready = Lines::create(world, "ready")?;
    let ladder = "input:\"quit\\n\":200ms,close-stdin:200ms,kill";
    let mut run = Launch::new(place)
        .options(&["--ladder", ladder])
        .stdin(Stdio::piped())
        .start(world, &["sh", "-c", "echo up > ready; exec sleep 50"])?;
    let mut stdin = run.child.stdin.take().context("stdin")?;
    let writer = std::thread::spawn(move || while stdin.write_all(&[b'x'; 8192]).is_ok() {});
    ready.expect("up")?;
    let keeper = keeper(world)?;
    send_signal(keeper.pid, Signal::TERM)?;
    let ended = world.wait(&run.spawned, SOON)?;
    ensure!(ended == Ended::Code(137), "run ended with {ended}");
    run.expect_ended(place, "stopped")?;
    writer.join().ok().context("the writer")?;
    all_clean(world)
}

fn forwarded(world: &mut World, place: Place) -> Outcome {
    let mut ready = Lines::create(world, "ready")?;
    let command = "for s in USR1 USR2 ALRM WINCH URG PWR IO; do trap \"echo $s > ready\" $s; done; \
                   echo up > ready; while :; do sleep 0.02; done";
    let run = Launch::new(place).start(world, &["sh", "-c", command])?;
    ready.expect("up")?;
    keeper(world)?;
    let signals = [
        (Signal::USR1, "USR1"),
        (Signal::USR2, "USR2"),
        (Signal::ALARM, "ALRM"),
        (Signal::WINCH, "WINCH"),
        (Signal::USR1, "USR1"),
    ];
    for (signal, name) in signals {
        send_signal(run.pid(), signal)?;
        ready.expect(name)?;
    }
    send_signal(run.pid(), Signal::TERM)?;
    let ended = world.wait(&run.spawned, SOON)?;
    ensure!(ended == Ended::Signal(15), "run ended with {ended}");
    let report = run.expect_ended(place, "stopped")?;
    ensure!(report.steps.len() <= 2, "a forwarded signal is no step: {:?}", report.steps);
    all_clean(world)
}
