//! `run --log`: shown as without it, whatever stdout is, and kept as well.

use std::fs::{self, File};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use arena::{Context, Ended, Outcome, Registry, World, ensure};
use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

use super::tools::{Collect, LONG, await_blocked, expect_drained, log, memory, noise, same};
use crate::desk::{all_clean, live_ids, record};
use crate::kit::{ANYWHERE, AS_ROOT, Launch, Lines, Place, Run, add, children, keeper};

pub fn register(registry: &mut Registry) {
    add(registry, "owner::pipe", &AS_ROOT, &[], pipe);
    add(registry, "owner::file", &ANYWHERE, &[], file);
    add(registry, "owner::socket", &ANYWHERE, &[], socket);
    add(registry, "owner::terminal", &ANYWHERE, &[], terminal);
    add(registry, "owner::dev-null", &ANYWHERE, &[], dev_null);
    add(registry, "owner::reads-slowly", &ANYWHERE, &[], reads_slowly);
    add(registry, "owner::socket-that-reads-slowly", &ANYWHERE, &[], slow_socket);
    add(registry, "owner::leaves", &AS_ROOT, &[], leaves);
    add(registry, "owner::end-comes-early", &AS_ROOT, &[], early_end);
}

/// More than any pipe or socket holds.
const MUCH: usize = 6 << 20;

fn data(world: &World) -> Outcome<Vec<u8>> {
    let data = noise(MUCH, 3);
    fs::write(world.dir().join("data"), &data).context("data")?;
    Ok(data)
}

/// Writes the data as plainly as can be.
const COMMAND: &[&str] = &["sh", "-c", "dd if=data bs=64k 2> /dev/null; exit 7"];

fn launch(place: Place) -> Launch {
    Launch::new(place).options(&["--log"])
}

/// It ended as the command did, and kept what it showed.
fn finish(world: &mut World, place: Place, run: &Run, data: &[u8]) -> Outcome {
    let ended = world.wait(&run.spawned, LONG)?;
    ensure!(ended == Ended::Code(7), "run ended with {ended}: {}", run.stderr());
    let report = run.expect_ended(place, "exited")?;
    same(&log(world, &report.id, "out.log")?, data).context("the log")?;
    expect_drained(&record(world, &report.id)?["report"])?;
    ensure!(run.stderr().is_empty(), "it said {:?}", run.stderr());
    all_clean(world)
}

fn pipe(world: &mut World, place: Place) -> Outcome {
    let data = data(world)?;
    let mut run = launch(place).stdout(Stdio::piped()).start(world, COMMAND)?;
    let shown = Collect::start(run.child.stdout.take().context("a pipe")?);
    same(&shown.end()?, &data).context("what was shown")?;
    finish(world, place, &run, &data)
}

fn file(world: &mut World, place: Place) -> Outcome {
    let data = data(world)?;
    // What is there already stays, as with any command.
    let path = world.out().join("shown");
    fs::write(&path, "before\n").context("file")?;
    let end = File::options().append(true).open(&path).context("file")?;
    let run = launch(place).stdout(end).start(world, COMMAND)?;
    world.wait(&run.spawned, LONG)?;
    let all = [b"before\n".as_slice(), &data].concat();
    same(&fs::read(&path).context("shown")?, &all).context("what was shown")?;
    finish(world, place, &run, &data)
}

fn socket(world: &mut World, place: Place) -> Outcome {
    let data = data(world)?;
    let (ours, theirs) = UnixStream::pair().context("sockets")?;
    let run = launch(place).stdout(OwnedFd::from(theirs)).start(world, COMMAND)?;
    let shown = Collect::start(ours);
    same(&shown.end()?, &data).context("what was shown")?;
    finish(world, place, &run, &data)
}

fn terminal(world: &mut World, place: Place) -> Outcome {
    let data = data(world)?;
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = openpt(flags).context("no pty to be had")?;
    grantpt(&master).context("grantpt")?;
    unlockpt(&master).context("unlockpt")?;
    let name = ptsname(&master, Vec::new()).context("its name")?;
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let side = open(&name, flags, Mode::empty()).context("the other side")?;
    // Bytes are to come as they are.
    let mut settings = tcgetattr(&side).context("settings")?;
    settings.make_raw();
    tcsetattr(&side, OptionalActions::Now, &settings).context("settings")?;
    let run = launch(place).stdout(side).start(world, COMMAND)?;
    let shown = Collect::start(File::from(master));
    same(&shown.end()?, &data).context("what was shown")?;
    finish(world, place, &run, &data)
}

