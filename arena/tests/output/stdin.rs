//! Where a command reads from: nothing, ours, what others send, a file.

use std::fs::{self, File};
use std::time::Duration;

use arena::{Context, Ended, Outcome, Registry, World, await_until, ensure, seconds};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::tools::{LONG, log, memory, noise, over, same};
use crate::desk::{all_clean, ask_with, dir, nobody, run_ids, say, start, tell, who};
use crate::kit::{ANYWHERE, AS_ROOT, Launch, Lines, Place, add};

pub fn register(registry: &mut Registry) {
    for (name, play) in [
        ("null", null as fn(&mut World, Place) -> Outcome),
        ("inherit", inherit),
        ("file", file),
        ("missing", missing),
        ("nobody-reads", nobody_reads),
        ("how-much-arrived", how_much_arrived),
        ("not-a-pipe", not_a_pipe),
    ] {
        add(registry, &format!("stdin::{name}"), &ANYWHERE, &[], play);
    }
    add(registry, "stdin::sent", &AS_ROOT, &[], sent);
    add(registry, "stdin::fifo", &AS_ROOT, &[], fifo);
}

fn null(world: &mut World, place: Place) -> Outcome {
    for options in [&[][..], &["--stdin", "null"]] {
        let id = start(world, place, options, &["cat"])?;
        over(world, place, &id)?.0.expect(0)?;
        same(&log(world, &id, "out.log")?, b"")?;
    }
    let stdin = world.out().join("in");
    fs::write(&stdin, "not for you").context("in")?;
    let stdin = File::open(&stdin).context("in")?;
    let launch = Launch::new(place).options(&["--log", "--stdin", "null"]).stdin(stdin);
    let (ended, run) = launch.finish(world, &["cat"])?;
    ensure!(ended == Ended::Code(0), "run ended with {ended}: {}", run.stderr());
    same(&log(world, &run.report()?.id, "out.log")?, b"")?;
    all_clean(world)
}

fn inherit(world: &mut World, place: Place) -> Outcome {
    let data = noise(1 << 20, 5);
    let path = world.out().join("in");
    fs::write(&path, &data).context("in")?;
    for options in [&["--log"][..], &["--log", "--stdin", "inherit"]] {
        let stdin = File::open(&path).context("in")?;
        let launch = Launch::new(place).options(options).stdin(stdin);
        let (ended, run) = launch.finish(world, &["cat"])?;
        ensure!(ended == Ended::Code(0), "run ended with {ended}: {}", run.stderr());
        same(&log(world, &run.report()?.id, "out.log")?, &data)?;
    }
    say(world, place, &["start", "--stdin", "inherit", "--", "touch", "born"])?
        .expect_one_line(125, "stdin")?;
    ensure!(!world.dir().join("born").exists(), "it was born");
    all_clean(world)
}

fn file(world: &mut World, place: Place) -> Outcome {
    let data = noise(1 << 20, 6);
    fs::write(world.dir().join("data"), &data).context("data")?;
    // Named from where we are, and read anew each time.
    let id = start(world, place, &["--stdin", "data", "--cwd", "/"], &["cat"])?;
    over(world, place, &id)?.0.expect(0)?;
    tell(world, place, &["restart", &id])?;
    over(world, place, &id)?.0.expect(0)?;
    same(&log(world, &id, "out.log")?, &[data.as_slice(), &data].concat())?;
    all_clean(world)
}

fn missing(world: &mut World, place: Place) -> Outcome {
    for verb in ["start", "run"] {
        let said = say(world, place, &[verb, "--stdin", "no-such-file", "--", "touch", "born"])?;
        said.expect_one_line(125, "no-such-file")?;
        ensure!(said.out.is_empty(), "it printed {:?}", said.out);
        nobody(world)?;
    }
    ensure!(!world.dir().join("born").exists(), "it was born");
    all_clean(world)
}

