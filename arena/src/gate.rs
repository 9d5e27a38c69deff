//! The outer side: opens a world for each scenario, waits for its end, and
//! looks whether anything was left in its cgroup.

use std::fs::{self, File};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use rustix::event::{PollFd, PollFlags, poll};
use serde::{Deserialize, Serialize};

use crate::base::Base;
use crate::heartbeat::Heartbeats;
use crate::lifeline::{Word, words_of};
use crate::registry::Scenario;
use crate::slots::{Slot, Slots};
use crate::verdict::Verdicts;
use crate::world::ALOUD;
use crate::{
    Cgroup, Context, Deadline, Failure, Need, Outcome, Registry, ensure, own_cgroup, pidfd, seconds,
};

/// Worlds mostly wait: a test thread each is cheap, and [`Slots`] keeps them
/// from being busy all at once.
const THREADS: usize = 12;

/// The driver ends itself at its limit; when even that fails (it is not
/// scheduled, a member cannot be killed), we end it from here this much later.
const BACKSTOP: Duration = seconds(15);

/// The word on the command line by which the executable knows that it is
/// started as the first process of a world.
const WORD: &str = "--arena-cell";

/// What a driver must know about the world it opens its eyes in.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Ticket {
    pub name: String,
    pub base: PathBuf,
    pub cgroup: Option<PathBuf>,
}

impl Ticket {
    pub(crate) fn from_args() -> Option<Self> {
        let mut args = std::env::args().skip(1);
        if args.next()? != WORD {
            return None;
        }
        serde_json::from_str(&args.next()?).ok()
    }
}

pub(crate) fn run_all(registry: Registry) -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(THREADS);
    // Listing must work where nothing has been built yet.
    let house = if arguments.list { None } else { Some(Arc::new(House::open())) };
    // Heavy worlds come last: each waits until the machine is free.
    let mut scenarios = registry.into_scenarios();
    scenarios.sort_by_key(|scenario| scenario.heavy);
    let trials = scenarios.into_iter().map(|scenario| trial(scenario, house.clone())).collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    match house.as_deref() {
        Some(Ok(house)) if !house.close() => ExitCode::FAILURE,
        _ => conclusion.exit_code(),
    }
}

/// What all scenarios of a test run share.
struct House {
    base: Base,
    heartbeats: Heartbeats,
    verdicts: Verdicts,
}

impl House {
    fn open() -> Outcome<Self> {
        let (base, heartbeats) = (Base::create()?, Heartbeats::start()?);
        Ok(Self { base, heartbeats, verdicts: Verdicts::default() })
    }

    /// Plays a scenario until its verdict counts.
    fn play(&self, scenario: &Scenario) -> Outcome {
        let once = || play(scenario, &self.base);
        let lateness = |missed| self.heartbeats.lateness(missed, scenario.crowd);
        self.verdicts.play(&scenario.name, once, lateness)
    }

    /// Says how many verdicts were void; `false` if too many were.
    fn close(&self) -> bool {
        let (said, tolerable) = self.verdicts.sum_up();
        println!("{said}\n{}", self.heartbeats.sum_up());
        tolerable
    }
}

fn trial(scenario: Scenario, house: Option<Arc<Outcome<House>>>) -> Trial {
    Trial::ignorable_test(scenario.name.clone(), move || {
        if let Err(reason) = possible_here(&scenario.needs) {
            return Ok(Completion::ignored_with(reason));
        }
        match house.as_deref() {
            Some(Ok(house)) => match house.play(&scenario) {
                Ok(()) => Ok(Completion::Completed),
                Err(failure) => Err(Failed::from(failure.text)),
            },
            Some(Err(failure)) => Err(Failed::from(&failure.text)),
            None => Err(Failed::from("nothing was prepared")),
        }
    })
}

fn possible_here(needs: &[Need]) -> Result<(), String> {
    if !rustix::process::geteuid().is_root() {
        return Err("a world of its own needs root".into());
    }
    let common = [Need::Program("unshare"), Need::Program("env")];
    common.iter().chain(needs).try_for_each(|need| need.check())
}

