//! A keeper that hangs protects nobody: a stop says so and goes around it.

use std::fs;
use std::time::{Duration, Instant};

use arena::{
    Cgroup, Context, Need, Outcome, Process, Registry, Signal, Spawned, Took, World, await_until,
    ensure, millis, seconds, send_signal,
};

use super::desk::{
    CommandOutput, Who, alive, all_clean, ask, dir, expect_over, freeze, kill_frozen, live_ids,
    nobody, proof, record, say, start, swept_proof, tell, who,
};
use crate::kit::{AS_ROOT, EVERYWHERE, Lines, Place, SOON, add, stop, text};

pub fn register(registry: &mut Registry) {
    for (name, play) in [
        ("stopped-keeper-is-continued", continued as fn(&mut World, Place) -> Outcome),
        ("both-stopped", both_stopped),
        ("both-stopped-kill", |w, p| both(w, p, "kill")),
        ("stopped-again-and-again", stopped_again),
        ("guard-does-nothing", guard_does_nothing),
        ("guard-stopped-keeper-killed", guard_stopped),
        ("hung-while-stopping", hung_while_stopping),
        ("young-and-hung", young),
        ("others-do-not-wait", others),
        ("only-waiting-hurts-nobody", only_waiting),
        ("socket-removed", |w, p| unreachable(w, p, &NoSocket { frozen: false, replaced: false })),
        ("socket-removed-frozen", |w, p| {
            unreachable(w, p, &NoSocket { frozen: true, replaced: false })
        }),
        ("socket-replaced", |w, p| unreachable(w, p, &NoSocket { frozen: false, replaced: true })),
    ] {
        add(registry, &format!("around::{name}"), &EVERYWHERE, &[], play);
    }
    for (name, play) in [
        ("an-endless-loop", (|w, p| loops(w, p, "stop")) as fn(&mut World, Place) -> Outcome),
        ("an-endless-loop-kill", |w, p| loops(w, p, "kill")),
        ("acknowledged-before-it-acts", acknowledged),
    ] {
        let needs = [Need::Program("strace")];
        add(registry, &format!("around::{name}"), &EVERYWHERE, &needs, play);
    }
    let needs = [Need::Program("strace")];
    let with_cgroup = [EVERYWHERE[0], EVERYWHERE[2]];
    add(registry, "around::followers-cost-nothing", &with_cgroup, &needs, followed);
    for (name, play) in [
        ("asleep-in-a-call", (|w, p| asleep(w, p, "stop")) as fn(&mut World, Place) -> Outcome),
        ("asleep-in-a-call-kill", |w, p| asleep(w, p, "kill")),
        ("the-ladder-is-waited-out", waited_out),
    ] {
        add(registry, &format!("around::{name}"), &EVERYWHERE, &[Need::Cgroup], play);
    }
    add(registry, "around::a-short-ladder", &EVERYWHERE, &[], short_ladder);
    add(registry, "around::nothing-is-known", &with_cgroup, &[], nothing_known);
    let needs = [Need::Check(freezer_is_ours)];
    add(registry, "around::the-keeper-cannot-die", &AS_ROOT, &needs, cannot_die);
}

/// A deaf leader, and a deaf one in a session of its own.
const DEAF: &str = "trap '' TERM; setsid sh -c 'trap \"\" TERM; echo up > ready; \
                    while :; do read n < never; done' & while :; do read n < never; done";

/// What a stop may take that finds everybody hung: its ladder, and five seconds. The rest
/// is for the command itself.
const BOUND: Duration = millis(5_600);
/// What is to be said "at once" is said by then, on a busy machine.
const ABOUT_A_SECOND: Duration = millis(2_500);

struct Deaf {
    id: String,
    who: Who,
    _never: Lines,
}

fn deaf(world: &mut World, place: Place) -> Outcome<Deaf> {
    let (mut ready, never) = (Lines::create(world, "ready")?, Lines::create(world, "never")?);
    let id = start(world, place, &["--ladder", "term@leader:100ms,kill"], &["sh", "-c", DEAF])?;
    ready.expect("up")?;
    let who = who(world, &id)?;
    Ok(Deaf { id, who, _never: never })
}

