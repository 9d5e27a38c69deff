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
use crate::registry::Scenario;
use crate::slots::{Slot, Slots};
use crate::world::ALOUD;
use crate::{Cgroup, Context, Deadline, Need, Outcome, Registry, own_cgroup, pidfd, seconds};

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
    let base = if arguments.list { None } else { Some(Arc::new(Base::create())) };
    // Heavy worlds come last: each waits until the machine is free.
    let mut scenarios = registry.into_scenarios();
    scenarios.sort_by_key(|scenario| scenario.heavy);
    let trials = scenarios.into_iter().map(|scenario| trial(scenario, base.clone())).collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn trial(scenario: Scenario, base: Option<Arc<Outcome<Base>>>) -> Trial {
    Trial::ignorable_test(scenario.name.clone(), move || {
        if let Err(reason) = possible_here(&scenario.needs) {
            return Ok(Completion::ignored_with(reason));
        }
        match base.as_deref() {
            Some(Ok(base)) => {
                play(&scenario, base).map(|()| Completion::Completed).map_err(Failed::from)
            }
            Some(Err(error)) => Err(Failed::from(error)),
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
    let failures: Vec<String> = [outcome.err(), clean.err()].into_iter().flatten().collect();
    let said = String::from_utf8_lossy(&said);
    if failures.is_empty() {
        for line in said.lines().filter_map(|line| line.strip_prefix(ALOUD)) {
            eprintln!("{}: {line}", scenario.name);
        }
        return Ok(());
    }
    Err(format!("{said}\n{}", failures.join("\n")))
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
            return Err(format!(
                "the world of {} cannot be ended; it is left behind",
                scenario.name
            ));
        }
    }
    let status = child.wait().context("waiting for unshare")?;
    match (ended, status.success()) {
        (true, true) => Ok(()),
        (true, false) => Err(format!("({status})")),
        (false, _) => Err(format!("the world was ended from outside after {limit:?}")),
    }
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
            Err(error) => return Err(format!("poll: {error}")),
        }
    }
}

fn leave_no_cgroup(cgroup: &Cgroup) -> Outcome {
    let leftovers = cgroup.leftovers();
    cgroup.remove(seconds(5))?;
    if leftovers.is_empty() {
        return Ok(());
    }
    Err(format!("not clean: cgroups left behind: {}", leftovers.join(", ")))
}
