//! Many at once, and everybody starved: an agent that asks for time gets it, whoever
//! waits for a processor.

use std::fs;
use std::path::PathBuf;

use arena::{
    Context, Ended, Need, Outcome, Process, Registry, Scenario, Signal, Spawned, World,
    await_until, ensure, seconds, send_signal,
};

use super::desk::{
    RunningCommand, all_clean, ask, ask_program, expect_over, live_ids, names, nobody, proof,
    start, who,
};
use crate::kit::{AS_ROOT, EVERYWHERE, Lines, Place, add_with, text};

pub fn register(registry: &mut Registry) {
    let starved = [Need::Check(cpu_controller_is_ours), Need::Program("chrt")];
    for (name, play) in [
        ("keeper", starved_keeper as fn(&mut World, Place) -> Outcome),
        ("stopper", starved_stopper),
        ("start", starved_start),
    ] {
        let name = format!("starved::{name}");
        add_with(registry, &name, &AS_ROOT, &starved, starves, play);
    }
    for (name, play) in [
        ("few-descriptors", few_descriptors as fn(&mut World, Place) -> Outcome),
        ("busy-loops", busy_loops),
    ] {
        add_with(registry, &format!("crowd::{name}"), &EVERYWHERE, &[], crowds, play);
    }
}

fn starves(scenario: &mut Scenario) {
    scenario.limit(seconds(120)).crowd();
}

fn crowds(scenario: &mut Scenario) {
    scenario.limit(seconds(180)).heavy().crowd();
}

/// An agent that saves its work within a third of a second of being asked. It is up
/// once it can be asked.
const SAVES: &str = "trap 'sleep 0.3; : > saved/$0; exit 0' TERM; : > up/$0; \
                     while :; do read n < never; done";
const LADDER: &str = "term@leader:30s,kill";

fn agents_can_live(world: &World) -> Outcome<Lines> {
    for name in ["up", "saved"] {
        let dir = world.dir().join(name);
        fs::create_dir(&dir).context("a directory of agents")?;
        let everyone = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        fs::set_permissions(&dir, everyone).context("chmod")?;
    }
    Lines::create(world, "never")
}

fn count(world: &World, name: &str) -> usize {
    names(&world.dir().join(name)).len()
}

/// One agent that is up.
fn agent(world: &mut World, place: Place) -> Outcome<String> {
    let id = start(world, place, &["--ladder", LADDER], &["sh", "-c", SAVES, "one"])?;
    ensure!(await_until(seconds(20), || count(world, "up") == 1), "it is not up");
    Ok(id)
}

/// Starts so many agents, some at a time, and waits until all are up.
fn agents(world: &mut World, place: Place, many: usize) -> Outcome {
    let script = format!(
        "seq {many} | xargs -P 8 -I% \"$0\" start --cage {} --ladder {LADDER} -- sh -c \"$1\" %",
        place.cage
    );
    let fullstop = text(world.fullstop());
    let asked = ask_program(world, place, "sh", &["start, many times"], |command| {
        command.args(["-c", &script, &fullstop, SAVES]);
    })?;
    let said = asked.hear(world, seconds(120))?;
    said.expect(0)?;
    ensure!(said.out.lines().count() == many, "not all were started: {:?}", said.err);
    ensure!(await_until(seconds(60), || count(world, "up") == many), "not all are up");
    Ok(())
}

/// All of them have saved their work, and nobody went around a keeper.
fn all_saved(world: &mut World, place: Place, asked: &RunningCommand, many: usize) -> Outcome {
    let said = asked.hear(world, seconds(100))?;
    said.expect(0)?;
    ensure!(said.err.is_empty(), "it went around a keeper: {}", said.err);
    let saved = count(world, "saved");
    ensure!(saved == many, "{saved} of {many} saved their work");
    let told = format!(" ended: stopped, {}", proof(place));
    let ended = said.out.lines().filter(|line| line.ends_with(&told)).count();
    ensure!(ended == many, "{ended} of {many} were told");
    nobody(world)?;
    ensure!(live_ids(world).is_empty(), "some are still listed");
    all_clean(world)
}

