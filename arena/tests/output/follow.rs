//! `logs -f`: live, over rotation, restart and a keeper's death, to the end; and nobody
//! who writes ever waits for it.

use std::fs;

use arena::{
    Context, Ended, Need, Outcome, Ready, Registry, Signal, World, await_until, ensure, send_signal,
};

use super::tools::{Collect, LONG, collected, lines, log, over, same, same_as_counted, trace};
use crate::desk::{all_clean, ask_program, lose, nobody, start, tell, who, zoo};
use crate::kit::{ANYWHERE, AS_ROOT, Lines, Place, add};

pub fn register(registry: &mut Registry) {
    add(registry, "follow::live", &AS_ROOT, &[], live);
    add(registry, "follow::restart", &ANYWHERE, &[], restart);
    add(registry, "follow::keeper-dies", &AS_ROOT, &[], keeper_dies);
    add(registry, "follow::rotation", &ANYWHERE, &[], rotation);
    add(registry, "follow::does-not-read", &ANYWHERE, &[], does_not_read);
    add(registry, "follow::reader-leaves", &ANYWHERE, &[], reader_leaves);
    add(registry, "follow::all-die", &ANYWHERE, &[], all_die);
    let strace = [Need::Program("strace")];
    add(registry, "follow::waits", &ANYWHERE, &strace, waits);
    add(registry, "follow::nobody-tells", &ANYWHERE, &strace, nobody_tells);
}

fn go(world: &World) -> Outcome {
    fs::write(world.dir().join("go"), "now\n").context("go")
}

/// It ends with the run, and has said all of it.
fn finish(world: &World, follower: &arena::Spawned, seen: &Collect) -> Outcome<Vec<u8>> {
    let all = seen.end()?;
    let ended = world.wait(follower, LONG)?;
    ensure!(ended == Ended::Code(0), "logs -f ended with {ended}");
    Ok(all)
}

fn live(world: &mut World, place: Place) -> Outcome {
    let _go = Lines::create(world, "go")?;
    let script = "echo one; read go < go; echo two >&2; read go < go; printf three";
    let id = start(world, place, &[], &["sh", "-c", script])?;
    let (follower, seen) = collected(world, place, &["logs", "-f", &id])?;
    // What it says must be seen before the run goes on.
    seen.expect("one\n")?;
    go(world)?;
    seen.expect("two\n")?;
    go(world)?;
    same(&finish(world, &follower, &seen)?, b"one\ntwo\nthree\n")?;
    over(world, place, &id)?.0.expect(0)?;
    all_clean(world)
}

/// One that is there while it is restarted goes on with the next generation.
fn restart(world: &mut World, place: Place) -> Outcome {
    let _go = Lines::create(world, "go")?;
    let script = "echo x >> rounds; echo round $(wc -l < rounds); read go < go; echo done";
    let id = start(world, place, &[], &["sh", "-c", script])?;
    let (follower, seen) = collected(world, place, &["logs", "-f", &id])?;
    seen.expect("round 1\n")?;
    tell(world, place, &["restart", &id])?;
    // Whether it ends between the two is a matter of luck; then the next one tells all.
    let again = || {
        String::from_utf8_lossy(&seen.so_far()).contains("round 2\n")
            || world.ended(&follower).is_some()
    };
    ensure!(await_until(LONG, again), "nothing of the second generation is seen");
    let (second, seen_again) = collected(world, place, &["logs", "-f", &id])?;
    seen_again.expect("round 2\n")?;
    go(world)?;
    let should = b"round 1\nround 2\ndone\n";
    same(&finish(world, &second, &seen_again)?, should)?;
    let first = finish(world, &follower, &seen)?;
    ensure!(should.starts_with(&first), "the first one saw {:?}", String::from_utf8_lossy(&first));
    all_clean(world)
}

fn keeper_dies(world: &mut World, place: Place) -> Outcome {
    let mut ready = Ready::create(&world.dir())?;
    let words = zoo(world, "count");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let id = start(world, place, &[], &words)?;
    let (follower, seen) = collected(world, place, &["logs", "-f", "--raw", &id])?;
    ready.wait(LONG).context("it does not count")?;
    seen.expect("line 1000\n")?;
    send_signal(who(world, &id)?.keeper.pid, Signal::KILL)?;
    let seen = finish(world, &follower, &seen)?;
    over(world, place, &id)?;
    nobody(world)?;
    same_as_counted(world, &seen)?;
    same(&seen, &log(world, &id, "out.log")?)?;
    all_clean(world)
}

/// Files go while they are read. What is seen is what was written, and what is not is
/// said to be cut.
fn rotation(world: &mut World, place: Place) -> Outcome {
    const COUNT: u64 = 100_000;
    let words = [zoo(world, "count"), vec![COUNT.to_string()]].concat();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let id = start(world, place, &["--log-max", "64KB"], &words)?;
    let (follower, seen) = collected(world, place, &["logs", "-f", "--json", &id])?;
    let seen = finish(world, &follower, &seen)?;
    let all = lines(COUNT);
    let mut at = 0;
    for told in String::from_utf8_lossy(&seen).lines() {
        let told: serde_json::Value = serde_json::from_str(told).context(told.to_owned())?;
        let text = told["text"].as_str().unwrap_or_default();
        let cut = told["cut"].as_u64().unwrap_or_default();
        let is = all.get(at..at + text.len()) == Some(text.as_bytes());
        ensure!(is, "at {at} there is {text:?}");
        at += text.len() + usize::try_from(cut).context("cut")?;
    }
    ensure!(at == all.len(), "it ends at {at} of {}", all.len());
    over(world, place, &id)?.0.expect(0)?;
    all_clean(world)
}

