//! The options of `run`, each doing what it says.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::time::Instant;

use arena::report::{Exit, Report};
use arena::{
    Context, Drain, Ended, Need, Outcome, Process, Registry, Signal, User, World, await_until,
    ensure, millis, seconds, send_signal,
};
use rustix::fs::OFlags;

use super::kit::{
    ANYWHERE, AS_ROOT, Cage, EVERYWHERE, Launch, Lines, Place, SOON, add, all_clean, children,
    keeper, no_cgroup,
};

pub fn register(registry: &mut Registry) {
    add(registry, "on-exit::wait", &EVERYWHERE, &[], wait);
    add(registry, "on-exit::wait-and-stop", &EVERYWHERE, &[], wait_and_stop);
    add(registry, "on-exit::release", &EVERYWHERE, &[], release);
    add(registry, "on-exit::release-nobody", &EVERYWHERE, &[], release_nobody);
    add(registry, "on-host-exit::ignore", &EVERYWHERE, &[], |world, place| {
        host(world, place, "ignore")
    });
    add(registry, "on-host-exit::stop", &EVERYWHERE, &[], |world, place| {
        host(world, place, "stop")
    });
    let plain = Place { cage: Cage::Cgroup, user: User::Plain };
    registry
        .scenario("cage::cgroup-not-ours", &[Need::Cgroup], move |world| no_access(world, plain));
    registry.scenario("cage::no-cgroup-mounted", &[Need::Cgroup], move |world| {
        not_mounted(world, AS_ROOT[0])
    });
    add(registry, "ladder::close-stdin", &EVERYWHERE, &[], close_stdin);
    add(registry, "ladder::input", &EVERYWHERE, &[], input);
    add(registry, "ladder::input-passes-through", &EVERYWHERE, &[], passes_through);
    add(registry, "ladder::input-nobody-reads", &EVERYWHERE, &[], nobody_reads);
    add(registry, "signals::forwarded", &EVERYWHERE, &[], forwarded);
    add(registry, "report::to-stdout", &EVERYWHERE, &[], to_stdout);
    add(registry, "report::cannot-be-opened", &ANYWHERE, &[], cannot_be_opened);
    add(registry, "report::cannot-be-written", &EVERYWHERE, &[], cannot_be_written);
    add(registry, "report::nobody-reads", &EVERYWHERE, &[], nobody_reads_the_report);
    add(registry, "bounded::nobody-reads-stderr", &EVERYWHERE, &[], nobody_reads_stderr);
    add(registry, "bounded::nobody-reads-verbose", &EVERYWHERE, &[], nobody_reads_verbose);
}

/// A leader that leaves a child behind, which lives until it is told to go.
const LEAVES: &str = "(echo up > ready; read go < go) & exit 3";

fn told_to_go(world: &World) -> Outcome {
    fs::write(world.dir().join("go"), "now\n").context("go")
}

fn wait(world: &mut World, place: Place) -> Outcome {
    let mut ready = Lines::create(world, "ready")?;
    let _go = Lines::create(world, "go")?;
    let run =
        Launch::new(place).options(&["--on-exit", "wait"]).start(world, &["sh", "-c", LEAVES])?;
    ready.expect("up")?;
    let keeper = keeper(world)?;
    ensure!(await_until(SOON, || children(keeper.pid).len() == 1), "the leader does not leave");
    ensure!(world.ended(&run.spawned).is_none(), "run did not wait");
    told_to_go(world)?;
    let ended = world.wait(&run.spawned, SOON)?;
    ensure!(ended == Ended::Code(3), "run ended with {ended}");
    let report = run.expect_ended(place, "exited")?;
    ensure!(report.steps.is_empty(), "nobody was to be stopped: {:?}", report.steps);
    all_clean(world)
}