/// Far fewer descriptors than runs.
fn few_descriptors(world: &mut World, place: Place) -> Outcome {
    const MANY: usize = 100;
    let _never = agents_can_live(world)?;
    agents(world, place, MANY)?;
    let fullstop = text(world.fullstop());
    let asked = ask_program(world, place, "sh", &["stop --all with 40 descriptors"], |command| {
        command.args(["-c", "ulimit -n 40; exec \"$0\" stop --all", &fullstop]);
    })?;
    all_saved(world, place, &asked, MANY)
}

/// Beside loops that want every processor, all start and all save.
fn busy_loops(world: &mut World, place: Place) -> Outcome {
    const MANY: usize = 60;
    const LOOPS: usize = 40;
    let _never = agents_can_live(world)?;
    let mut loops = Vec::new();
    for _ in 0..LOOPS {
        loops.push(busy_loop(world)?);
    }
    agents(world, place, MANY)?;
    let asked = ask(world, place, &["stop", "--all"])?;
    asked.hear(world, seconds(100))?;
    end(world, &loops)?;
    all_saved(world, place, &asked, MANY)
}

fn busy_loop(world: &mut World) -> Outcome<Spawned> {
    let mut command = world.command("sh");
    command.args(["-c", "while :; do :; done"]);
    let spawned = world.spawn("a busy loop", &mut command)?;
    world.outsider(spawned.pid);
    Ok(spawned)
}

fn end(world: &World, loops: &[Spawned]) -> Outcome {
    for busy in loops {
        send_signal(busy.pid, Signal::KILL)?;
        world.wait(busy, seconds(10))?;
    }
    Ok(())
}

/// The directory of the kernel's older interface to shares of a processor.
const CPU: &str = "/sys/fs/cgroup/cpu";

fn cpu_controller_is_ours() -> Result<(), String> {
    let quota = PathBuf::from(CPU).join("cpu.cfs_quota_us");
    let missing = || format!("{} is not there to starve anybody with", quota.display());
    quota.exists().then_some(()).ok_or_else(missing)
}

/// A place where all together get a thousandth of a processor, and some of them want
/// more than that: whoever else is there waits for seconds.
struct Starving {
    path: PathBuf,
    hungry: Vec<Spawned>,
}

impl Starving {
    fn make(world: &mut World, hungry: usize) -> Outcome<Self> {
        let world_of_its_own = world.cgroup().and_then(|cgroup| cgroup.path().file_name());
        let name = world_of_its_own.context("the world has no name")?;
        let path = PathBuf::from(CPU).join(name);
        fs::create_dir(&path).context("a cpu cgroup")?;
        fs::write(path.join("cpu.cfs_period_us"), "1000000").context("period")?;
        fs::write(path.join("cpu.cfs_quota_us"), "1000").context("quota")?;
        let mut starving = Self { path, hungry: Vec::new() };
        for _ in 0..hungry {
            let hungry = busy_loop(world)?;
            starving.add(hungry.pid)?;
            starving.hungry.push(hungry);
        }
        Ok(starving)
    }

    fn add(&self, pid: i32) -> Outcome {
        fs::write(self.path.join("cgroup.procs"), pid.to_string()).context("starving")
    }

    /// From now on this one has next to nothing: whoever else is there goes first.
    fn starve(&self, world: &mut World, whom: &Process) -> Outcome {
        self.add(whom.pid)?;
        let mut command = world.command("chrt");
        command.args(["--idle", "--pid", "0", &whom.pid.to_string()]);
        let chrt = world.spawn("chrt", &mut command)?;
        let ended = world.wait(&chrt, seconds(10))?;
        ensure!(ended == Ended::Code(0), "chrt ended with {ended}");
        Ok(())
    }

    /// Everybody who is there has enough again.
    fn feed(&self) -> Outcome {
        fs::write(self.path.join("cpu.cfs_quota_us"), "-1").context("quota")
    }

    fn end(self, world: &World) -> Outcome {
        end(world, &self.hungry)
    }
}

