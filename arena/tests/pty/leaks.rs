//! Many runs, ended in every way there is, and everything is as it was before.

use std::collections::{BTreeMap, BTreeSet};

use arena::{Context, Ended, Outcome, Registry, Signal, World, ensure, seconds, send_signal};

use super::cast::{
    self, HERE, NEEDS, PARROT_COMMAND, SOON_ENOUGH, all_clean, await_asleep, await_who, rehearse,
    report,
};
use super::limits::{own_terminals, terminals};
use super::window::{USUAL, Window};
use crate::desk::{dir, names, tell};

/// How many runs; at least one for each way of ending.
const RUNS: &str = "FULLSTOP_PTY_RUNS";
const USUALLY: usize = 100;

pub fn register(registry: &mut Registry) {
    registry.scenario("leaks::many-runs", NEEDS, many_runs).limit(seconds(3600));
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    Exits,
    Stopped,
    Killed,
    TimedOut,
    WindowTerm,
    WindowInt,
    WindowHup,
    WindowClosed,
    WindowKilled,
    KeeperKilled,
    GuardKilled,
    Detached,
}

const WAYS: [Way; 12] = [
    Way::Exits,
    Way::Stopped,
    Way::Killed,
    Way::TimedOut,
    Way::WindowTerm,
    Way::WindowInt,
    Way::WindowHup,
    Way::WindowClosed,
    Way::WindowKilled,
    Way::KeeperKilled,
    Way::GuardKilled,
    Way::Detached,
];

impl Way {
    fn reason(self) -> &'static str {
        match self {
            Way::Exits => "exited",
            Way::Killed => "killed",
            Way::TimedOut => "overall-timeout",
            Way::WindowKilled | Way::GuardKilled => "host-gone",
            Way::KeeperKilled => "keeper-died",
            _ => "stopped",
        }
    }
}

fn many_runs(world: &mut World) -> Outcome {
    own_terminals(1000)?;
    rehearse(world)?;
    let runs = std::env::var(RUNS).ok().and_then(|n| n.parse().ok()).unwrap_or(USUALLY);
    // The first round makes whatever is made once.
    round(world, 0, &WAYS)?;
    let descriptors = open_descriptors();
    let mut n = WAYS.len();
    while n < runs {
        round(world, n, &WAYS[..WAYS.len().min(runs - n)])?;
        n += WAYS.len();
        ensure!(terminals() == 0, "after {n} runs {} terminals are left", terminals());
        let now = open_descriptors();
        ensure!(now == descriptors, "after {n} runs: {descriptors:?} were open, and now {now:?}");
    }
    expect_tidy(world)?;
    all_clean(world)
}

/// One run for each way, all at the same time.
fn round(world: &mut World, first: usize, ways: &[Way]) -> Outcome {
    let mut opened = Vec::new();
    for (n, &way) in ways.iter().enumerate() {
        let name = format!("run-{}", first + n);
        let timeout = if way == Way::TimedOut { "100ms" } else { "1h" };
        let options = ["--name", &name, "--timeout", timeout, "--grace", "1s"];
        let window = Window::open(world, USUAL, &cast::run_words(&options, PARROT_COMMAND))?;
        opened.push((way, name, window));
    }
    let mut ended = Vec::new();
    for (way, name, mut window) in opened {
        if way == Way::TimedOut {
            window.ends(world, Ended::Code(124))?;
            ended.push((way, find(world, &name)?));
            continue;
        }
        window.await_taken().context(name.clone())?;
        window.shows("ready")?;
        let id = find(world, &name)?;
        let who = await_who(world, &id)?;
        await_asleep(&who.leader)?;
        let pid = window.spawned.pid;
        match way {
            Way::Exits => window.types("exit 0\r")?,
            Way::Stopped => drop(tell(world, HERE, &["stop", &id])?),
            Way::Killed => drop(tell(world, HERE, &["kill", &id])?),
            Way::WindowTerm => send_signal(pid, Signal::TERM)?,
            Way::WindowInt => send_signal(pid, Signal::INT)?,
            Way::WindowHup => send_signal(pid, Signal::HUP)?,
            Way::WindowKilled => send_signal(pid, Signal::KILL)?,
            Way::KeeperKilled => send_signal(who.keeper.pid, Signal::KILL)?,
            Way::GuardKilled => send_signal(who.guard.pid, Signal::KILL)?,
            Way::Detached => {
                window.types(super::window::DETACH)?;
                window.ends(world, Ended::Code(0))?;
                tell(world, HERE, &["stop", &id])?;
            }
            Way::WindowClosed => {
                let spawned = window.spawned.clone();
                drop(window);
                world.wait(&spawned, SOON_ENOUGH)?;
                ended.push((way, id));
                continue;
            }
            Way::TimedOut => {}
        }
        window.ended(world).context(format!("{way:?}"))?;
        if way != Way::WindowKilled {
            window.expect_given_back().context(format!("{way:?}"))?;
        }
        ended.push((way, id));
    }
    for (way, id) in ended {
        let report = report(world, &id)?;
        ensure!(report["reason"] == way.reason(), "{way:?} ended by {}", report["reason"]);
    }
    world.expect_extinct(SOON_ENOUGH)
}

/// The id of the run with this name, once it is written down.
fn find(world: &mut World, name: &str) -> Outcome<String> {
    let shown = tell(world, HERE, &["show", "--json", name])?;
    let shown: serde_json::Value = serde_json::from_str(&shown).context("json")?;
    shown["record"]["id"]
        .as_str()
        .map(ToOwned::to_owned)
        .context(format!("{name} has no id: {shown}"))
}

/// What this process has open, by number.
fn open_descriptors() -> BTreeMap<String, String> {
    let name = |path: std::path::PathBuf| path.to_string_lossy().into_owned();
    let numbers = names(std::path::Path::new("/proc/self/fd")).into_iter();
    numbers
        .filter_map(|n| {
            Some((n.clone(), name(std::fs::read_link(format!("/proc/self/fd/{n}")).ok()?)))
        })
        .collect()
}

/// Every run has left the same files, whatever became of it.
fn expect_tidy(world: &World) -> Outcome {
    let runs = crate::desk::run_ids(world);
    let left: BTreeSet<Vec<String>> = runs.iter().map(|id| names(&dir(world, id))).collect();
    ensure!(left.len() == 1, "runs have left different things: {left:?}");
    let state = names(&world.state());
    ensure!(state.iter().all(|name| !name.contains("tmp")), "the store holds {state:?}");
    Ok(())
}
