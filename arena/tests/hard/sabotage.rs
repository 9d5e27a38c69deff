//! Members that turn against fullstop itself: whatever a command's own user may do to its
//! keeper ends in the end of the run, and never in a lie.

use std::fs;
use std::time::Duration;

use arena::{
    Context, Ended, Need, Outcome, Registry, Signal, World, await_until, ensure, seconds,
    send_signal,
};

use super::kit::{
    AS_ROOT, EVERYWHERE, Launch, Lines, Place, Run, SOON, add, all_clean, keeper, text,
};
use super::traced::{ptrace_number, tracer_needs};

pub fn register(registry: &mut Registry) {
    let perl = [&tracer_needs()[..], &[Need::Check(children_may_trace)]].concat();
    add(registry, "sabotage::remains-are-held", &EVERYWHERE, &perl, remains_are_held);
    add(registry, "sabotage::cannot-go-on", &EVERYWHERE, &perl, cannot_go_on);
    let x86 = [&perl[..], &[Need::Check(is_x86_64)]].concat();
    add(registry, "sabotage::made-to-leave", &EVERYWHERE, &x86, made_to_leave);
    let prlimit = [Need::Program("prlimit")];
    add(registry, "sabotage::no-descriptors", &EVERYWHERE, &prlimit, no_descriptors);
    let cgroups = [EVERYWHERE[0], EVERYWHERE[2]];
    add(registry, "sabotage::closed-cgroup", &cgroups, &[], closed_cgroup);
    add(registry, "sabotage::deep-cgroups", &cgroups, &[Need::Program("perl")], deep_cgroups);
    add(registry, "sabotage::forged-proc", &AS_ROOT[1..], &[], forged_proc);
}

/// Yama lets nobody trace its parent.
fn children_may_trace() -> Result<(), String> {
    match fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope") {
        Ok(scope) if scope.trim() != "0" => Err("Yama keeps children from tracing".into()),
        _ => Ok(()),
    }
}

fn is_x86_64() -> Result<(), String> {
    if cfg!(target_arch = "x86_64") { Ok(()) } else { Err("it pokes x86_64's registers".into()) }
}

/// A leader in perl that knows `$ptrace`, its keeper `$k`, and ends itself in time.
fn start(world: &mut World, place: Place, options: &[&str], script: &str) -> Outcome<Run> {
    let number = ptrace_number().context("ptrace")?;
    let script = format!("$ptrace = {number}; $k = getppid; alarm 60; {script}; sleep 55");
    Launch::new(place).options(options).start(world, &["perl", "-e", &script])
}

/// The guard has ended the run in its keeper's place.
fn guard_ends(world: &mut World, place: Place, run: &Run, within: Duration) -> Outcome {
    let ended = world.wait(&run.spawned, within)?;
    ensure!(ended == Ended::Code(137), "run ended with {ended}");
    let report = run.expect_ended(place, "keeper-died")?;
    ensure!(report.has_step("kill"), "nobody was killed: {:?}", report.steps);
    all_clean(world)
}

/// A keeper that was killed, and whose remains one of its own tree holds.
fn remains_are_held(world: &mut World, place: Place) -> Outcome {
    let seize = "syscall($ptrace, 0x4206, $k, 0, 0) == 0 or die $!; kill KILL => $k";
    let run = start(world, place, &[], seize)?;
    guard_ends(world, place, &run, SOON)
}

/// A keeper that is held by a tracer in its own tree hears no orders.
fn cannot_go_on(world: &mut World, place: Place) -> Outcome {
    let mut ready = Lines::create(world, "ready")?;
    let attach = "syscall($ptrace, 16, $k, 0, 0) == 0 or die $!; waitpid($k, 0x40000000); \
                  open F, '>', 'ready'; syswrite F, qq(up\\n)";
    let ladder = ["--ladder", "term@leader:200ms,kill:1s"];
    let run = start(world, place, &ladder, attach)?;
    ready.expect("up")?;
    send_signal(run.pid(), Signal::TERM)?;
    guard_ends(world, place, &run, seconds(6))
}

/// A keeper that is made to call exit(0), as if there were nothing left to keep.
fn made_to_leave(world: &mut World, place: Place) -> Outcome {
    let leave = r#"
        do { open F, "<", "/proc/$k/stat"; $_ = <F>; close F } until /\) S/;
        syscall($ptrace, 16, $k, 0, 0) == 0 or die $!; waitpid($k, 0x40000000);
        $r = "\0" x 216; syscall($ptrace, 12, $k, 0, $r) == 0 or die $!;
        substr($r, 120, 8) = pack("q", -1); substr($r, 80, 8) = pack("q", 231);
        substr($r, 112, 8) = pack("q", 0);
        substr($r, 128, 8) = pack("Q", unpack("Q", substr($r, 128, 8)) - 2);
        syscall($ptrace, 13, $k, 0, $r) == 0 or die $!; syscall($ptrace, 17, $k, 0, 0)"#;
    let run = start(world, place, &[], leave)?;
    guard_ends(world, place, &run, SOON)
}