fn wait_and_stop(world: &mut World, place: Place) -> Outcome {
    let mut ready = Lines::create(world, "ready")?;
    let _go = Lines::create(world, "go")?;
    let run =
        Launch::new(place).options(&["--on-exit", "wait"]).start(world, &["sh", "-c", LEAVES])?;
    ready.expect("up")?;
    let keeper = keeper(world)?;
    ensure!(await_until(SOON, || children(keeper.pid).len() == 1), "the leader does not leave");
    send_signal(run.pid(), Signal::TERM)?;
    let ended = world.wait(&run.spawned, SOON)?;
    ensure!(ended == Ended::Code(3), "run ended with {ended}");
    let report = run.expect_ended(place, "stopped")?;
    ensure!(report.has_step("term@children"), "the steps were {:?}", report.steps);
    all_clean(world)
}

/// The one deliberate hand-off: loud, complete, and nobody is touched.
fn release(world: &mut World, place: Place) -> Outcome {
    let mut ready = Lines::create(world, "ready")?;
    let command = "sleep 50 & setsid sleep 50 & (trap '' HUP; echo up > ready; exec sleep 50) & \
                   read go < go; exit 5";
    let _go = Lines::create(world, "go")?;
    let run = Launch::new(place)
        .options(&["--on-exit", "release"])
        .start(world, &["sh", "-c", command])?;
    ready.expect("up")?;
    let keeper = keeper(world)?;
    let sleepers = || -> Vec<Process> {
        world.survivors().into_iter().filter(|process| process.comm == "sleep").collect()
    };
    ensure!(await_until(SOON, || sleepers().len() == 3), "there are not three sleepers");
    told_to_go(world)?;
    let ended = world.wait(&run.spawned, SOON)?;
    ensure!(ended == Ended::Code(5), "run ended with {ended}");
    ensure!(keeper.still_there().is_none(), "the keeper stayed");
    let left = sleepers();
    ensure!(left.len() == 3, "{} of three live on", left.len());
    let report = run.report()?;
    ensure!(report.state == "released", "the report says {}", report.state);
    ensure!(report.proof.is_none(), "released, with the proof {:?}", report.proof);
    ensure!(report.exit == Some(Exit::Code(5)), "the leader ended with {:?}", report.exit);
    let mut named: Vec<i32> = report.released.iter().map(|member| member.pid).collect();
    named.sort_unstable();
    let mut real: Vec<i32> = left.iter().map(|process| process.pid).collect();
    real.sort_unstable();
    ensure!(named == real, "named are {named:?}, released were {real:?}");
    let said = run.stderr();
    for pid in &real {
        ensure!(said.contains(&pid.to_string()), "{pid} is not named on stderr: {said}");
    }
    no_cgroup(world)?;
    let own = fs::read_to_string("/proc/self/cgroup").context("own cgroup")?;
    for process in &left {
        let theirs = fs::read_to_string(format!("/proc/{}/cgroup", process.pid));
        ensure!(theirs.is_ok_and(|theirs| theirs == own), "{process} is not where run was");
        ensure!(!matches!(process.state, 'T' | 't'), "somebody was stopped: {process}");
    }
    // What was let go is ours to end.
    for process in left {
        send_signal(process.pid, Signal::KILL)?;
    }
    world.expect_extinct(SOON)?;
    all_clean(world)
}

fn release_nobody(world: &mut World, place: Place) -> Outcome {
    let (ended, run) = Launch::new(place)
        .options(&["--on-exit", "release"])
        .finish(world, &["sh", "-c", "exit 6"])?;
    ensure!(ended == Ended::Code(6), "run ended with {ended}");
    run.expect_ended(place, "exited")?;
    ensure!(run.stderr().is_empty(), "much ado about nothing: {}", run.stderr());
    all_clean(world)
}

fn host(world: &mut World, place: Place, policy: &str) -> Outcome {
    let mut ready = Lines::create(world, "ready")?;
    let _go = Lines::create(world, "go")?;
    // The host has something to do afterwards, so it stays a process of its own.
    let run = Launch::new(place)
        .before(&["sh", "-c", "\"$@\"; exit $?", "host"])
        .options(&["--on-host-exit", policy])
        .start(world, &["sh", "-c", "echo up > ready; read go < go; exit 0"])?;
    ready.expect("up")?;
    let keeper = keeper(world)?;
    send_signal(run.pid(), Signal::KILL)?;
    world.wait(&run.spawned, SOON)?;
    if policy == "ignore" {
        // It is not an event when nothing happens: two ladders' time is waited.
        std::thread::sleep(millis(1200));
        ensure!(keeper.still_there().is_some(), "the run did not ignore its host's death");
        ensure!(children(keeper.pid).len() == 1, "the command is gone");
        told_to_go(world)?;
        world.expect_extinct(SOON)?;
        run.expect_ended(place, "exited")?;
    } else {
        world.expect_extinct(seconds(1))?;
        run.expect_ended(place, "host-gone")?;
    }
    all_clean(world)
}

