//! Two windows of one application. One is killed again and again, with the guards and keepers of
//! its runs, and started again; the other one lives beside it, and is not to notice.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use fullstop_bench::soak::{Answer, Figure, HostStopped, Job, WindowStarted, WindowTidied};
use serde::de::DeserializeOwned;

use super::{Counts, notes, step};
use crate::{Outcome, crowd, proc};

/// So many runs a window has.
const RUNS: usize = 4;
/// A window that is killed while it starts them is killed within this time.
const STARTING: Duration = Duration::from_millis(40);
/// How long keepers and guards of runs that are over may take to leave.
const GOODBYE: Duration = Duration::from_secs(10);
/// How the sibling's runs end if nobody but itself ends them.
const STOPPED_BY_ITSELF: &str = "stopped, null";
const SEED: u64 = 18;

pub fn play(job: &Job) -> Outcome<Answer> {
    let mut sibling = Window::open(job)?;
    sibling.tidied()?;
    sibling.start()?;
    sibling.started()?;
    let siblings = settled()?;
    step(&format!("{} rounds beside {} processes of a sibling", job.runs, siblings.len()));
    let mut chance = Chance(SEED);
    let mut tally = Tally::default();
    let mut window = Window::open(job)?;
    window.tidied()?;
    for round in 0..job.runs {
        window.start()?;
        // Every other time it is killed while it starts them.
        if round.is_multiple_of(2) {
            window.started()?;
        } else {
            sleep(STARTING.mul_f64(chance.part()));
        }
        // And of those that it has started, some keep their keepers every fourth time.
        let spare = if round % 4 == 2 { 0.5 } else { 0.0 };
        tally.killed += window.kill(job, &siblings, spare, &mut chance)?;
        let begun = Instant::now();
        window = Window::open(job)?;
        let tidied = window.tidied()?;
        tally.slowest = tally.slowest.max(begun.elapsed());
        tally.swept += tidied.swept;
        tally.stopped += tidied.stopped;
        tally.siblings_seen += usize::from(tidied.siblings == RUNS);
        for left in tidied.left {
            *tally.left.entry(left).or_default() += 1;
        }
        tally.survivors += survivors(&siblings, &window)?;
        tally.touched += siblings.iter().filter(|one| !one.lives()).count();
    }
    window.start()?;
    window.started()?;
    tally.ends(window.close()?);
    let of_its_own = tally.endings.clone();
    tally.ends(sibling.close()?);
    crowd::goodbye();
    Ok(tally.answer(job, &of_its_own))
}

#[derive(Default)]
struct Tally {
    killed: usize,
    swept: usize,
    stopped: usize,
    siblings_seen: usize,
    survivors: usize,
    touched: usize,
    slowest: Duration,
    left: Counts,
    endings: Counts,
}

impl Tally {
    fn ends(&mut self, stopped: HostStopped) {
        for (what, count) in stopped.endings.into_iter().chain(stopped.failures) {
            *self.endings.entry(what).or_default() += count;
        }
    }