fn play(scenario: &Scenario, base: &Base) -> Outcome {
    static SERIAL: AtomicUsize = AtomicUsize::new(0);
    let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
    let slot = Slots::take(scenario.heavy);
    let name = format!("fullstop-arena-{}-{serial}", std::process::id());
    // Without a cgroup hierarchy the worlds that need none still open.
    let cgroup = own_cgroup().and_then(|own| own.create(&name)).ok();
    let log = base.path().join(format!("log-{serial}"));
    let ticket = Ticket {
        name: scenario.name.clone(),
        base: base.path().to_owned(),
        cgroup: cgroup.as_ref().map(|cgroup| cgroup.path().to_owned()),
    };
    let outcome =
        open_world(&ticket, &log).and_then(|world| watch(world, scenario, cgroup.as_ref(), slot));
    let said = fs::read(&log).unwrap_or_default();
    let _ = fs::remove_file(&log);
    let clean = cgroup.map_or(Ok(()), |cgroup| leave_no_cgroup(&cgroup));
    let said = String::from_utf8_lossy(&said);
    let failures: Vec<Failure> = [outcome.err(), clean.err()].into_iter().flatten().collect();
    // The first counts: a scenario that was broken off leaves behind what it had begun.
    let Some(first) = failures.first() else {
        for line in said.lines().filter_map(|line| line.strip_prefix(ALOUD)) {
            eprintln!("{}: {line}", scenario.name);
        }
        return Ok(());
    };
    let texts: Vec<&str> = failures.iter().map(|failure| failure.text.as_str()).collect();
    Err(Failure { text: format!("{}\n{said}", texts.join("\n")), missed: first.missed })
}

/// A world that was opened, and the line to its driver.
struct Opened {
    child: Child,
    lifeline: UnixStream,
}

/// Starts this executable again as process 1 of a new pid namespace. Signal
/// dispositions are put back to their defaults on the way: a test run under
/// nohup must not change what is tested. Standard input is a socket to us: its
/// end tells the driver that we are gone.
fn open_world(ticket: &Ticket, log: &PathBuf) -> Outcome<Opened> {
    let out = File::create(log).context("cannot make the log of a world")?;
    let err = out.try_clone().context("cannot share the log of a world")?;
    let (lifeline, theirs) = UnixStream::pair().context("socketpair")?;
    let ticket = serde_json::to_string(ticket).context("ticket")?;
    let child = Command::new("env")
        .args(["--default-signal", "unshare"])
        .args(["--pid", "--fork", "--mount-proc", "--kill-child", "--propagation", "private"])
        .arg(std::env::current_exe().context("own executable")?)
        .args([WORD, &ticket])
        .stdin(OwnedFd::from(theirs))
        .stdout(out)
        .stderr(err)
        .spawn()
        .context("cannot start unshare")?;
    Ok(Opened { child, lifeline })
}

fn watch(world: Opened, scenario: &Scenario, cgroup: Option<&Cgroup>, slot: Slot) -> Outcome {
    let Opened { mut child, lifeline } = world;
    let limit = scenario.limit + BACKSTOP;
    let deadline = Deadline::after(limit);
    let pidfd = pidfd(i32::try_from(child.id()).context("process id")?)?;
    // Whatever comes through the line, or its end: the busy part is over.
    if wait_readable(&[lifeline.as_fd(), pidfd.as_fd()], deadline)? {
        drop(slot);
    }
    let ended = wait_readable(&[pidfd.as_fd()], deadline)?;
    if !ended {
        // unshare takes its child with it; the cgroup takes the rest.
        let _ = child.kill();
        let _ = cgroup.map(Cgroup::kill);
        if !wait_readable(&[pidfd.as_fd()], Deadline::after(BACKSTOP))? {
            let name = &scenario.name;
            return Err(format!("the world of {name} cannot be ended; it is left behind").into());
        }
    }
    let status = child.wait().context("waiting for unshare")?;
    if !ended {
        return Err(deadline.missed(format!("the world was ended from outside after {limit:?}")));
    }
    if status.success() {
        return Ok(());
    }
    let failed = |word| if let Word::Failed(failure) = word { Some(failure) } else { None };
    let failure = words_of(&lifeline).into_iter().find_map(failed);
    Err(failure.unwrap_or_else(|| format!("({status})").into()))
}

/// Waits until one of the descriptors is readable; `false` at the deadline.
fn wait_readable(fds: &[BorrowedFd<'_>], deadline: Deadline) -> Outcome<bool> {
    let mut fds: Vec<PollFd<'_>> =
        fds.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    loop {
        match poll(&mut fds, Some(&deadline.timespec())) {
            Ok(0) => return Ok(false),
            Ok(_) => return Ok(true),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error).context("poll"),
        }
    }
}

fn leave_no_cgroup(cgroup: &Cgroup) -> Outcome {
    let leftovers = cgroup.leftovers();
    cgroup.remove(seconds(5))?;
    ensure!(leftovers.is_empty(), "not clean: cgroups left behind: {}", leftovers.join(", "));
    Ok(())
}
