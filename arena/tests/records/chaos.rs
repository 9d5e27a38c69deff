//! Chaos: whoever of ours is killed, and at whatever instant, the next command leaves
//! nobody of the run alive, nobody else hurt, and every record readable and true.
//!
//! It is played in four places. `FULLSTOP_CHAOS_ROUNDS` says how many rounds there are in
//! each (40), `FULLSTOP_CHAOS_SEED` which; the seed is said at the end, and by a failure.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arena::{
    Context, Deadline, Outcome, Process, Registry, Signal, World, await_until, ensure, pidfd,
    seconds,
};
use rustix::process::pidfd_send_signal;
use serde_json::Value;

use super::desk::{RunningCommand, all_clean, ask, census, live_ids, names, record, run_ids, say};
use crate::kit::{Cage, EVERYWHERE, Lines, Place, SOON, add_with, text};

const ROUNDS: u64 = 40;

pub fn register(registry: &mut Registry) {
    let limit = |scenario: &mut arena::Scenario| {
        scenario.limit(seconds(60 + 3 * rounds()));
    };
    add_with(registry, "chaos", &EVERYWHERE, &[], limit, chaos);
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

fn rounds() -> u64 {
    number("FULLSTOP_CHAOS_ROUNDS").unwrap_or(ROUNDS)
}

/// Members that live anywhere and hold no machine up. They are not waited for: whether
/// they stand when the blow comes is up to chance.
const MEMBERS: [&str; 20] = [
    "plain",
    "ignore-term",
    "stopped-child",
    "exit-at-once",
    "wide",
    "chain",
    "own-group",
    "own-session",
    "nohup",
    "daemon",
    "daemon-bare-env",
    "daemon-no-fds",
    "leftovers",
    "respawn-pair",
    "hop",
    "save-on-term",
    "tree-on-term",
    "subreaper",
    "disguise",
    "own-pty",
];

/// What is asked of fullstop afterwards.
const COMMANDS: [&[&str]; 7] = [
    &["ps"],
    &["ps", "--all", "--json"],
    &["sweep"],
    &["stop", "--all"],
    &["kill", "--all"],
    &["start", "--", "true"],
    &["run", "--", "true"],
];

/// Small, seeded, and the same everywhere (splitmix64).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, count: u64) -> u64 {
        self.next() % count
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.below(all.len() as u64)).unwrap_or(0)]
    }
}

fn chaos(world: &mut World, place: Place) -> Outcome {
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seed = number("FULLSTOP_CHAOS_SEED").unwrap_or(clock.subsec_nanos().into());
    let salt = EVERYWHERE.iter().position(|&other| other == place).unwrap_or(0) as u64;
    let mut bus = Bus::start(world, place)?;
    let mut tally = Tally::default();
    for round in 0..rounds() {
        let mut chance = Chance(seed ^ (salt << 40) ^ (round << 48));
        let plan = Plan::draw(&mut chance);
        world.note(format!("seed {seed}, round {round}: {plan:?}"));
        let played = play(world, place, &plan, &mut bus, &mut tally);
        played.context(format!("FULLSTOP_CHAOS_SEED={seed}, round {round}, {plan:?}"))?;
    }
    all_readable(world, place)?;
    world.aloud(format!("{} rounds, seed {seed}: {tally}", rounds()));
    Ok(())
}

#[derive(Debug, Default)]
struct Tally {
    lost: usize,
    unborn: usize,
    exceptions: usize,
    residues: usize,
    helped: usize,
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { lost, unborn, exceptions, residues, helped } = self;
        write!(f, "{lost} lost both keeper and guard, {unborn} were hit before these were born, ")?;
        write!(f, "{helped} went on and were stopped; survivors of the one allowed kind: ")?;
        write!(f, "{exceptions}; directories that nothing listed leads to: {residues}")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    Host,
    Guard,
    Keeper,
}

/// What a round is to be.
#[derive(Debug)]
struct Plan {
    in_front: bool,
    member: &'static str,
    after: Duration,
    victims: &'static [Role],
    /// Stopped before they are killed, so that nobody acts in between.
    at_once: bool,
    then: &'static [&'static str],
    marked_stranger: bool,
}