/// Asks for a stop, and waits until it says that it goes around.
fn goes_around(world: &mut World, place: Place, verb: &str, id: &str) -> Outcome<CommandOutput> {
    let asked = ask(world, place, &[verb, id])?;
    let said = || asked.stderr().contains("does not answer");
    ensure!(await_until(BOUND, said), "it never said that the keeper hangs");
    let after = Took::since(asked.since());
    let said = asked.hear(world, BOUND)?;
    nobody(world)?;
    said.expect(0)?;
    ensure!(after.within(ABOUT_A_SECOND), "that the keeper hangs was said after {after:?}");
    ensure!(said.took.within(BOUND), "it took {:?}", said.took);
    Ok(said)
}

/// The guard continues a keeper that somebody stopped.
fn continued(world: &mut World, place: Place) -> Outcome {
    let Deaf { id, who, _never } = deaf(world, place)?;
    send_signal(who.keeper.pid, Signal::STOP)?;
    let said = say(world, place, &["stop", &id])?;
    nobody(world)?;
    said.expect(0)?;
    ensure!(said.err.is_empty(), "it went around a keeper that was continued: {}", said.err);
    expect_over(world, &id, "stopped", proof(place))?;
    all_clean(world)
}

fn both_stopped(world: &mut World, place: Place) -> Outcome {
    both(world, place, "stop")
}

/// The end of the keeper wakes the guard, which takes over.
fn both(world: &mut World, place: Place, verb: &str) -> Outcome {
    let Deaf { id, who, _never } = deaf(world, place)?;
    freeze(&who)?;
    let said = goes_around(world, place, verb, &id)?;
    ensure!(said.out.contains("ended: "), "it said {:?}", said.out);
    let ended = record(world, &id)?;
    let reason = ended["report"]["reason"].as_str().unwrap_or_default().to_owned();
    ensure!(
        matches!(reason.as_str(), "stopped" | "killed" | "keeper-died"),
        "the reason is {reason}"
    );
    expect_over(world, &id, &reason, proof(place))?;
    all_clean(world)
}

/// Somebody who stops a process whenever it runs, as a debugger or a broken sandbox.
fn pester(world: &mut World, whom: &[&Process]) -> Outcome<Spawned> {
    let pids: Vec<String> = whom.iter().map(|process| process.pid.to_string()).collect();
    let mut command = world.command("sh");
    let stop = format!("kill -STOP {}", pids.join(" "));
    let script = format!(
        "exec 2>/dev/null; {stop}; echo up > pestered; while {stop}; do :; done; \
         while :; do read n < never; done"
    );
    let mut pestered = Lines::create(world, "pestered")?;
    command.args(["-c", &script]);
    let spawned = world.spawn("pester", &mut command)?;
    world.outsider(spawned.pid);
    // Whoever is continued at once is hardly ever seen to be stopped.
    pestered.expect("up")?;
    Ok(spawned)
}

/// The keeper is stopped as often as its guard continues it.
fn stopped_again(world: &mut World, place: Place) -> Outcome {
    let Deaf { id, who, _never } = deaf(world, place)?;
    let pester = pester(world, &[&who.keeper])?;
    // It may get a word out between two stops; then that is as good.
    let said = say(world, place, &["stop", &id])?;
    ensure!(said.took.within(BOUND), "it took {:?}", said.took);
    nobody(world)?;
    said.expect(0)?;
    send_signal(pester.pid, Signal::KILL)?;
    world.wait(&pester, SOON)?;
    ensure!(live_ids(world).is_empty(), "it is still listed");
    all_clean(world)
}

