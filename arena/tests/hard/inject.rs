//! System calls that fail where they never should. Whatever the kernel refuses,
//! either the run works by another way, or it fails and says so; and in no case
//! does the report say anything that the kernel does not.
//!
//! A tracer makes the calls fail in guard and keeper alone: it lets go of the
//! leader when it becomes the command.

use std::fs;
use std::time::Duration;

use arena::{
    Context, Need, Outcome, Process, Registry, Signal, World, await_until, ensure, millis, seconds,
    send_signal,
};

use super::faults::FAULTS;
use super::kit::{
    Cage, EVERYWHERE, Launch, Lines, Place, Run, SOON, add_with, children, keeper, no_cgroup,
};

/// Short, because many fall only to the last step, and some not even to that.
const LADDER: &str = "term@leader:60ms,term@tree:60ms,kill:1s";
/// Twice the usual five seconds: who is traced is slow.
const BOUND: Duration = millis(120 + 10_000);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// A deaf tree is asked to stop.
    Asked,
    /// The leader leaves a deaf daemon behind.
    Natural,
    /// The keeper is killed, and its guard must do.
    KeeperKilled,
}

pub fn register(registry: &mut Registry) {
    // As root in one cage and as a user in the other, so that each is tried.
    let places = [EVERYWHERE[0], EVERYWHERE[3]];
    for &fault in FAULTS {
        let ends = [
            ("asked", End::Asked),
            ("natural", End::Natural),
            ("keeper-killed", End::KeeperKilled),
        ];
        for (name, end) in ends {
            if end == End::KeeperKilled && !concerns_the_guard(fault) {
                continue;
            }
            let name = format!("inject::{}::{name}", fault.replace(' ', "&"));
            let needs = [Need::Program("strace")];
            add_with(
                registry,
                &name,
                &places,
                &needs,
                |_| {},
                move |world, place| play(world, place, fault, end),
            );
        }
    }
    for fault in ["mkdir=EACCES", "mkdir=EROFS", "clone3=ENOSYS write=EACCES:when=1"] {
        let name = format!("inject::{}::auto", fault.replace(' ', "&"));
        add_with(
            registry,
            &name,
            &[EVERYWHERE[0]],
            &[Need::Program("strace")],
            |_| {},
            move |world, place| auto(world, place, fault),
        );
    }
}

/// What a guard needs in its keeper's place: to see, to signal and to wait.
fn concerns_the_guard(fault: &str) -> bool {
    ["pidfd", "kill", "open", "waitid", "write", "rmdir", "read"]
        .iter()
        .any(|call| fault.starts_with(call))
}

/// A daemon (its parent leaves at once) in a session of its own, deaf, that says
/// when it stands; a leader that is deaf as well, until it may go.
const TREE: &str = "trap '' TERM; \
    (setsid sh -c 'trap \"\" TERM; echo up > ready; sleep 50; true' &); read go < go; exit 3";

struct Traced {
    run: Run,
    trace: String,
    /// The process that is `fullstop run`.
    guard: Option<i32>,
}

fn start(world: &mut World, place: Place, fault: &str, options: &[&str]) -> Outcome<Traced> {
    let trace = super::kit::text(world.dir().join("trace"));
    let mut tracer: Vec<String> =
        ["strace", "-f", "-b", "execve", "-q", "-o", &trace].map(str::to_owned).to_vec();
    // The first line is then the guard's.
    let mut traced = vec!["execve".to_owned()];
    for fault in fault.split(' ') {
        let (calls, error) = fault.split_once('=').context("a fault is CALLS=ERROR")?;
        // Not every machine has every call; a question mark makes it optional.
        let calls: Vec<String> = calls.split(',').map(|call| format!("?{call}")).collect();
        tracer.extend(["-e".into(), format!("inject={}:error={error}", calls.join(","))]);
        traced.extend(calls);
    }
    tracer.extend(["-e".into(), format!("trace={}", traced.join(","))]);
    let tracer: Vec<&str> = tracer.iter().map(String::as_str).collect();
    let launch = Launch::new(place).before(&tracer).options(&["--ladder", LADDER]);
    let run = launch.options(options).start(world, &["sh", "-c", TREE])?;
    world.attach("trace", &trace);
    Ok(Traced { run, trace, guard: None })
}