fn dev_null(world: &mut World, place: Place) -> Outcome {
    let data = data(world)?;
    let run = launch(place).start(world, COMMAND)?;
    finish(world, place, &run, &data)
}

/// Nothing is read until the command cannot go on. Nothing is lost, and nobody takes
/// more memory for it.
fn slowly(
    world: &mut World,
    place: Place,
    stdout: impl Into<Stdio>,
    take: impl FnOnce(&mut Run) -> Outcome<Collect>,
) -> Outcome {
    let data = data(world)?;
    let mut run = launch(place).stdout(stdout).start(world, COMMAND)?;
    let keeper = keeper(world)?;
    let writer = || {
        let leader = children(keeper.pid).into_iter().next()?;
        children(leader.pid).into_iter().find(|process| process.comm == "dd")
    };
    ensure!(arena::await_until(LONG, || writer().is_some()), "nobody writes");
    await_blocked(writer().context("it wrote a moment ago")?.pid)?;
    let used = memory(keeper.pid)?;
    ensure!(used < 4096, "the keeper holds {used} KiB");
    ensure!(world.ended(&run.spawned).is_none(), "it has ended before it was read");
    let shown = take(&mut run)?;
    same(&shown.end()?, &data).context("what was shown")?;
    finish(world, place, &run, &data)
}

fn reads_slowly(world: &mut World, place: Place) -> Outcome {
    slowly(world, place, Stdio::piped(), |run| {
        Ok(Collect::start(run.child.stdout.take().context("a pipe")?))
    })
}

fn slow_socket(world: &mut World, place: Place) -> Outcome {
    let (ours, theirs) = UnixStream::pair().context("sockets")?;
    slowly(world, place, OwnedFd::from(theirs), move |_| Ok(Collect::start(ours)))
}

/// `run --log -- yes | head -1`: the command ends as it does without us.
fn leaves(world: &mut World, place: Place) -> Outcome {
    let mut run = launch(place).stdout(Stdio::piped()).start(world, &["yes", "over and over"])?;
    let mut pipe = run.child.stdout.take().context("a pipe")?;
    let mut first = [0; 14];
    pipe.read_exact(&mut first).context("the first line")?;
    same(&first, b"over and over\n")?;
    drop(pipe);
    let ended = world.wait(&run.spawned, LONG)?;
    ensure!(ended == Ended::Signal(13), "run ended with {ended}: {}", run.stderr());
    let report = run.expect_ended(place, "exited")?;
    ensure!(report.leader() == Some(Ended::Signal(13)), "the leader: {:?}", report.exit);
    let kept = log(world, &report.id, "out.log")?;
    ensure!(kept.starts_with(&first), "the log begins with something else");
    all_clean(world)
}

/// Whoever closes its stdout early is heard at once, as without us.
fn early_end(world: &mut World, place: Place) -> Outcome {
    let _go = Lines::create(world, "go")?;
    let script = "echo all; exec >&-; read go < go; echo err >&2; exit 7";
    let mut run = launch(place).stdout(Stdio::piped()).start(world, &["sh", "-c", script])?;
    let shown = Collect::start(run.child.stdout.take().context("a pipe")?);
    same(&shown.end()?, b"all\n")?;
    ensure!(world.ended(&run.spawned).is_none(), "it has ended");
    ensure!(live_ids(world).len() == 1, "it is not listed any more");
    fs::write(world.dir().join("go"), "now\n").context("go")?;
    let ended = world.wait(&run.spawned, LONG)?;
    ensure!(ended == Ended::Code(7), "run ended with {ended}: {}", run.stderr());
    ensure!(run.stderr() == "err\n", "its stderr was {:?}", run.stderr());
    let report = run.expect_ended(place, "exited")?;
    same(&log(world, &report.id, "out.log")?, b"all\n")?;
    same(&log(world, &report.id, "err.log")?, b"err\n")?;
    all_clean(world)
}