impl Plan {
    fn draw(chance: &mut Chance) -> Self {
        use Role::{Guard, Host, Keeper};
        const VICTIMS: [&[Role]; 9] = [
            &[Keeper],
            &[Guard],
            &[Host],
            &[Keeper, Guard],
            &[Guard, Keeper],
            &[Keeper, Host],
            &[Guard, Host],
            &[Keeper, Guard, Host],
            &[Host, Guard, Keeper],
        ];
        // Half of the blows fall while the run is being born.
        let longest = chance.one_of(&[12_000, 40_000, 150_000]);
        Self {
            in_front: chance.below(2) == 0,
            member: chance.one_of(&MEMBERS),
            after: Duration::from_micros(chance.below(longest)),
            victims: chance.one_of(&VICTIMS),
            at_once: chance.below(2) == 0,
            then: chance.one_of(&COMMANDS),
            marked_stranger: chance.below(3) == 0,
        }
    }
}

/// Starts processes with a copied marker that are no members: its own children.
struct Bus {
    told: Lines,
    _order: Lines,
}

impl Bus {
    fn start(world: &mut World, place: Place) -> Outcome<Self> {
        let mut told = Lines::create(world, "told")?;
        let order = Lines::create(world, "order")?;
        let program = text(world.bystander_command("butler").get_program());
        let mut bus = world.command("sh");
        let script = format!(
            "echo up > told; while read id < order; do \
             FULLSTOP_RUN=$id setsid {program} --arena-bystander & echo $! > told; done"
        );
        bus.args(["-c", &script]);
        place.user.apply(&mut bus);
        let bus = world.spawn("bus", &mut bus)?;
        told.expect("up")?;
        world.adopt_bystander("bus", bus.pid)?;
        Ok(Self { told, _order: order })
    }

    fn hire(&mut self, world: &mut World, id: &str) -> Outcome {
        fs::write(world.dir().join("order"), format!("{id}\n")).context("order")?;
        let pid: i32 = self.told.next(SOON)?.parse().context("a pid")?;
        let settled = || Process::read(pid).is_some_and(|now| now.comm == "butler");
        ensure!(await_until(SOON, settled), "the butler is nobody");
        world.adopt_bystander("butler", pid).map(drop)
    }
}

fn play(world: &mut World, place: Place, plan: &Plan, bus: &mut Bus, tally: &mut Tally) -> Outcome {
    let before: BTreeSet<String> = run_ids(world).into_iter().collect();
    let launched = launch(world, place, plan)?;
    // No synchronisation: the blow is to fall at any instant.
    std::thread::sleep(plan.after);
    let roles = Roles::find(world, &launched);
    let killed = strike(world, plan, &roles)?;
    let lost = killed.contains(&Role::Guard) && killed.contains(&Role::Keeper);
    tally.lost += usize::from(lost);
    if lost {
        // Between its birth and its exec a leader still holds the lock it was born with.
        let ours = || world.survivors().iter().any(|process| is_ours(world, process.pid));
        ensure!(await_until(SOON, || !ours()), "somebody of ours does not go");
    }
    tally.unborn += usize::from(roles.guard.is_none() || roles.keeper.is_none());
    let ids: Vec<String> = run_ids(world).into_iter().filter(|id| !before.contains(id)).collect();
    if plan.marked_stranger
        && let Some(id) = ids.first()
    {
        bus.hire(world, id)?;
    }
    // What is on disk now is what a sweep may know.
    let known: Vec<Known> = ids.iter().map(|id| Known::read(world, id)).collect();
    let said = say(world, place, plan.then)?;
    said.expect(0).context("the next command")?;
    if lost {
        nobody_is_left(world, place, plan, &known, tally)?;
    }
    finish(world, place, &launched, tally)?;
    if !killed.is_empty() {
        take_residues(world, &before, tally)?;
    }
    all_clean(world)
}

/// What is left if the blow falls within the few system calls in which a directory is
/// made but not yet listed, or not listed any more but not yet tidied: nobody is alive,
/// nothing is lost, but nothing listed leads to it. Recognised by what it holds, and
/// counted; an explicit sweep takes it once it is old (`sweep::unlisted`).
fn take_residues(world: &mut World, before: &BTreeSet<String>, tally: &mut Tally) -> Outcome {
    for id in run_ids(world).into_iter().filter(|id| !before.contains(id)) {
        let dir = super::desk::dir(world, &id);
        let held = names(&dir);
        if held.iter().all(|name| name == "lock") {
            fs::remove_dir_all(&dir).context("a blank directory")?;
        } else if held.iter().any(|name| name == "lock" || name == "control.sock") {
            let state = record(world, &id)?["state"].clone();
            ensure!(state == "ended", "{id} is {state}, unlisted, and holds {held:?}");
            for name in ["lock", "control.sock"] {
                let _ = fs::remove_file(dir.join(name));
            }
        } else {
            continue;
        }
        tally.residues += 1;
        world.aloud(format!("cut short while it was made or put away: {id} holds {held:?}"));
    }
    Ok(())
}

