//! `start` and `restart`: runs in the background.

use crate::each::each_meant;
use crate::fail::{Fail, complain};
use crate::print::{json_line, tell, tell_json, try_print};
use crate::run::command;
use fullstop::{Command, Error, Run, blocking};
use fullstop_cli::args::{StartOptions, WaitReady, Which};
use std::ffi::OsStr;

pub fn start(options: StartOptions) -> Result<(), Fail> {
    let mut run_options = options.run;
    if run_options.report.as_deref() == Some(OsStr::new("-")) {
        return Err("--report: a run in the background has no stdout of yours; name a file".into());
    }
    // The keeper writes it, and stands elsewhere.
    if let Some(report) = run_options.report.take() {
        run_options.report = Some(std::path::absolute(report)?.into());
    }
    let command = options.keep_fds.into_iter().fold(command(run_options), Command::keep_fd);
    let run = blocking::wait(async {
        let run = command.start().await?;
        if let Some(WaitReady { ready, timeout }) = &options.wait_ready {
            run.ready_or_stop(ready, *timeout).await?;
        }
        Ok(run)
    })?;
    told(&run, options.json).map_err(|fail| taken_back(&run, &fail))
}

fn told(run: &Run, as_json: bool) -> Result<(), Fail> {
    let id = || Ok(format!("{}\n", run.id()));
    try_print(&if as_json { json_line(&run.status()?) } else { id() }?)
}

/// A run that is over by now, and removed, was started nevertheless.
fn tell_status(run: &Run) {
    match run.status() {
        Ok(status) => tell_json(&status),
        Err(error) => complain(format!("{} was started again: {error}", run.id())),
    }
}

/// A run whose id cannot be told is a run that nobody can stop: it does not stay.
fn taken_back(run: &Run, fail: &Fail) -> Fail {
    let (id, why) = (run.id(), &fail.why);
    match blocking::wait(run.stop()) {
        Ok(report) => {
            format!(
                "{why}; run {id}, whose id could not be told, was stopped: {}",
                report.state.word()
            )
        }
        Err(error) => format!("{why}; run {id} could not be stopped again: {error}"),
    }
    .into()
}

pub fn restart(which: &Which, as_json: bool) -> Result<(), Fail> {
    each_meant(which, Error::status, |run| {
        let run = blocking::wait(run.restart())?;
        if as_json {
            tell_status(&run);
        } else {
            let generation = run.generation().unwrap_or_default();
            tell(&format!("{} generation {generation}\n", run.id()));
        }
        Ok(())
    })
}
