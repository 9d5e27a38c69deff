//! A sweep of one's own only: it ends what a dead predecessor has left without keeper and guard,
//! and touches nobody else's, whatever state that is in.

#[path = "../closed_world/mod.rs"]
mod closed_world;
mod proc;

use fullstop::{HostedBy, Id, Run, Runs, SweepFinding, Swept, blocking};
use proc::{Process, kill};
use std::collections::BTreeMap;
use std::error::Error;
use std::io::{BufRead as _, BufReader, Lines, Read as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

const APP: &str = "hosts-test";
const OTHER_APP: &str = "hosts-test/other";
/// Longer than anything that is meant to happen at once takes on a busy machine.
const SOON: Duration = Duration::from_mins(1);
const ROUNDS: u64 = 12;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

fn main() -> Outcome {
    let words: Vec<String> = std::env::args().collect();
    if let [_, role, state, app] = words.as_slice()
        && role == "be-a-window"
    {
        return be_a_window(&Runs::at(Path::new(state))?.with_app(app)?);
    }
    if closed_world::is_inside("a_sweep_of_ones_own_touches_nobody_elses")? {
        let dir = std::env::temp_dir().join(format!("fullstop-hosts-{}", std::process::id()));
        let runs = Runs::at(&dir)?.with_app(APP)?;
        of_many_lost_runs_only_ones_own_are_swept(&runs)?;
        a_killed_window_leaves_nothing_and_its_sibling_is_not_touched(&runs)?;
        std::fs::remove_dir_all(&dir)?;
    }
    Ok(())
}

/// It begins two runs, one of which would outlive it, says their ids, and lives until its stdin
/// ends.
fn be_a_window(runs: &Runs) -> Outcome {
    let command = || runs.command("sleep").arg("300");
    let (tied, free) = (blocking::spawn(command())?, blocking::start(command())?);
    println!("{}\n{}", tied.id(), free.id());
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

struct Window {
    process: Child,
    said: Lines<BufReader<ChildStdout>>,
}

impl Window {
    fn open(runs: &Runs, app: &str) -> Outcome<Window> {
        let mut process = Command::new(std::env::current_exe()?)
            .arg("be-a-window")
            .arg(runs.path())
            .arg(app)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let said = BufReader::new(process.stdout.take().ok_or("no stdout")?).lines();
        Ok(Window { process, said })
    }

    /// Its runs, once they have begun.
    fn runs(&mut self, runs: &Runs) -> Outcome<[Run; 2]> {
        let mut next = || -> Outcome<Run> {
            Ok(blocking::wait(runs.find(&self.said.next().ok_or("no id")??))?)
        };
        Ok([next()?, next()?])
    }

    fn crash(mut self) -> Outcome {
        self.process.kill()?;
        self.process.wait()?;
        Ok(())
    }
}

/// Kills guard and keeper of a run, which are stopped, so that none sees the other one die.
/// Returns who goes on without them.
fn lose(run: &Run) -> Outcome<Vec<Process>> {
    let watchers = watchers(run)?;
    let members: Vec<Process> =
        blocking::wait(run.processes())?.iter().filter_map(|one| Process::of(one.pid)).collect();
    assert!(!members.is_empty());
    kill("-KILL", &watchers)?;
    until(|| !watchers.iter().any(Process::lives));
    assert!(members.iter().all(Process::lives), "somebody has ended run {}", run.id());
    Ok(members)
}

/// Stops every guard and keeper, so that none of them sweeps in passing. Returns them all.
fn freeze(windows: &[&Window]) -> Vec<Process> {
    let is_watcher = |one: &Process| {
        one.pid != own_pid()
            && windows.iter().all(|it| i32::try_from(it.process.id()) != Ok(one.pid))
    };
    until(|| {
        let mut watchers = Process::all_of_this_program();
        watchers.retain(is_watcher);
        let _ = kill("-STOP", &watchers);
        // None that was running when it was listed has forked another one since.
        watchers.iter().all(Process::is_stopped)
            && Process::all_of_this_program().iter().filter(|it| is_watcher(it)).eq(&watchers)
    });
    let mut watchers = Process::all_of_this_program();
    watchers.retain(is_watcher);
    watchers
}

fn watchers(run: &Run) -> Outcome<Vec<Process>> {
    let both = || blocking::wait(run.record()).map(|record| (record.guard, record.keeper));
    until(|| matches!(both(), Ok((Some(_), Some(_)))));
    let (guard, keeper) = both()?;
    Ok(guard.into_iter().chain(keeper).filter_map(|one| Process::of(one.pid)).collect())
}

fn of_many_lost_runs_only_ones_own_are_swept(runs: &Runs) -> Outcome {
    let mut window = Window::open(runs, APP)?;
    let [crashed, _] = window.runs(runs)?;
    let mut sibling = Window::open(runs, APP)?;
    let [siblings, _] = sibling.runs(runs)?;
    let mut stranger = Window::open(runs, OTHER_APP)?;
    let [strangers, _] = stranger.runs(runs)?;
    // A start sweeps as well, whosever it is: all have begun, and hold still, before the first is
    // lost.
    let start = |runs: &Runs| blocking::start(runs.command("sleep").arg("300"));
    let (own, damaged, nobodys) = (start(runs)?, start(runs)?, start(&Runs::at(runs.path())?)?);
    let lost = [&crashed, &siblings, &strangers, &own, &damaged, &nobodys];
    until(|| lost.iter().all(|run| watchers(run).is_ok_and(|both| both.len() == 2)));
    let mut frozen = freeze(&[&window, &sibling, &stranger]);
    let members = lost.map(lose);
    let [crashed_one, siblings_one, strangers_one, own_one, damaged_one, nobodys_one] = members;
    stranger.crash()?;
    window.crash()?;
    std::fs::write(damaged.dir().join("record.json"), "no record")?;

    let swept = blocking::wait(runs.sweep_of(APP))?;
    let swept: BTreeMap<&Id, &Swept> = swept.iter().map(|swept| (&swept.id, swept)).collect();
    let found = |run: &Run| swept.get(run.id()).map(|swept| &swept.found);
    for (run, members) in [(&crashed, crashed_one?), (&own, own_one?)] {
        assert!(matches!(found(run), Some(SweepFinding::Ended { .. })), "{:?}", found(run));
        assert!(!members.iter().any(Process::lives), "of one's own somebody was left");
    }
    for (run, members) in [(&siblings, siblings_one?), (&damaged, damaged_one?)] {
        assert!(matches!(found(run), Some(SweepFinding::LeftAlone { .. })), "{:?}", found(run));
        assert!(members.iter().all(Process::lives), "one who is not ours was killed");
    }
    for (run, members) in [(&strangers, strangers_one?), (&nobodys, nobodys_one?)] {
        assert!(found(run).is_none(), "{:?}", found(run));
        assert!(members.iter().all(Process::lives), "one who is not ours was killed");
    }
    frozen.retain(Process::lives);
    kill("-CONT", &frozen)?;
    sibling.crash()?;
    // This one asks nobody whose they were.
    blocking::wait(runs.sweep())?;
    for run in blocking::wait(runs.live())? {
        blocking::wait(run.kill())?;
    }
    assert_eq!(blocking::wait(runs.live_ids())?, Vec::<Id>::new());
    Ok(())
}

/// The window, its guards and its keepers are killed in any order, at any instant of its start or
/// after it. Seeds make it the same each time, as far as the kernel lets them.
fn a_killed_window_leaves_nothing_and_its_sibling_is_not_touched(runs: &Runs) -> Outcome {
    let mut sibling = Window::open(runs, APP)?;
    let mut beside = Vec::new();
    for run in sibling.runs(runs)? {
        beside.extend(watchers(&run)?);
        beside
            .extend(blocking::wait(run.processes())?.iter().filter_map(|one| Process::of(one.pid)));
    }
    beside.extend(Process::of(i32::try_from(sibling.process.id())?));
    for seed in 0..ROUNDS {
        let mut window = Window::open(runs, APP)?;
        if seed % 2 == 0 {
            window.runs(runs)?;
        } else {
            std::thread::sleep(Duration::from_millis(seed * 3));
        }
        // Again, if more were being born meanwhile.
        until(|| {
            let mut doomed = Process::all_of_this_program();
            doomed.retain(|one| !beside.contains(one) && one.pid != own_pid());
            let many = doomed.len().max(1);
            doomed.rotate_left(usize::try_from(seed).unwrap_or_default() % many);
            let _ = kill("-KILL", &doomed);
            doomed.is_empty()
        });
        window.process.wait()?;
        blocking::wait(tidy_up(runs))?;
        until(|| {
            let mut others = Process::all();
            others.retain(|one| !beside.contains(one) && one.pid > 1 && one.pid != own_pid());
            others.is_empty()
        });
        assert!(beside.iter().all(Process::lives), "seed {seed}: a sibling's was touched");
    }
    sibling.crash()?;
    blocking::wait(tidy_up(runs))?;
    Ok(())
}

async fn tidy_up(runs: &Runs) -> fullstop::Result<()> {
    runs.sweep_of(APP).await?;
    for found in runs.of(APP).await? {
        if found.hosted_by == HostedBy::Predecessor && found.status.live {
            found.run.stop().await?;
        }
    }
    Ok(())
}

fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_pid()
}

fn until(is_so: impl Fn() -> bool) {
    let until = Instant::now() + SOON;
    while !is_so() {
        assert!(Instant::now() < until, "it has not come to pass: {:?}", Process::all());
        std::thread::yield_now();
    }
}