fn launch(world: &mut World, place: Place, plan: &Plan) -> Outcome<RunningCommand> {
    let cage = place.cage.to_string();
    let (zoo, dir) = (text(world.zoo()), text(world.dir()));
    let command = ["--", &zoo, "--life", "40", "--dir", &dir, plan.member];
    if !plan.in_front {
        let words = [&["start", "--cage", &cage, "--grace", "300ms"], &command[..]].concat();
        return ask(world, place, &words);
    }
    // `run` stops when its host dies: a shell that waits for it.
    let fullstop = text(world.fullstop());
    let words = [&["run", "--cage", &cage, "--grace", "300ms"], &command[..]].concat();
    super::desk::ask_program(world, place, "sh", &words, |shell| {
        shell.args(["-c", "\"$@\" & wait", "sh", &fullstop]).args(&words);
    })
}

/// Who is who at this instant, by who descends from whom.
#[derive(Debug, Default)]
struct Roles {
    host: Option<Process>,
    guard: Option<Process>,
    keeper: Option<Process>,
}

impl Roles {
    fn find(world: &World, launched: &RunningCommand) -> Self {
        let ours: Vec<Process> =
            world.survivors().into_iter().filter(|process| is_ours(world, process.pid)).collect();
        let child = |of: i32| ours.iter().find(|process| process.ppid == of).cloned();
        let host = Process::read(launched.spawned.pid).filter(Process::alive);
        let below = host.as_ref().and_then(|host| child(host.pid));
        let is_host = |process: &&Process| Some(process.pid) == host.as_ref().map(|host| host.pid);
        let orphan = ours.iter().find(|process| process.ppid == 1 && !is_host(process)).cloned();
        let guard = orphan.or(below);
        let keeper = guard.as_ref().and_then(|guard| child(guard.pid));
        Self { host, guard, keeper }
    }

    fn of(&self, role: Role) -> Option<&Process> {
        match role {
            Role::Host => self.host.as_ref(),
            Role::Guard => self.guard.as_ref(),
            Role::Keeper => self.keeper.as_ref(),
        }
    }
}

/// Does it run our program? The newborn leader does, too, until it has become another.
fn is_ours(world: &World, pid: i32) -> bool {
    fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == world.fullstop())
}

/// Kills those who are there, and waits for their end. Returns who it was.
fn strike(world: &mut World, plan: &Plan, roles: &Roles) -> Outcome<BTreeSet<Role>> {
    let mut held = Vec::new();
    for &role in plan.victims {
        let Some(process) = roles.of(role) else { continue };
        let Ok(fd) = pidfd(process.pid) else { continue };
        // Held now: it is still the one that was looked at, or nobody.
        if process.still_there().is_some() {
            held.push((role, process.clone(), fd));
        }
    }
    let both = [Role::Guard, Role::Keeper].iter().all(|&one| held.iter().any(|h| h.0 == one));
    if plan.at_once && both {
        // The guard first: it would continue the keeper.
        held.sort_by_key(|(role, ..)| *role);
        for (_, process, fd) in &held {
            let _ = pidfd_send_signal(fd, Signal::STOP);
            let still = || process.still_there().is_none_or(|now| matches!(now.state, 'T' | 'Z'));
            ensure!(await_until(SOON, still), "{process} does not stop");
        }
    }
    for (_, _, fd) in &held {
        let _ = pidfd_send_signal(fd, Signal::KILL);
    }
    let mut killed = BTreeSet::new();
    let mut told = String::new();
    for (role, process, _) in &held {
        let gone = || process.still_there().is_none_or(|now| !now.alive());
        ensure!(await_until(SOON, gone), "{process} does not die");
        killed.insert(*role);
        let _ = write!(told, " {role:?} {}", process.pid);
    }
    world.note(format!("  killed:{told}"));
    Ok(killed)
}

/// What was written down of a run when the blow had fallen.
struct Known {
    id: String,
    identities: Vec<(i32, u64)>,
}

impl Known {
    fn read(world: &World, id: &str) -> Self {
        let known = census(world, id).into_iter();
        let identities = known.filter_map(|(pid, ticks)| Some((i32::try_from(pid).ok()?, ticks)));
        Self { id: id.to_owned(), identities: identities.collect() }
    }

    fn holds(&self, process: &Process) -> bool {
        self.identities.contains(&(process.pid, process.start_ticks))
    }
}