    fn answer(&self, job: &Job, before: &Counts) -> Answer {
        let of = |counts: &Counts| counts.get(STOPPED_BY_ITSELF).copied().unwrap_or(0);
        let seconds = self.slowest.as_secs_f64();
        let left_alone = self.left.values().sum();
        Answer {
            figures: vec![
                Figure::count("of its own, processes that survived", self.survivors, 0),
                Figure::count("of the sibling's, processes that were gone", self.touched, 0),
                Figure::count(
                    "rounds that saw all runs of the sibling",
                    self.siblings_seen,
                    job.runs,
                ),
                Figure::count(
                    "the sibling's runs, stopped by itself",
                    of(&self.endings) - of(before),
                    RUNS,
                ),
                Figure::count("its own last runs, stopped by itself", of(before), RUNS),
                Figure::noted("left alone by a sweep", Some(as_figure(left_alone)), ""),
                Figure::noted(
                    "windows, guards and keepers killed",
                    Some(as_figure(self.killed)),
                    "",
                ),
                Figure::noted("swept", Some(as_figure(self.swept)), ""),
                Figure::noted("stopped", Some(as_figure(self.stopped)), ""),
                Figure::noted("tidied up, the slowest", Some(seconds), "s"),
                Figure::count("processes left", proc::living().len(), 0),
            ],
            notes: [notes("left alone", &self.left), notes("ended", &self.endings)].concat(),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
fn as_figure(count: usize) -> f64 {
    count as f64
}

/// One process, which is not taken for another one of the same pid.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Process {
    pid: u32,
    start_ticks: u64,
}

impl Process {
    fn of(pid: u32) -> Option<Process> {
        let start_ticks = proc::start_ticks(pid)?;
        proc::state(pid).map(|_| Process { pid, start_ticks })
    }

    fn lives(&self) -> bool {
        Process::of(self.pid) == Some(*self)
    }
}

fn living() -> BTreeSet<Process> {
    proc::living().iter().filter_map(|seen| Process::of(seen.pid)).collect()
}

/// All that live, once nobody comes or goes any more: what a start leaves behind for a moment
/// is gone by then.
fn settled() -> Outcome<BTreeSet<Process>> {
    const CALM: Duration = Duration::from_secs(1);
    let until = Instant::now() + GOODBYE;
    let mut seen = living();
    while Instant::now() < until {
        sleep(CALM);
        let now = living();
        if now == seen {
            return Ok(now);
        }
        seen = now;
    }
    Err("the sibling does not settle".into())
}

/// How many live who are neither the sibling's nor the window itself, once those on their way
/// out are gone.
fn survivors(siblings: &BTreeSet<Process>, window: &Window) -> Outcome<usize> {
    let own = Process::of(window.process.id()).ok_or("the window has died")?;
    let until = Instant::now() + GOODBYE;
    loop {
        let others = living().into_iter().filter(|one| *one != own && !siblings.contains(one));
        let others: Vec<Process> = others.collect();
        if others.is_empty() || Instant::now() >= until {
            for one in &others {
                let line = std::fs::read(format!("/proc/{}/cmdline", one.pid)).unwrap_or_default();
                step(&format!("survives: {} {}", one.pid, String::from_utf8_lossy(&line)));
            }
            return Ok(others.len());
        }
        sleep(Duration::from_millis(1));
    }
}

struct Window {
    process: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Window {
    fn open(job: &Job) -> Outcome<Window> {
        let mut process = Command::new(&job.window)
            .arg(&job.state)
            .arg(RUNS.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdin = process.stdin.take().ok_or("the window has no stdin")?;
        let stdout = BufReader::new(process.stdout.take().ok_or("the window has no stdout")?);
        Ok(Window { process, stdin, stdout })
    }

    fn start(&mut self) -> Outcome<()> {
        Ok(self.stdin.write_all(b"start\n")?)
    }

    fn tidied(&mut self) -> Outcome<WindowTidied> {
        next(&mut self.stdout)
    }

    fn started(&mut self) -> Outcome<()> {
        let WindowStarted { started } = next(&mut self.stdout)?;
        if started == RUNS { Ok(()) } else { Err(format!("it has started {started}").into()) }
    }

    fn close(self) -> Outcome<HostStopped> {
        let Window { mut process, stdin, mut stdout } = self;
        drop(stdin);
        let stopped = next(&mut stdout)?;
        process.wait()?;
        Ok(stopped)
    }

    /// The window and all that is of its executable (guards, keepers, and those that are about to
    /// be) are killed, in any order, as close to one instant as it goes; again, if more were
    /// being born meanwhile. Some of the latter are spared. Returns how many were killed.
    fn kill(
        mut self,
        job: &Job,
        siblings: &BTreeSet<Process>,
        spare: f64,
        chance: &mut Chance,
    ) -> Outcome<usize> {
        let own = self.process.id();
        let mut spared = BTreeSet::new();
        let mut killed = 0;
        let until = Instant::now() + GOODBYE;
        loop {
            let mut doomed = proc::living_of(&job.window);
            doomed.retain(|seen| {
                let Some(process) = Process::of(seen.pid) else { return false };
                !siblings.contains(&process) && !spared.contains(&process)
            });
            if doomed.is_empty() {
                self.process.wait()?;
                return Ok(killed);
            }
            if Instant::now() >= until {
                return Err("those that were killed do not die".into());
            }
            chance.shuffle(&mut doomed);
            for seen in doomed {
                if seen.pid != own && chance.part() < spare {
                    spared.extend(Process::of(seen.pid));
                } else {
                    proc::kill(&seen);
                    killed += 1;
                }
            }
            // Who was spared once lives on.
            sleep(Duration::from_millis(1));
        }
    }
}

/// What the window says next.
fn next<T: DeserializeOwned>(stdout: &mut BufReader<ChildStdout>) -> Outcome<T> {
    let mut line = String::new();
    if stdout.read_line(&mut line)? == 0 {
        return Err("the window said nothing more".into());
    }
    Ok(serde_json::from_str(&line)?)
}

/// The same in each soak (xorshift64).
struct Chance(u64);

impl Chance {
    fn draw(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Between 0 and 1.
    fn part(&mut self) -> f64 {
        const STEPS: u32 = 1 << 16;
        f64::from(u32::try_from(self.draw() % u64::from(STEPS)).unwrap_or_default())
            / f64::from(STEPS)
    }

    fn shuffle<T>(&mut self, all: &mut [T]) {
        for at in (1..all.len()).rev() {
            let other = self.draw() % (at as u64 + 1);
            all.swap(at, usize::try_from(other).unwrap_or_default());
        }
    }
}