impl Traced {
    /// Waits until the tree stands, or the guard has ended without one.
    fn stands(&mut self, world: &World, ready: &mut Lines) -> Outcome<bool> {
        let find = || children(self.run.pid()).into_iter().find(|p| p.comm.starts_with("fullstop"));
        let began =
            await_until(SOON, || find().is_some() || world.ended(&self.run.spawned).is_some());
        ensure!(began, "the tracer starts nothing");
        self.guard = find().map(|process| process.pid);
        let mut up = false;
        let over = await_until(seconds(10), || {
            up = up || ready.next(Duration::ZERO).is_ok();
            up || self.status().is_some()
        });
        ensure!(over, "neither does the tree stand, nor has run ended");
        Ok(up)
    }

    /// How the guard ended, as the tracer saw it; the tracer itself stays as long
    /// as there is a keeper.
    fn status(&self) -> Option<String> {
        let text = fs::read_to_string(&self.trace).ok()?;
        let first = text.split_ascii_whitespace().next()?.to_owned();
        let ended = |line: &&str| {
            line.starts_with(&format!("{first} ")) && line.contains("+++ ") && line.ends_with("+++")
        };
        let line = text.lines().find(ended)?;
        let (_, how) = line.split_once("+++ ")?;
        Some(how.trim_end_matches(" +++").to_owned())
    }
}

fn play(world: &mut World, place: Place, fault: &str, end: End) -> Outcome {
    let mut ready = Lines::create(world, "ready")?;
    let _go = Lines::create(world, "go")?;
    let mut traced = start(world, place, fault, &[])?;
    if traced.stands(world, &mut ready)? {
        match end {
            End::Asked => {
                let guard = traced.guard.context("no guard")?;
                let _ = send_signal(guard, Signal::TERM);
            }
            End::Natural => fs::write(world.dir().join("go"), "now\n").context("go")?,
            End::KeeperKilled => send_signal(keeper(world)?.pid, Signal::KILL)?,
        }
    }
    ensure!(await_until(BOUND, || traced.status().is_some()), "run has not ended within {BOUND:?}");
    judge(world, place, &traced, fault, end)
}

/// The members that are alive: neither fullstop's own nor the tracer.
fn members(world: &World) -> Vec<Process> {
    let mut all = world.survivors();
    all.retain(|process| !process.comm.starts_with("fullstop") && process.comm != "strace");
    all
}