/// Keeper and guard were killed, and a command was given: nobody of the run is alive.
///
/// There is one exception, and it is recognised, not assumed: in a cage without a
/// cgroup, somebody born after the last census that was written down, who scrubbed its
/// environment, and whose parents are all like that or gone.
fn nobody_is_left(
    world: &mut World,
    place: Place,
    plan: &Plan,
    known: &[Known],
    tally: &mut Tally,
) -> Outcome {
    // What sweeps beside its command is given the time for it.
    let beside = matches!(plan.then[0], "start" | "run");
    let members = |world: &World| -> Vec<Process> {
        world.survivors().into_iter().filter(|process| !is_ours(world, process.pid)).collect()
    };
    let deadline = Deadline::after(if beside { SOON } else { Duration::ZERO });
    loop {
        let left = members(world);
        let strangers = left.iter().filter(|one| !is_exception(place, one, &left, known)).count();
        if strangers == 0 {
            break;
        }
        if deadline.passed() {
            let lines: Vec<String> = left.iter().map(ToString::to_string).collect();
            let (then, lines) = (&plan.then, lines.join("\n"));
            return Err(deadline.missed(format!("alive after {then:?}:\n{lines}")));
        }
        std::thread::yield_now();
    }
    for exception in members(world) {
        tally.exceptions += 1;
        world.aloud(format!("the one allowed kind of survivor, after {plan:?}: {exception}"));
        let _ = arena::send_signal(exception.pid, Signal::KILL);
    }
    Ok(())
}

fn is_exception(place: Place, process: &Process, left: &[Process], known: &[Known]) -> bool {
    let environ = fs::read(format!("/proc/{}/environ", process.pid)).unwrap_or_default();
    let environ = String::from_utf8_lossy(&environ);
    let marked = known.iter().any(|run| environ.contains(&run.id));
    let counted = known.iter().any(|run| run.holds(process));
    let parent = left.iter().find(|other| other.pid == process.ppid);
    let orphan = process.ppid == 1;
    place.cage == Cage::Tree
        && !marked
        && !counted
        && (orphan || parent.is_some_and(|parent| is_exception(place, parent, left, known)))
}

/// Whoever still looks after a run does so rightly, and is asked to end it.
fn finish(
    world: &mut World,
    place: Place,
    launched: &RunningCommand,
    tally: &mut Tally,
) -> Outcome {
    let deadline = Deadline::after(seconds(15));
    let mut asked = false;
    loop {
        let launching = world.ended(&launched.spawned).is_none();
        if !launching && world.survivors().is_empty() && live_ids(world).is_empty() {
            tally.helped += usize::from(asked);
            return Ok(());
        }
        ensure!(
            deadline.stands(),
            "listed: {:?}; alive: {:?}",
            live_ids(world),
            world.survivors().iter().map(ToString::to_string).collect::<Vec<_>>()
        );
        if !live_ids(world).is_empty() {
            asked = true;
            say(world, place, &["kill", "--all"])?.expect(0)?;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Every record can be read, and says of itself what is so.
fn all_readable(world: &mut World, place: Place) -> Outcome {
    let listed = say(world, place, &["ps", "--all", "--json"])?.json()?;
    let listed = listed.as_array().cloned().unwrap_or_default();
    ensure!(
        listed.len() == run_ids(world).len(),
        "{} of {} are listed",
        listed.len(),
        run_ids(world).len()
    );
    for row in &listed {
        let id = row["id"].as_str().unwrap_or_default();
        ensure!(row["state"] == "ended" && row["damage"].is_null(), "{row}");
        ensure!(row["report"]["proof"].is_string(), "{id} ended without a proof: {row}");
        ensure!(row["processes"] == 0, "{row}");
        let events = fs::read_to_string(super::desk::dir(world, id).join("events.jsonl"));
        let events = events.unwrap_or_default();
        for line in events.lines() {
            let event: Value = serde_json::from_str(line).context(format!("an event of {id}"))?;
            ensure!(event["id"] == id, "an event of another: {event}");
        }
        let ends = events.lines().filter(|line| line.contains("\"type\":\"ended\"")).count();
        ensure!(ends == 1, "{id} ended {ends} times: {events}");
        let held = names(&super::desk::dir(world, id));
        let fine = [
            "err.idx",
            "err.log",
            "events.jsonl",
            "out.idx",
            "out.log",
            "record.json",
            "spec.json",
        ];
        ensure!(held.iter().all(|name| fine.contains(&name.as_str())), "{id} holds {held:?}");
    }
    Ok(())
}
