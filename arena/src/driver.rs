//! The inner side: the first process of a world. It prepares the world, plays
//! the scenario, and says what was to be seen if that failed.

use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Duration;

use rustix::mount::{MountFlags, mount};

use crate::gate::Ticket;
use crate::lifeline::Lifeline;
use crate::{Cgroup, Context, Deadline, Outcome, Process, Registry, World};

/// Exit status when the test run that opened this world has gone.
const ABANDONED: i32 = 3;
/// Exit status when the scenario overran its limit.
const OVERRUN: i32 = 4;

pub(crate) fn run(registry: &Registry, ticket: &Ticket) -> ExitCode {
    let Some(scenario) = registry.find(&ticket.name) else {
        println!("there is no scenario called {}", ticket.name);
        return ExitCode::FAILURE;
    };
    let mut world = match prepare(ticket, scenario.limit) {
        Ok(world) => world,
        Err(error) => {
            println!("cannot prepare the world: {}", error.text);
            return ExitCode::FAILURE;
        }
    };
    let played = catch_unwind(AssertUnwindSafe(|| (scenario.body)(&mut world)));
    let outcome = played.unwrap_or_else(|_| Err("the scenario panicked (see above)".into()));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            println!("FAILED: {}\n{}", failure.text, world.describe());
            world.lifeline().say_failed(&failure);
            ExitCode::FAILURE
        }
    }
}

fn prepare(ticket: &Ticket, limit: Duration) -> Outcome<World> {
    if std::process::id() != 1 {
        return Err("a scenario is only played by process 1 of a namespace of its own".into());
    }
    let lifeline = hold_lifeline()?;
    // No controlling terminal, and a process group of our own.
    rustix::process::setsid().context("setsid")?;
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    let cgroup = ticket.cgroup.as_ref().map(Cgroup::at);
    if let Some(cgroup) = &cgroup {
        cgroup.enter()?;
    }
    let cell = ticket.base.join("cell");
    mount("arena", &cell, "tmpfs", MountFlags::empty(), c"mode=755")
        .context("mounting the scratch file system")?;
    let line = lifeline.try_clone()?;
    std::thread::spawn(move || overrun(limit, &line));
    World::new(&ticket.base, cgroup, lifeline)
}

/// Standard input is the lifeline to the test run. It is moved out of the way,
/// so that no program in this world can hold or read it.
fn hold_lifeline() -> Outcome<Lifeline> {
    let lifeline =
        rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3).context("lifeline")?;
    let null = std::fs::File::open("/dev/null").context("/dev/null")?;
    rustix::stdio::dup2_stdin(&null).context("standard input")?;
    let lifeline = Lifeline::new(UnixStream::from(lifeline));
    let other = lifeline.try_clone()?;
    std::thread::spawn(move || {
        other.wait_for_its_end();
        std::process::exit(ABANDONED);
    });
    Ok(lifeline)
}

/// When process 1 exits, the kernel ends the world.
fn overrun(limit: Duration, lifeline: &Lifeline) {
    let deadline = Deadline::after(limit);
    std::thread::sleep(limit);
    let failure = deadline.missed(format!("not finished after {limit:?}"));
    println!("FAILED: {}; the world at that time:", failure.text);
    for process in Process::all() {
        println!("{process}");
    }
    lifeline.say_failed(&failure);
    std::process::exit(OVERRUN);
}