/// A guard that cannot be woken either: it is killed, and the cage is swept.
fn guard_does_nothing(world: &mut World, place: Place) -> Outcome {
    let Deaf { id, who, _never } = deaf(world, place)?;
    freeze(&who)?;
    let pester = pester(world, &[&who.guard, &who.keeper])?;
    let asked = ask(world, place, &["stop", &id])?;
    world.only_waits_now();
    let said = asked.hear(world, BOUND)?;
    nobody(world)?;
    said.expect(0)?;
    send_signal(pester.pid, Signal::KILL)?;
    world.wait(&pester, SOON)?;
    let proof_said = record(world, &id)?["report"]["proof"].clone();
    // A guard that got its way between two stops has the better proof.
    ensure!(
        proof_said == swept_proof(place) || proof_said == proof(place),
        "the proof is {proof_said}"
    );
    ensure!(live_ids(world).is_empty(), "it is still listed");
    all_clean(world)
}

/// The keeper's death wakes a guard that was stopped, without anybody's help.
fn guard_stopped(world: &mut World, place: Place) -> Outcome {
    let Deaf { id, who, _never } = deaf(world, place)?;
    stop(who.guard.pid)?;
    let killed = Instant::now();
    send_signal(who.keeper.pid, Signal::KILL)?;
    let said = say(world, place, &["stop", &id])?;
    nobody(world)?;
    said.expect(0)?;
    let took = Took::since(killed);
    ensure!(took.within(seconds(4)), "it took {took:?}");
    expect_over(world, &id, "keeper-died", proof(place))?;
    all_clean(world)
}

/// Traces a process by its system calls of these names.
pub fn trace(world: &mut World, whom: &Process, words: &[&str]) -> Outcome<Spawned> {
    let mut strace = world.command("strace");
    strace.args(["-qq"]).args(words).args(["-p", &whom.pid.to_string()]);
    let tracer = world.spawn("strace", &mut strace)?;
    world.outsider(tracer.pid);
    let line = format!("TracerPid:\t{}\n", tracer.pid);
    let status = format!("/proc/{}/status", whom.pid);
    let traced = || std::fs::read_to_string(&status).is_ok_and(|text| text.contains(&line));
    ensure!(await_until(SOON, traced), "the keeper is not traced");
    Ok(tracer)
}

/// Lets a process run whenever it can.
fn prefer(pid: i32) -> Outcome {
    rustix::process::setpriority_process(rustix::process::Pid::from_raw(pid), -20).context("nice")
}

/// How often a process has left the processor to wait; a traced one does so at every call.
fn switches(pid: i32) -> Outcome<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).context("status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.and_then(|count| count.trim().parse().ok()).context("a count")
}

/// A keeper that runs on and on, and never hears that there is something to hear.
fn loops(world: &mut World, place: Place, verb: &str) -> Outcome {
    let Deaf { id, who, _never } = deaf(world, place)?;
    let deafened = ["-e", "trace=?poll,?ppoll", "-e", "inject=?poll,?ppoll:error=EAGAIN"];
    let tracer = trace(world, &who.keeper, &[&["-o", "/dev/null"], &deafened[..]].concat())?;
    // Its second is one of its own time, and a loop competes for every bit of that.
    for pid in [who.keeper.pid, tracer.pid] {
        prefer(pid)?;
    }
    // A call that the tracer has found it in may still return what it was made for.
    let begun = switches(who.keeper.pid)?;
    let spins = || switches(who.keeper.pid).is_ok_and(|now| now > begun + 10);
    ensure!(await_until(SOON, spins), "the keeper waits, and does not run on and on");
    goes_around(world, place, verb, &id)?;
    world.wait(&tracer, SOON)?;
    ensure!(live_ids(world).is_empty(), "it is still listed");
    all_clean(world)
}

/// Puts a process to sleep as a file server that hangs would: no signal wakes it, but
/// the last one ends it.
fn put_to_sleep(world: &World, process: &Process) -> Outcome<Cgroup> {
    let cgroup = world.cgroup().context("a cgroup")?.create("asleep")?;
    std::fs::write(cgroup.path().join("cgroup.freeze"), "1").context("freezing")?;
    std::fs::write(cgroup.path().join("cgroup.procs"), process.pid.to_string())
        .context("moving")?;
    let frozen = || {
        let events = std::fs::read_to_string(cgroup.path().join("cgroup.events"));
        events.is_ok_and(|events| events.contains("frozen 1"))
    };
    ensure!(await_until(SOON, frozen), "it does not sleep");
    Ok(cgroup)
}