/// A forced choice that cannot be had is an error, never a downgrade.
fn no_access(world: &mut World, place: Place) -> Outcome {
    let (ended, run) = Launch::new(place).finish(world, &["touch", "was-here"])?;
    refused(world, ended, &run.stderr())?;
    // Left to fullstop, the next best is taken, and said.
    let mut auto = world.command(world.fullstop());
    let report = world.out().join("auto.json");
    auto.args(["run", "--report"]).arg(&report).args(["--", "true"]);
    place.user.apply(&mut auto);
    let spawned = world.spawn("run", &mut auto)?;
    let ended = world.wait(&spawned, SOON)?;
    ensure!(ended == Ended::Code(0), "without a choice run ended with {ended}");
    let report = Report::read(&report)?;
    ensure!(report.cage == "tree", "the cage was a {}", report.cage);
    ensure!(report.proof.as_deref() == Some("no-children"), "proof {:?}", report.proof);
    all_clean(world)
}

fn refused(world: &World, ended: Ended, said: &str) -> Outcome {
    ensure!(ended == Ended::Code(125), "run ended with {ended}: {said}");
    ensure!(said.lines().count() == 1, "not one line was said: {said:?}");
    ensure!(said.starts_with("fullstop: ") && said.contains("cgroup"), "unclear: {said:?}");
    ensure!(!world.dir().join("was-here").exists(), "the command ran all the same");
    all_clean(world)
}

fn not_mounted(world: &mut World, place: Place) -> Outcome {
    let hide = "umount -l \"$0\" && exec \"$@\"";
    let own = arena::own_cgroup()?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").context("mountinfo")?;
    let point = mounts
        .lines()
        .filter(|line| line.contains(" - cgroup2 "))
        .filter_map(|line| line.split(' ').nth(4))
        .find(|point| own.path().starts_with(point))
        .context("the mount of our cgroup")?;
    let before = ["unshare", "--mount", "sh", "-c", hide, point];
    let (ended, run) = Launch::new(place).before(&before).finish(world, &["touch", "was-here"])?;
    refused(world, ended, &run.stderr())
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
    ensure!(asked.elapsed() < seconds(4), "it took {:?}", asked.elapsed());
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
    let writer = std::thread::spawn(move || while stdin.write_all(&[b'x'; 65_536]).is_ok() {});
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

fn to_stdout(world: &mut World, place: Place) -> Outcome {
    let mut run = Launch::new(place)
        .without_report()
        .options(&["--report", "-"])
        .stdout(Stdio::piped())
        .start(world, &["sh", "-c", "echo the output; sleep 50 & exit 2"])?;
    let output = Drain::start(run.child.stdout.take().context("stdout")?);
    let ended = world.wait(&run.spawned, SOON)?;
    ensure!(ended == Ended::Code(2), "run ended with {ended}");
    let said = output.expect_end(millis(500))?.beginning;
    let (first, rest) = said.split_once('\n').context("one line at least")?;
    ensure!(first == "the output", "the command's output comes first: {said}");
    let path = world.out().join("report.json");
    fs::write(&path, rest).context("report")?;
    let report = Report::read(&path)?;
    ensure!(report.state == "ended" && report.leftovers.len() == 1, "{report:?}");
    // A file that is appended to keeps what it has.
    let path = world.out().join("log");
    fs::write(&path, "before\n").context("log")?;
    let log = File::options().append(true).open(&path).context("log")?;
    let launch = Launch::new(place).without_report().options(&["--report", "-"]);
    let (ended, _) = launch.stdout(log).finish(world, &["echo", "during"])?;
    ensure!(ended == Ended::Code(0), "run ended with {ended}");
    let log = fs::read_to_string(&path).context("log")?;
    ensure!(log.starts_with("before\nduring\n{"), "the log is {log:?}");
    all_clean(world)
}

fn cannot_be_opened(world: &mut World, place: Place) -> Outcome {
    for path in ["/no/such/dir/report.json", "/", ""] {
        let launch = Launch::new(place).without_report().options(&["--report", path]);
        let (ended, run) = launch.finish(world, &["touch", "was-here"])?;
        let said = run.stderr();
        ensure!(ended == Ended::Code(125), "--report {path:?}: run ended with {ended}: {said}");
        ensure!(said.lines().count() == 1, "not one line was said: {said:?}");
        ensure!(said.starts_with("fullstop: ") && said.contains("--report"), "unclear: {said:?}");
        ensure!(!world.dir().join("was-here").exists(), "the command ran all the same");
    }
    all_clean(world)
}

/// A report that cannot be written changes nothing but is said.
fn cannot_be_written(world: &mut World, place: Place) -> Outcome {
    let launch = Launch::new(place).without_report().options(&["--report", "/dev/full"]);
    let (ended, run) = launch.finish(world, &["sh", "-c", "exit 3"])?;
    ensure!(ended == Ended::Code(3), "run ended with {ended}");
    let said = run.stderr();
    ensure!(said.lines().count() == 1, "not one line was said: {said:?}");
    ensure!(said.contains("report"), "unclear: {said:?}");
    all_clean(world)
}

/// A pipe that is full, with nobody who reads.
fn full_pipe() -> Outcome<(OwnedFd, OwnedFd)> {
    let (reader, writer) =
        rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).context("pipe")?;
    rustix::fs::fcntl_setfl(&writer, OFlags::NONBLOCK).context("fcntl")?;
    while rustix::io::write(&writer, &[b'.'; 4096]).is_ok() {}
    rustix::fs::fcntl_setfl(&writer, OFlags::empty()).context("fcntl")?;
    Ok((reader, writer))
}

