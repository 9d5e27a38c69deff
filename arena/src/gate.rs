//! The outer side: opens a world for each scenario, waits for its end, and
//! looks whether anything was left in its cgroup.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use rustix::event::{PollFd, PollFlags, poll};
use serde::{Deserialize, Serialize};

use crate::base::Base;
use crate::registry::Scenario;
use crate::{Cgroup, Context, Deadline, Need, Outcome, Registry, own_cgroup, pidfd, seconds};

/// Worlds mostly wait for patience to run out, so more of them than cores run
/// side by side.
const THREADS: usize = 6;

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
    let trials = registry
        .into_scenarios()
        .into_iter()
        .map(|scenario| trial(scenario, base.clone()))
        .collect();
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
    static HEAVY: Mutex<()> = Mutex::new(());
    let _alone = scenario.heavy.then(|| HEAVY.lock().unwrap_or_else(PoisonError::into_inner));
    let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
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
        open_world(&ticket, &log).and_then(|child| watch(child, scenario, cgroup.as_ref(), &log));
    let _ = fs::remove_file(&log);
    let clean = cgroup.map_or(Ok(()), |cgroup| leave_no_cgroup(&cgroup));
    match (outcome, clean) {
        (Ok(()), clean) => clean,
        (outcome, Ok(())) => outcome,
        (Err(failure), Err(dirt)) => Err(format!("{failure}\n{dirt}")),
    }
}

/// Starts this executable again as process 1 of a new pid namespace. Signal
/// dispositions are put back to their defaults on the way: a test run under
/// nohup must not change what is tested. Standard input is a pipe from us: its
/// end tells the driver that we are gone.
fn open_world(ticket: &Ticket, log: &PathBuf) -> Outcome<Child> {
    let out = File::create(log).context("cannot make the log of a world")?;
    let err = out.try_clone().context("cannot share the log of a world")?;
    let ticket = serde_json::to_string(ticket).context("ticket")?;
    Command::new("env")
        .args(["--default-signal", "unshare"])
        .args(["--pid", "--fork", "--mount-proc", "--kill-child", "--propagation", "private"])
        .arg(std::env::current_exe().context("own executable")?)
        .args([WORD, &ticket])
        .stdin(Stdio::piped())
        .stdout(out)
        .stderr(err)
        .spawn()
        .context("cannot start unshare")
}

fn watch(mut child: Child, scenario: &Scenario, cgroup: Option<&Cgroup>, log: &PathBuf) -> Outcome {
    let limit = scenario.limit + BACKSTOP;
    let ended = wait_until_dead(&child, Deadline::after(limit))?;
    if !ended {
        // unshare takes its child with it; the cgroup takes the rest.
        let _ = child.kill();
        let _ = cgroup.map(Cgroup::kill);
        if !wait_until_dead(&child, Deadline::after(BACKSTOP))? {
            return Err(format!(
                "the world of {} cannot be ended; it is left behind",
                scenario.name
            ));
        }
    }
    let status = child.wait().context("waiting for unshare")?;
    let said = fs::read(log).unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    match (ended, status.success()) {
        (true, true) => Ok(()),
        (true, false) => Err(format!("{said}({status})")),
        (false, _) => Err(format!("{said}the world was ended from outside after {limit:?}")),
    }
}

fn wait_until_dead(child: &Child, deadline: Deadline) -> Outcome<bool> {
    let fd = pidfd(i32::try_from(child.id()).context("process id")?)?;
    loop {
        let mut fds = [PollFd::new(&fd, PollFlags::IN)];
        match poll(&mut fds, Some(&deadline.timespec())) {
            Ok(0) => return Ok(false),
            Ok(_) => return Ok(true),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(format!("poll on a pidfd: {error}")),
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