fn asleep(world: &mut World, place: Place, verb: &str) -> Outcome {
    let Deaf { id, who, _never } = deaf(world, place)?;
    let cgroup = put_to_sleep(world, &who.keeper)?;
    goes_around(world, place, verb, &id)?;
    ensure!(live_ids(world).is_empty(), "it is still listed");
    std::fs::remove_dir(cgroup.path()).context("its bed")?;
    all_clean(world)
}

/// A stop leaves a keeper that hangs the time of its whole ladder, and no more than five
/// seconds beyond it.
fn waited_out(world: &mut World, place: Place) -> Outcome {
    const LADDER: Duration = seconds(3);
    let (mut ready, _never) = (Lines::create(world, "ready")?, Lines::create(world, "never")?);
    let ladder = ["--ladder", "term@leader:1s,term@tree:2s,kill"];
    let id = start(world, place, &ladder, &["sh", "-c", DEAF])?;
    ready.expect("up")?;
    let who = who(world, &id)?;
    let cgroup = put_to_sleep(world, &who.keeper)?;
    let asked = ask(world, place, &["stop", &id])?;
    let killed = || !alive(&who.keeper);
    ensure!(await_until(LADDER + BOUND, killed), "nobody went around it");
    let after = asked.since().elapsed();
    ensure!(after >= LADDER, "its keeper was killed after {after:?}, in the middle of its ladder");
    let said = asked.hear(world, BOUND)?;
    nobody(world)?;
    said.expect(0)?;
    ensure!(said.took.within(LADDER + BOUND), "it took {:?}", said.took);
    std::fs::remove_dir(cgroup.path()).context("its bed")?;
    all_clean(world)
}

