//! Cgroups that cannot be had, and members that do unusual things with theirs.

use std::fs;

use arena::report::Report;
use arena::{
    Context, Ended, Need, Outcome, Registry, Signal, User, World, await_until, ensure, send_signal,
};

use super::kit::{AS_ROOT, Cage, Launch, Lines, Place, SOON, add, all_clean, text};

pub fn register(registry: &mut Registry) {
    let plain = Place { cage: Cage::Cgroup, user: User::Plain };
    // Here the user has no cgroup, so these are not played in a usual place.
    registry
        .scenario("cage::cgroup-not-ours", &[Need::Cgroup], move |world| no_access(world, plain));
    registry.scenario("cage::no-cgroup-mounted", &[Need::Cgroup], move |world| {
        not_mounted(world, AS_ROOT[0])
    });
    let cgroup = [AS_ROOT[0]];
    add(registry, "cgroup::a-member-leaves", &cgroup, &[], leaves_cgroup);
    add(registry, "cgroup::all-members-leave", &cgroup, &[], all_leave_cgroup);
    add(registry, "cgroup::a-member-makes-more", &cgroup, &[], makes_cgroups);
    add(registry, "cgroup::a-member-freezes-itself", &cgroup, &[], freezes_itself);
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

/// Root may leave its cgroup; the tree still knows it.
fn leaves_cgroup(world: &mut World, place: Place) -> Outcome {
    let mut ready = Lines::create(world, "ready")?;
    let above = text(world.cgroup().context("no cgroup")?.path().join("cgroup.procs"));
    let member = format!(
        "trap '' TERM; setsid sh -c 'trap \"\" TERM; echo 0 > {above}; echo up > ready; sleep 50; true' & \
         sleep 50; true"
    );
    let run =
        Launch::new(place).options(&["--grace", "200ms"]).start(world, &["sh", "-c", &member])?;
    ready.expect("up")?;
    send_signal(run.pid(), Signal::TERM)?;
    let ended = world.wait(&run.spawned, SOON)?;
    ensure!(ended == Ended::Code(137), "run ended with {ended}");
    run.expect_ended(place, "stopped")?;
    all_clean(world)
}

/// Where nobody is left in the cgroup, whoever has left it is killed, and that is told.
fn all_leave_cgroup(world: &mut World, place: Place) -> Outcome {
    let mut ready = Lines::create(world, "ready")?;
    let above = text(world.cgroup().context("no cgroup")?.path().join("cgroup.procs"));
    let member = format!("trap '' TERM; echo 0 > {above}; echo up > ready; exec sleep 50");
    let run =
        Launch::new(place).options(&["--grace", "200ms"]).start(world, &["sh", "-c", &member])?;
    ready.expect("up")?;
    send_signal(run.pid(), Signal::TERM)?;
    let ended = world.wait(&run.spawned, SOON)?;
    ensure!(ended == Ended::Code(137), "run ended with {ended}");
    let report = run.expect_ended(place, "stopped")?;
    let killed = report.steps.iter().find(|step| step.step == "kill").context("no last step")?;
    ensure!((killed.alive, killed.signalled) == (1, 1), "the last step was {killed:?}");
    all_clean(world)
}

/// Cgroups that members make inside ours are emptied and removed with it.
fn makes_cgroups(world: &mut World, place: Place) -> Outcome {
    let mut ready = Lines::create(world, "ready")?;
    let root = text(world.cgroup().context("no cgroup")?.path());
    let member = format!(
        "trap '' TERM; own=$(echo {root}/fullstop-*); for name in a a/b a/b/c d; do mkdir $own/$name; \
         sh -c 'echo 0 > '$own/$name'/cgroup.procs; setsid sleep 50' & done; \
         while [ $(cat $own/a/b/c/cgroup.procs $own/d/cgroup.procs | wc -l) -lt 2 ]; do :; done; \
         echo up > ready; sleep 50; true"
    );
    let run =
        Launch::new(place).options(&["--grace", "200ms"]).start(world, &["sh", "-c", &member])?;
    ready.expect("up")?;
    send_signal(run.pid(), Signal::TERM)?;
    let ended = world.wait(&run.spawned, SOON)?;
    ensure!(ended == Ended::Code(137), "run ended with {ended}");
    run.expect_ended(place, "stopped")?;
    all_clean(world)
}

/// A frozen cgroup of version 2 hears nothing, but can be killed.
fn freezes_itself(world: &mut World, place: Place) -> Outcome {
    let mut ready = Lines::create(world, "ready")?;
    let root = text(world.cgroup().context("no cgroup")?.path());
    let member = "setsid sleep 50 & echo up > ready; sleep 50; true";
    let run = Launch::new(place)
        .options(&["--ladder", "term@leader:200ms,term@tree:200ms,kill:2s"])
        .start(world, &["sh", "-c", member])?;
    ready.expect("up")?;
    let find = fs::read_dir(&root).context("cgroup")?.flatten();
    let own = find
        .map(|entry| entry.path())
        .find(|path| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("fullstop-")))
        .context("the run has no cgroup")?;
    fs::write(own.join("cgroup.freeze"), "1").context("cgroup.freeze")?;
    let frozen = || {
        fs::read_to_string(own.join("cgroup.events")).is_ok_and(|text| text.contains("frozen 1"))
    };
    ensure!(await_until(SOON, frozen), "the cgroup does not freeze");
    send_signal(run.pid(), Signal::TERM)?;
    let ended = world.wait(&run.spawned, SOON)?;
    ensure!(ended == Ended::Code(137) || ended == Ended::Signal(15), "run ended with {ended}");
    run.expect_ended(place, "stopped")?;
    all_clean(world)
}