impl Drop for Starving {
    /// Some there may be forking or dying just now: they are moved until nobody is left.
    fn drop(&mut self) {
        let _ = self.feed();
        let is_removed = || {
            let procs = fs::read_to_string(self.path.join("cgroup.procs")).unwrap_or_default();
            for pid in procs.lines() {
                let _ = fs::write(PathBuf::from(CPU).join("cgroup.procs"), pid);
            }
            fs::remove_dir(&self.path).is_ok()
        };
        await_until(seconds(5), is_removed);
    }
}

/// So many busy loops leave no processor alone.
fn on_every_processor() -> usize {
    2 * std::thread::available_parallelism().map_or(1, usize::from)
}

/// How often the kernel has put off somebody there because the time was used up.
fn throttled(starving: &Starving) -> u64 {
    let told = fs::read_to_string(starving.path.join("cpu.stat")).unwrap_or_default();
    let line = told.lines().find_map(|line| line.strip_prefix("nr_throttled "));
    line.and_then(|number| number.parse().ok()).unwrap_or_default()
}

/// Waits until nobody there has had a processor for so many seconds, but the hungry one.
fn starve_for(starving: &Starving, times: u64) -> Outcome {
    let before = throttled(starving);
    let starved = || throttled(starving) >= before + times;
    ensure!(await_until(seconds(60), starved), "nobody was starved");
    Ok(())
}

/// A keeper that waits for a processor for seconds is not hung: nobody goes around it.
fn starved_keeper(world: &mut World, place: Place) -> Outcome {
    let _never = agents_can_live(world)?;
    let id = agent(world, place)?;
    let keeper = who(world, &id)?.keeper;
    let starving = Starving::make(world, on_every_processor())?;
    starving.starve(world, &keeper)?;
    let asked = ask(world, place, &["stop", &id])?;
    // Three times the second after which a keeper that hangs is gone around.
    starve_for(&starving, 3)?;
    ensure!(asked.stderr().is_empty(), "it went around: {}", asked.stderr());
    starving.feed()?;
    starving.end(world)?;
    all_saved(world, place, &asked, 1)?;
    expect_over(world, &id, "stopped", proof(place))
}

/// One who asks, and waits for a processor itself, does not judge others by that.
fn starved_stopper(world: &mut World, place: Place) -> Outcome {
    const MANY: usize = 30;
    let _never = agents_can_live(world)?;
    agents(world, place, MANY)?;
    // It gets on, a little in every second.
    let starving = Starving::make(world, 1)?;
    let asked = enter_and(world, place, &starving, &["stop", "--all"])?;
    starve_for(&starving, 20)?;
    starving.feed()?;
    starving.end(world)?;
    all_saved(world, place, &asked, MANY)
}

/// A start that waits for a processor begins in the end.
fn starved_start(world: &mut World, place: Place) -> Outcome {
    let _never = agents_can_live(world)?;
    let starving = Starving::make(world, on_every_processor())?;
    let cage = place.cage.to_string();
    let words = ["start", "--cage", &cage, "--ladder", LADDER, "--", "sh", "-c", SAVES, "one"];
    let asked = enter_and(world, place, &starving, &words)?;
    let children = || crate::kit::children(asked.spawned.pid);
    ensure!(await_until(seconds(60), || !children().is_empty()), "no keeper was ever started");
    let first = children().pop().context("it is gone already")?;
    starving.starve(world, &first)?;
    // Longer than what was started may hang.
    starve_for(&starving, 8)?;
    starving.feed()?;
    starving.end(world)?;
    let said = asked.hear(world, seconds(20))?;
    said.expect(0)?;
    ensure!(await_until(seconds(20), || count(world, "up") == 1), "it is not up");
    let asked = ask(world, place, &["stop", "--all"])?;
    all_saved(world, place, &asked, 1)
}

/// A command of `fullstop` that starves from its beginning.
fn enter_and(
    world: &mut World,
    place: Place,
    starving: &Starving,
    words: &[&str],
) -> Outcome<RunningCommand> {
    let (fullstop, procs) = (text(world.fullstop()), text(starving.path.join("cgroup.procs")));
    let words = words.to_vec();
    ask_program(world, place, "sh", &words.clone(), |command| {
        command.args(["-c", "echo $$ > \"$0\"; exec \"$@\"", &procs, &fullstop]).args(words);
    })
}