fn read_all(reader: OwnedFd) -> String {
    let mut text = String::new();
    let _ = File::from(reader).read_to_string(&mut text);
    text.trim_start_matches('.').to_owned()
}

/// Promise 4: a stop returns within its ladder plus five seconds, whoever holds
/// a pipe open.
fn nobody_reads_the_report(world: &mut World, place: Place) -> Outcome {
    let mut ready = Lines::create(world, "ready")?;
    let (reader, writer) = full_pipe()?;
    let launch = Launch::new(place).without_report().options(&["--report", "-"]);
    let run = launch
        .options(&["--grace", "200ms"])
        .stdout(writer)
        .start(world, &["sh", "-c", "echo up > ready; exec sleep 50"])?;
    ready.expect("up")?;
    send_signal(run.pid(), Signal::TERM)?;
    world.wait(&run.spawned, millis(5200))?;
    let _ = read_all(reader);
    world.expect_extinct(seconds(1))?;
    all_clean(world)
}

/// What `run` has to say must not keep it from returning either.
fn nobody_reads_stderr(world: &mut World, place: Place) -> Outcome {
    let mut ready = Lines::create(world, "ready")?;
    let (_reader, writer) = full_pipe()?;
    let run = Launch::new(place)
        .stderr(writer)
        .start(world, &["sh", "-c", "echo up > ready; exec sleep 50"])?;
    ready.expect("up")?;
    send_signal(keeper(world)?.pid, Signal::KILL)?;
    world.wait(&run.spawned, millis(5200))?;
    run.expect_ended(place, "keeper-died")?;
    all_clean(world)
}

fn nobody_reads_verbose(world: &mut World, place: Place) -> Outcome {
    let mut ready = Lines::create(world, "ready")?;
    let (_reader, writer) = full_pipe()?;
    let run = Launch::new(place)
        .options(&["-v", "--grace", "200ms"])
        .stderr(writer)
        .start(world, &["sh", "-c", "echo up > ready; exec sleep 50"])?;
    ready.expect("up")?;
    keeper(world)?;
    send_signal(run.pid(), Signal::TERM)?;
    world.wait(&run.spawned, millis(5200))?;
    run.expect_ended(place, "stopped")?;
    all_clean(world)
}