/// Compares what was said with what is.
fn judge(world: &mut World, place: Place, traced: &Traced, fault: &str, end: End) -> Outcome {
    let status = traced.status().unwrap_or_default();
    let said = traced.run.stderr();
    let alive = members(world);
    let report = traced.run.report();
    world.note(format!("{fault}: {status}; alive: {alive:?}"));
    match status.as_str() {
        "exited with 120" => {
            let readable = await_until(seconds(1), || traced.run.report().is_ok());
            ensure!(readable, "status 120, and {:?}", traced.run.report().map(drop));
            let report = traced.run.report()?;
            if report.state == "ended" && report.proof.is_some() {
                // Only slow: what was stuck is confirmed by now.
                ensure!(members(world).is_empty(), "confirmed, and these live: {alive:?}");
                return Ok(());
            }
            ensure!(report.state == "stuck", "status 120, and the report says {}", report.state);
            ensure!(report.proof.is_none(), "stuck, with a proof");
            let mut named: Vec<i32> = report.survivors.iter().map(|member| member.pid).collect();
            let mut real: Vec<i32> = alive.iter().map(|process| process.pid).collect();
            named.sort_unstable();
            real.sort_unstable();
            if end == End::KeeperKilled {
                // Whoever goes on in the guard's place has looked again by then.
                std::thread::sleep(millis(1300));
                let (alive, report) = (members(world), traced.run.report()?);
                let lie = report.state != "stuck" && !alive.is_empty();
                ensure!(!lie, "it is {} now, and these live: {alive:?}", report.state);
            }
            // Where nothing can be opened nobody can be seen; that is no census.
            let blind = ["open", "stat", "ESRCH"].iter().any(|word| fault.contains(word));
            if blind && named.is_empty() {
                ensure!(
                    !said.contains("0 processes"),
                    "nobody was seen, which is said as {said:?}"
                );
            } else {
                ensure!(named == real, "survivors are {real:?}, named are {named:?}");
            }
            ensure!(!real.is_empty(), "stuck, and nobody lives");
            for pid in named {
                ensure!(said.contains(&format!("pid {pid} ")), "{pid} is not named: {said}");
            }
            return recovers(world, traced, &alive);
        }
        "exited with 125" => {
            ensure!(alive.is_empty(), "125, and these live: {alive:?}");
            let lines = said.lines().filter(|line| line.starts_with("fullstop: ")).count();
            let mute = fault.contains("write=");
            ensure!(mute || lines >= 1 && said.lines().count() == lines, "125, saying {said:?}");
            ensure!(!said.contains("panicked"), "a panic: {said:?}");
            if let Ok(report) = report {
                ensure!(
                    report.state == "ended" && report.exit.is_none(),
                    "125, reporting {report:?}"
                );
            }
        }
        // The leader was killed, or ended as it was told.
        "exited with 137" | "exited with 3" | "killed by SIGTERM" => {
            ensure!(alive.is_empty(), "{status}, and these live: {alive:?}");
            let natural = end == End::Natural && status == "exited with 3";
            ensure!(natural || status != "exited with 3", "a deaf leader {status}");
            match report {
                Ok(report) => {
                    ensure!(report.state == "ended", "nobody lives, and it is {}", report.state);
                    ensure!(report.proof.is_some(), "ended without a proof");
                    let cage = place.cage.to_string();
                    ensure!(report.cage == cage, "the cage was a {}, not {cage}", report.cage);
                }
                // What cannot be written must be said.
                Err(why) => ensure!(
                    said.contains("report") || fault.contains("write="),
                    "{}, and nothing is said: {said:?}",
                    why.text
                ),
            }
        }
        _ => return Err(format!("run {status}, saying {said:?}; alive: {alive:?}").into()),
    }
    // The keeper follows at once; only what was refused may be left.
    let ours = || world.survivors().into_iter().filter(|p| p.comm != "strace").count();
    ensure!(
        await_until(seconds(2), || ours() == 0),
        "fullstop itself stays: {:?}",
        world.survivors()
    );
    if !fault.starts_with("rmdir") {
        ensure!(await_until(seconds(1), || no_cgroup(world).is_ok()), "a cgroup is left");
    }
    if place.cage == Cage::Cgroup && fault.starts_with("rmdir") {
        let own = world.cgroup().context("cgroup")?.clone();
        for child in own.children() {
            child.remove(seconds(1))?;
        }
    }
    world.expect_bystanders_untouched()
}

/// Somebody else ends the survivors, and the faults end with the tracer: then the
/// run must confirm its end by itself.
fn recovers(world: &World, traced: &Traced, alive: &[Process]) -> Outcome {
    // Asked before: whoever follows the run may confirm its end at once.
    let known = |process: &Process| alive.iter().any(|member| member.pid == process.pid);
    let is_followed = world.survivors().iter().any(|p| p.comm != "strace" && !known(p));
    for process in alive {
        // Who was only slow to die is gone by now.
        let _ = send_signal(process.pid, Signal::KILL);
    }
    let _ = send_signal(traced.run.pid(), Signal::KILL);
    // A keeper that was killed over a tree that could not be seen or held leaves
    // nobody behind; then it stays `stuck`, which is the truth.
    if !is_followed {
        world.expect_extinct(seconds(3))?;
        ensure!(traced.run.report()?.state == "stuck", "nobody could confirm it");
        return world.expect_bystanders_untouched();
    }
    world.expect_extinct(seconds(3)).context("when nothing fails any more")?;
    let report = traced.run.report()?;
    ensure!(report.state == "ended" && report.proof.is_some(), "in the end: {report:?}");
    no_cgroup(world)?;
    world.expect_bystanders_untouched()
}

/// Without a forced choice the next best cage is taken, and said.
fn auto(world: &mut World, place: Place, fault: &str) -> Outcome {
    let mut ready = Lines::create(world, "ready")?;
    let _go = Lines::create(world, "go")?;
    let mut traced = start(world, place, fault, &["--cage", "auto"])?;
    ensure!(traced.stands(world, &mut ready)?, "the tree does not stand");
    send_signal(traced.guard.context("no guard")?, Signal::TERM)?;
    ensure!(await_until(BOUND, || traced.status().is_some()), "run has not ended within {BOUND:?}");
    let report = traced.run.report()?;
    ensure!(report.state == "ended" && report.cage == "tree", "reported: {report:?}");
    ensure!(members(world).is_empty(), "these live: {:?}", members(world));
    no_cgroup(world)
}