/// The keeper answers first, and signals and counts afterwards.
fn acknowledged(world: &mut World, place: Place) -> Outcome {
    let Deaf { id, who, _never } = deaf(world, place)?;
    let calls = "trace=sendto,kill,pidfd_send_signal,pidfd_open,getdents64";
    let path = world.out().join("calls");
    let file = text(&path);
    let tracer = trace(world, &who.keeper, &["-o", &file, "-s", "1000", "-e", calls])?;
    tell(world, place, &["stop", &id])?;
    nobody(world)?;
    world.wait(&tracer, SOON)?;
    let told = std::fs::read_to_string(&path).context("what was traced")?;
    let first = told.lines().next().unwrap_or_default();
    ensure!(first.contains(r#""accepted\"#), "before it answered, it did: {first}");
    all_clean(world)
}

/// How many system calls a keeper makes while a stop by this ladder is followed.
fn calls_of_a_stop(world: &mut World, place: Place, ladder: &str) -> Outcome<usize> {
    let mut ready = Lines::create(world, &format!("ready-{ladder}"))?;
    let script = DEAF.replace("ready", &format!("ready-{ladder}"));
    let id = start(world, place, &["--ladder", ladder], &["sh", "-c", &script])?;
    ready.expect("up")?;
    let keeper = who(world, &id)?.keeper;
    let path = world.out().join(format!("calls-{ladder}"));
    let tracer = trace(world, &keeper, &["-o", &text(&path)])?;
    tell(world, place, &["stop", &id])?;
    nobody(world)?;
    world.wait(&tracer, SOON)?;
    Ok(std::fs::read_to_string(&path).context("what was traced")?.lines().count())
}

/// A keeper whose stop is followed does nothing for those who follow: it sleeps until
/// the next step. (A cage without a cgroup also writes down its members every second.)
fn followed(world: &mut World, place: Place) -> Outcome {
    /// One who counted for them would make some two hundred in a second.
    const A_FEW: usize = 100;
    let _never = Lines::create(world, "never")?;
    let short = calls_of_a_stop(world, place, "term@leader:200ms,kill")?;
    let long = calls_of_a_stop(world, place, "term@leader:4s,kill")?;
    ensure!(long <= short + A_FEW, "{short} calls for a short stop, {long} for a long one");
    all_clean(world)
}

/// However short the ladder is: whoever was stopped with its keeper, and is continued,
/// saves its work.
fn short_ladder(world: &mut World, place: Place) -> Outcome {
    let (mut ready, _never) = (Lines::create(world, "ready")?, Lines::create(world, "never")?);
    let saves = "trap ': > saved; exit 0' TERM; echo up > ready; while :; do read n < never; done";
    let id = start(world, place, &["--ladder", "term@leader:800ms,kill"], &["sh", "-c", saves])?;
    ready.expect("up")?;
    freeze(&who(world, &id)?)?;
    goes_around(world, place, "stop", &id)?;
    ensure!(world.dir().join("saved").exists(), "it was given no time");
    expect_over(world, &id, "stopped", proof(place))?;
    all_clean(world)
}

/// Who keeps it is not written down, and hangs: it is not said to be dead, and the
/// cgroup is killed.
fn nothing_known(world: &mut World, place: Place) -> Outcome {
    let Deaf { id, who, _never } = deaf(world, place)?;
    freeze(&who)?;
    std::fs::remove_file(super::desk::dir(world, &id).join("record.json")).context("record")?;
    let said = say(world, place, &["kill", &id])?;
    said.expect(120)?;
    ensure!(said.err.contains("its processes were killed, but"), "it said {:?}", said.err);
    ensure!(!alive(&who.leader), "its members live");
    ensure!(alive(&who.keeper) && alive(&who.guard), "somebody was hit who is not known");
    kill_frozen(&who)?;
    say(world, place, &["sweep"])?.expect(0)?;
    nobody(world)?;
    all_clean(world)
}

/// Where the kernel's older freezer is: whoever it holds cannot even be killed.
const FREEZER: &str = "/sys/fs/cgroup/freezer";

fn freezer_is_ours() -> Result<(), String> {
    let there = std::path::Path::new(FREEZER).join("cgroup.procs").exists();
    there.then_some(()).ok_or_else(|| format!("there is no {FREEZER}"))
}

struct Freezer(std::path::PathBuf);

impl Drop for Freezer {
    fn drop(&mut self) {
        let _ = std::fs::write(self.0.join("freezer.state"), "THAWED");
        let empty = || std::fs::remove_dir(&self.0).is_ok();
        await_until(SOON, empty);
    }
}

/// Its guard is left in peace: it takes over as soon as the keeper is dead.
fn cannot_die(world: &mut World, place: Place) -> Outcome {
    let Deaf { id, who, _never } = deaf(world, place)?;
    let name = world.cgroup().and_then(|cgroup| cgroup.path().file_name()).context("a name")?;
    let freezer = Freezer(std::path::Path::new(FREEZER).join(name));
    std::fs::create_dir(&freezer.0).context("a freezer")?;
    std::fs::write(freezer.0.join("cgroup.procs"), who.keeper.pid.to_string()).context("moving")?;
    std::fs::write(freezer.0.join("freezer.state"), "FROZEN").context("freezing")?;
    let state = || std::fs::read_to_string(freezer.0.join("freezer.state")).unwrap_or_default();
    ensure!(await_until(SOON, || state() == "FROZEN\n"), "it is not frozen");
    let said = say(world, place, &["kill", &id])?;
    said.expect(120)?;
    ensure!(said.took.within(BOUND), "it took {:?}", said.took);
    ensure!(said.err.contains("cannot die yet"), "it said {:?}", said.err);
    ensure!(alive(&who.guard), "its guard was killed");
    drop(freezer);
    let gone = || !alive(&who.guard) && !alive(&who.leader);
    ensure!(await_until(SOON, gone), "its guard did not take over");
    nobody(world)?;
    all_clean(world)
}

/// It hangs in the middle of a stop that it has accepted.
fn hung_while_stopping(world: &mut World, place: Place) -> Outcome {
    let (mut ready, _never) = (Lines::create(world, "ready")?, Lines::create(world, "never")?);
    let id = start(world, place, &["--ladder", "term@leader:500ms,kill"], &["sh", "-c", DEAF])?;
    ready.expect("up")?;
    let who = who(world, &id)?;
    let first = ask(world, place, &["stop", &id])?;
    let stopping = || record(world, &id).is_ok_and(|r| r["state"] == "stopping");
    ensure!(await_until(SOON, stopping), "it is not being stopped");
    freeze(&who)?;
    ensure!(alive(&who.leader), "it was over too soon");
    // Whoever comes now goes around; whoever came first is told of the end as well.
    goes_around(world, place, "stop", &id)?;
    first.hear(world, BOUND)?.expect(0)?;
    expect_over(world, &id, "stopped", proof(place))?;
    all_clean(world)
}

/// Hung before much was written down: what can be found must do.
fn young(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    for _ in 0..3 {
        let id = start(world, place, &[], &["sh", "-c", "while :; do read n < never; done"])?;
        // By the kernel alone: the record may not be there yet.
        let keeper = crate::kit::keeper(world)?;
        stop(keeper.ppid)?;
        stop(keeper.pid)?;
        let said = say(world, place, &["stop", &id])?;
        nobody(world)?;
        said.expect(0)?;
    }
    all_clean(world)
}

/// One that hangs holds up no other.
fn others(world: &mut World, place: Place) -> Outcome {
    let Deaf { id, who: hung, _never } = deaf(world, place)?;
    let quiet = ["sh", "-c", "while :; do read n < never; done"];
    let other = start(world, place, &["--grace", "100ms"], &quiet)?;
    let other_leader = who(world, &other)?.leader;
    freeze(&hung)?;
    let asked = ask(world, place, &["stop", &id, &other])?;
    ensure!(await_until(ABOUT_A_SECOND, || !alive(&other_leader)), "it was held up");
    asked.hear(world, BOUND)?.expect(0)?;
    nobody(world)?;
    all_clean(world)
}

/// `ps`, `show`, `tree` and `wait` of a run that hangs return, and touch nobody.
fn only_waiting(world: &mut World, place: Place) -> Outcome {
    let Deaf { id, who, _never } = deaf(world, place)?;
    freeze(&who)?;
    let words = id.as_str();
    for words in [&["ps"][..], &["tree", words], &["show", words], &["sweep"], &["prune"]] {
        let said = say(world, place, words)?;
        said.expect(0)?;
        ensure!(said.took.within(seconds(5)), "{words:?} took {:?}", said.took);
    }
    say(world, place, &["wait", "--timeout", "300ms", &id])?.expect(124)?;
    say(world, place, &["rm", &id])?.expect(125)?;
    for process in [&who.guard, &who.keeper, &who.leader] {
        ensure!(alive(process), "{process} was touched");
    }
    kill_frozen(&who)?;
    tell(world, place, &["stop", &id])?;
    nobody(world)?;
    expect_over(world, &id, "keeper-died", swept_proof(place))?;
    all_clean(world)
}

struct NoSocket {
    /// Guard and keeper are stopped.
    frozen: bool,
    /// Something else stands in its place.
    replaced: bool,
}

/// A keeper that cannot be reached by its socket is asked by a signal: who saves work has
/// the time of its ladder.
fn unreachable(world: &mut World, place: Place, how: &NoSocket) -> Outcome {
    let (mut ready, _never) = (Lines::create(world, "ready")?, Lines::create(world, "never")?);
    let saves = "trap 'sleep 0.3; : > saved; exit 0' TERM; echo up > ready; \
                 while :; do read n < never; done";
    let id = start(world, place, &["--ladder", "term@leader:900ms,kill"], &["sh", "-c", saves])?;
    ready.expect("up")?;
    let who = who(world, &id)?;
    if how.frozen {
        freeze(&who)?;
    }
    let socket = dir(world, &id).join("control.sock");
    fs::remove_file(&socket).context("the socket")?;
    if how.replaced {
        fs::write(&socket, "no socket").context("in its place")?;
    }
    let said = say(world, place, &["stop", &id])?;
    nobody(world)?;
    said.expect(0)?;
    ensure!(world.dir().join("saved").exists(), "it was killed: {}", said.err);
    expect_over(world, &id, "stopped", proof(place))?;
    all_clean(world)
}