/// In order, whatever it is, and then the end.
fn sent(world: &mut World, place: Place) -> Outcome {
    let id = start(world, place, &["--stdin", "pipe"], &["cat"])?;
    tell(world, place, &["send", &id, "hello", "there", "--enter"])?;
    let came = || log(world, &id, "out.log").is_ok_and(|out| out == b"hello there\n");
    ensure!(await_until(LONG, came), "cat did not answer");
    // More than is held, of any kind.
    let data = noise(300_000, 7);
    let path = world.out().join("in");
    fs::write(&path, &data).context("in")?;
    let stdin = File::open(&path).context("in")?;
    let asked = ask_with(world, place, &["send", "--timeout", "20s", &id, "-"], |command| {
        command.stdin(stdin);
    })?;
    asked.hear(world, LONG)?.expect(0)?;
    tell(world, place, &["send", &id, "bye"])?;
    tell(world, place, &["close-stdin", &id])?;
    over(world, place, &id)?.0.expect(0)?;
    let all = [b"hello there\n".as_slice(), &data, b"bye"].concat();
    same(&log(world, &id, "out.log")?, &all)?;
    let said = say(world, place, &["send", &id, "too late"])?;
    said.expect_one_line(125, "ended")?;
    all_clean(world)
}

/// A command that never reads holds up whoever sends, for a while, and nobody else.
fn nobody_reads(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let script = "while :; do read n < never; done";
    let id = start(world, place, &["--stdin", "pipe"], &["sh", "-c", script])?;
    let keeper = who(world, &id)?.keeper;
    let path = world.out().join("in");
    fs::write(&path, noise(8 << 20, 8)).context("in")?;
    let stdin = File::open(&path).context("in")?;
    let asked = ask_with(world, place, &["send", "--timeout", "300ms", &id, "-"], |command| {
        command.stdin(stdin);
    })?;
    asked.hear(world, LONG)?.expect_one_line(124, "has not read")?;
    let used = memory(keeper.pid)?;
    ensure!(used < 4096, "the keeper holds {used} KiB");
    let said = say(world, place, &["stop", &id])?;
    said.expect(0)?;
    all_clean(world)
}

fn not_a_pipe(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let id = start(world, place, &[], &["sh", "-c", "read n < never"])?;
    for words in [&["send", &id, "x"][..], &["close-stdin", &id]] {
        say(world, place, words)?.expect_one_line(125, "--stdin pipe")?;
    }
    tell(world, place, &["kill", &id])?;
    all_clean(world)
}

/// Nobody writes to it yet: the run can be stopped all the same, and when somebody does,
/// it is read.
fn fifo(world: &mut World, place: Place) -> Outcome {
    const PATIENCE: Duration = seconds(20);
    let path = world.dir().join("fifo");
    let everyone = Mode::from_raw_mode(0o666);
    mknodat(CWD, &path, FileType::Fifo, everyone, 0).context("mknod")?;
    let cage = place.cage.to_string();
    let words = ["start", "--cage", &cage, "--stdin", "fifo", "--", "cat"];
    for stopped in [true, false] {
        let before = run_ids(world);
        let asked = ask_with(world, place, &words, |_| {})?;
        let new = || run_ids(world).into_iter().find(|id| !before.contains(id));
        let begun = || new().is_some_and(|id| dir(world, &id).join("record.json").exists());
        ensure!(await_until(PATIENCE, begun), "there is no run");
        let id = new().context("it was there")?;
        if stopped {
            let said = crate::desk::ask(world, place, &["stop", &id])?.hear(world, LONG)?;
            nobody(world)?;
            said.expect(0)?;
        } else {
            fs::write(&path, "through the fifo\n").context("fifo")?;
            over(world, place, &id)?.0.expect(0)?;
            same(&log(world, &id, "out.log")?, b"through the fifo\n")?;
        }
        world.wait(&asked.spawned, LONG)?;
    }
    all_clean(world)
}

/// A command that does not read all: it is told how much has arrived, over all of stdin.
fn how_much_arrived(world: &mut World, place: Place) -> Outcome {
    let _go = Lines::create(world, "go")?;
    let reads = "read go < go; exec cat > got";
    let id = start(world, place, &["--stdin", "pipe"], &["sh", "-c", reads])?;
    let path = world.dir().join("data");
    fs::write(&path, noise(1 << 20, 9)).context("data")?;
    let from = File::open(&path).context("data")?;
    let words = ["send", &id, "-", "--timeout", "100ms"];
    let asked = ask_with(world, place, &words, |command| {
        command.stdin(from);
    })?;
    let said = asked.hear(world, LONG)?;
    said.expect_one_line(124, "bytes were sent")?;
    tell(world, place, &["close-stdin", &id])?;
    fs::write(world.dir().join("go"), "now\n").context("go")?;
    over(world, place, &id)?.0.expect(0)?;
    let arrived = fs::metadata(world.dir().join("got")).context("got")?.len();
    let told = format!("; {arrived} of ");
    ensure!(said.err.contains(&told), "{arrived} bytes have arrived: {}", said.err);
    all_clean(world)
}