/// A keeper without a single descriptor can neither see nor kill; its guard can.
fn no_descriptors(world: &mut World, place: Place) -> Outcome {
    let taken = world.dir().join("taken");
    let command = format!(
        "trap '' TERM; prlimit --pid $PPID --nofile=0:0 && : > {}; setsid sleep 50 & sleep 50; true",
        text(&taken)
    );
    let launch = Launch::new(place).options(&["--grace", "400ms"]);
    let run = launch.start(world, &["sh", "-c", &command])?;
    // A keeper that notices at once is gone, and all with it, before anybody can tell of it.
    let noticed = || taken.exists() || run.report().is_ok();
    ensure!(await_until(SOON, noticed), "nobody has taken the descriptors");
    let _ = send_signal(run.pid(), Signal::TERM);
    let ended = world.wait(&run.spawned, SOON)?;
    ensure!(ended == Ended::Code(137), "run ended with {ended}");
    let report = run.report()?;
    ensure!(report.state == "ended", "the report says {}: {:?}", report.state, report.survivors);
    all_clean(world)
}

/// The path of the cgroup a member finds itself in.
fn own_cgroup(world: &World) -> Outcome<String> {
    let above = text(world.cgroup().context("no cgroup")?.path());
    Ok(format!("$(dirname $(grep -lx $$ -r {above} --include=cgroup.procs))"))
}

/// A cgroup that its member has closed to its own user is opened again.
fn closed_cgroup(world: &mut World, place: Place) -> Outcome {
    let own = own_cgroup(world)?;
    let command = format!("own={own}; mkdir $own/below && chmod 000 $own/below $own; exit 3");
    let (ended, run) = Launch::new(place).finish(world, &["sh", "-c", &command])?;
    ensure!(ended == Ended::Code(3), "run ended with {ended}: {}", run.stderr());
    run.expect_ended(place, "exited")?;
    all_clean(world)
}

/// Cgroups nested deeper than a path can say are emptied and removed like any others.
fn deep_cgroups(world: &mut World, place: Place) -> Outcome {
    let mut ready = Lines::create(world, "ready")?;
    let own = own_cgroup(world)?;
    let dig = "open R, '>', 'ready' or die; chdir shift or die; \
               for (1..30) { mkdir 'd' x 200 or die; chdir 'd' x 200 or die } \
               open F, '>', 'cgroup.procs' or die; syswrite F, $$ or die; \
               $SIG{TERM} = 'IGNORE'; syswrite R, qq(up\\n); alarm 60; sleep 55";
    fs::write(world.dir().join("dig"), dig).context("dig")?;
    let command = format!("own={own}; exec perl dig $own");
    let launch = Launch::new(place).options(&["--grace", "400ms"]);
    let run = launch.start(world, &["sh", "-c", &command])?;
    ready.expect("up")?;
    send_signal(run.pid(), Signal::TERM)?;
    let ended = world.wait(&run.spawned, SOON)?;
    ensure!(ended == Ended::Code(137), "run ended with {ended}");
    let report = run.expect_ended(place, "stopped")?;
    ensure!(report.steps.iter().all(|step| step.alive == 1), "{:?}", report.steps);
    all_clean(world)
}

/// Root can mount a /proc of its own making, in which nobody lives: that is no proof.
fn forged_proc(world: &mut World, place: Place) -> Outcome {
    let mut ready = Lines::create(world, "ready")?;
    let command = "trap '' TERM; k=$PPID; own=forged/$k/task/$k; \
        mkdir -p $own forged/thread-self forged/999999; echo '999999 ' > $own/children; \
        : > forged/thread-self/children; \
        echo \"999999 (x) Z $k 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 100 0 0 1\" \
             0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0 > forged/999999/stat; \
        mount --bind forged /proc; echo up > ready; setsid sleep 50 & sleep 50; true";
    let own_mounts = ["unshare", "--mount", "--propagation", "private"];
    let run = Launch::new(place)
        .before(&own_mounts)
        .options(&["--ladder", "term@leader:100ms,kill:500ms"])
        .start(world, &["sh", "-c", command])?;
    ready.expect("up")?;
    send_signal(run.pid(), Signal::TERM)?;
    let ended = world.wait(&run.spawned, seconds(6))?;
    ensure!(ended == Ended::Code(120), "run ended with {ended}, and sleepers live");
    ensure!(run.report()?.proof.is_none(), "stuck, with a proof");
    let keeper = keeper(world)?.pid;
    for sleeper in world.survivors().iter().filter(|process| process.pid != keeper) {
        send_signal(sleeper.pid, Signal::KILL)?;
    }
    world.expect_extinct(seconds(3))?;
    run.expect_ended(place, "stopped")?;
    all_clean(world)
}
