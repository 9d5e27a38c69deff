//! Windows on a run's terminal, and `fullstop run --pty`, whose process is no more
//! than the window and the host of its run.

mod event_loop;
mod other_screen;
mod source;
mod stopping;
mod terminal_output;
mod tty;

pub use event_loop::{Role, Window, WindowEnd};

use crate::fail::{Fail, complain};
use crate::prepare::ignore_job_stops;
use crate::run::command;
use fullstop::{HostPolicy, Report, Run, RunState, blocking};
use fullstop_cage::cannot;
use fullstop_cage::linux::{Origin, watch_parent};
use fullstop_cli::args::RunOptions;
use fullstop_keeper::{Ending, Sink, Verbosity, name_living, name_unshown, stops_with_parent};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Duration;
use tty::is_on_terminal;

/// Runs a command on a terminal of its own, and is the window on it. The run stands
/// apart; it is stopped when this process dies, by whatever means.
///
/// Signals are held back once it runs, and not before: what starts a keeper hands
/// down its mask. One that comes earlier ends this process, and so the run.
#[cold]
pub fn run(mut options: RunOptions) -> Result<Ending, Fail> {
    let verbosity = options.verbosity;
    let keys = options.detach_keys.take().unwrap_or_default();
    if !is_on_terminal() {
        // No shell would continue us, and the run would have no host that hears.
        ignore_job_stops();
    }
    let host = watched_parent(options.on_host_exit)?;
    options.on_host_exit = Some(HostPolicy::Stop);
    let own_report = options.report.take_if(|path| path == "-").is_some();
    // The keeper writes it, and stands elsewhere.
    if let Some(report) = options.report.take() {
        options.report = Some(std::path::absolute(report)?.into());
    }
    let run = blocking::wait(command(options).start_for_window())?;
    let mut window = Window::open(&run, Role::Owner, &keys)?;
    window.watch_host(host);
    match window.run()? {
        WindowEnd::Over(report) => {
            let_go(&run, &report);
            if own_report {
                write_report(&report);
            }
            tell(&report, verbosity);
            Ok(Ending::of_report(&report))
        }
        WindowEnd::Detached => {
            if verbosity > Verbosity::Quiet {
                say_detached(&run);
            }
            Ok(Ending::Code(0))
        }
        WindowEnd::Signal(signal) => Ok(Ending::Signal(signal)),
    }
}

/// Our parent is our host, as for a `run` without a terminal of its own.
fn watched_parent(policy: Option<HostPolicy>) -> Result<Option<OwnedFd>, Fail> {
    let parent = Origin::get().parent();
    if !stops_with_parent(policy, is_on_terminal(), parent) {
        return Ok(None);
    }
    Ok(watch_parent(parent).map_err(cannot("watch the host (pidfd)"))?)
}

/// The report is told a moment before keeper and guard are gone themselves.
pub fn let_go(run: &Run, report: &Report) {
    const PATIENCE: Duration = Duration::from_secs(1);
    if report.is_proven() {
        let _ = blocking::wait(run.wait_for(Some(PATIENCE)));
    }
}

pub fn say_detached(run: &Run) {
    use std::io::Write as _;
    // The reader of our messages may be gone. The cursor may stand anywhere.
    let _ = write!(io::stderr(), "\r\ndetached; fullstop attach {}\r\n", run.id());
}

fn write_report(report: &Report) {
    let stdout = io::stdout().as_fd().try_clone_to_owned();
    let written = stdout.and_then(|stdout| Sink::stream(File::from(stdout)).write(report));
    if let Err(error) = written {
        complain(cannot("write the report")(error));
    }
}

/// What the guard would have said, had it stood here.
fn tell(report: &Report, verbosity: Verbosity) {
    if verbosity == Verbosity::Verbose {
        for step in &report.steps {
            let (at, alive, signalled) = (step.at_ms, step.alive, step.signalled);
            complain(format!("{at} ms: {}, {alive} alive, {signalled} signalled", step.step));
        }
    }
    if let Some(error) = report.error.as_ref().filter(|_| verbosity > Verbosity::Quiet) {
        complain(error);
    }
    name_the_living(report);
    name_unshown(&report.id, &report.output).iter().for_each(complain);
}

/// Who could not be killed, or was let go.
pub fn name_the_living(report: &Report) {
    let (state, survivors) = (&report.state, &report.survivors);
    let lines = match state {
        RunState::Released => name_living(state, report.released.len(), &report.released),
        _ => name_living(state, survivors.len(), survivors.iter().map(|it| &it.member)),
    };
    lines.iter().for_each(complain);
}