/// The follower is stuck behind a reader who reads nothing; the command does not notice.
fn does_not_read(world: &mut World, place: Place) -> Outcome {
    const COUNT: u64 = 300_000;
    let mut ready = Ready::create(&world.dir())?;
    let mut command = world.command(world.fullstop());
    let words = [zoo(world, "count"), vec![COUNT.to_string()]].concat();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let id = start(world, place, &[], &words)?;
    command.args(["logs", "-f", &id]).stdout(std::process::Stdio::piped());
    let (follower, mut child) = world.spawn_piped("logs -f", &mut command)?;
    ready.wait(LONG).context("it does not count")?;
    super::tools::await_blocked(follower.pid)?;
    let (said, _) = over(world, place, &id)?;
    said.expect(0)?;
    ensure!(world.ended(&follower).is_none(), "the follower has left");
    same(&log(world, &id, "out.log")?, &lines(COUNT))?;
    // And in the end it gets to see all of it.
    let seen = Collect::start(child.stdout.take().context("a pipe")?);
    same(&finish(world, &follower, &seen)?, &lines(COUNT))?;
    all_clean(world)
}

/// `logs -f | head -1` does not stay behind a silent run.
fn reader_leaves(world: &mut World, place: Place) -> Outcome {
    let _go = Lines::create(world, "go")?;
    let id = start(world, place, &[], &["sh", "-c", "echo one; read go < go"])?;
    let mut command = world.command(world.fullstop());
    command.args(["logs", "-f", &id]).stdout(std::process::Stdio::piped());
    let (follower, mut child) = world.spawn_piped("logs -f", &mut command)?;
    let mut pipe = child.stdout.take().context("a pipe")?;
    let mut first = [0; 4];
    std::io::Read::read_exact(&mut pipe, &mut first).context("the first line")?;
    drop(pipe);
    world.wait(&follower, LONG).context("its reader has left")?;
    go(world)?;
    over(world, place, &id)?.0.expect(0)?;
    all_clean(world)
}

/// Keeper and guard leave no word behind. That is found out all the same.
fn all_die(world: &mut World, place: Place) -> Outcome {
    let _go = Lines::create(world, "go")?;
    let id = start(world, place, &[], &["sh", "-c", "echo one; read go < go"])?;
    let (follower, seen) = collected(world, place, &["logs", "-f", &id])?;
    seen.expect("one\n")?;
    lose(world, &id)?;
    same(&finish(world, &follower, &seen)?, b"one\n")?;
    tell(world, place, &["sweep"])?;
    all_clean(world)
}

/// While a run is silent for five seconds, its follower hardly does anything in the last three of
/// them; before, what is written about the run wakes it: the birth of `sleep`.
fn waits(world: &mut World, place: Place) -> Outcome {
    /// A look or two, each of some twenty calls. A follower that looks four times a second makes
    /// more than two hundred.
    const MOST: usize = 80;
    /// From so long to so long before the next line, in seconds.
    const SILENCE: (f64, f64) = (3.5, 0.5);
    let _go = Lines::create(world, "go")?;
    let script = "echo one; read go < go; sleep 5; echo two";
    let id = start(world, place, &[], &["sh", "-c", script])?;
    let (follower, seen) = collected(world, place, &["logs", "-f", &id])?;
    seen.expect("one\n")?;
    let path = world.out().join("calls");
    let words = ["-f", "-ttt", "-o", path.to_str().context("a path")?];
    let tracer = trace(world, follower.pid, &words)?;
    go(world)?;
    seen.expect("two\n")?;
    same(&finish(world, &follower, &seen)?, b"one\ntwo\n")?;
    world.wait(&tracer, LONG)?;
    let text = fs::read_to_string(&path).context("calls")?;
    let at = |line: &str| line.split_whitespace().nth(1)?.parse::<f64>().ok();
    let two = text.lines().find(|line| line.contains("two")).and_then(at).context("no line")?;
    // A call that another thread's interrupts in the listing has two lines there.
    let begins = |line: &&str| !line.contains("resumed>");
    let is_silent = |at: f64| (SILENCE.1..SILENCE.0).contains(&(two - at));
    let calls = text.lines().filter(begins).filter_map(at).filter(|at| is_silent(*at)).count();
    world.note(format!("{calls} calls in three seconds"));
    ensure!(calls < MOST, "{calls} calls in three seconds, and not {MOST}:\n{text}");
    over(world, place, &id)?.0.expect(0)?;
    all_clean(world)
}

/// A user has few inotify instances. Without one it is looked for output, and that is said.
fn nobody_tells(world: &mut World, place: Place) -> Outcome {
    let _go = Lines::create(world, "go")?;
    let id = start(world, place, &[], &["sh", "-c", "echo one; read go < go; echo two"])?;
    let program = world.fullstop();
    let words = ["logs", "-f"];
    let asked = ask_program(world, place, "strace", &words, |command| {
        command.args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=inotify_init1"]);
        command.args(["-e", "inject=inotify_init1:error=EMFILE"]);
        command.arg(program).args(words).arg(&id);
    })?;
    let told = || asked.stderr().contains("four times a second");
    ensure!(await_until(LONG, told), "it does not say so: {:?}", asked.stderr());
    go(world)?;
    let said = asked.hear(world, LONG)?;
    said.expect(0)?;
    same(said.out.as_bytes(), b"one\ntwo\n")?;
    ensure!(said.err.lines().count() == 1, "it says {:?}", said.err);
    over(world, place, &id)?.0.expect(0)?;
    all_clean(world)
}
