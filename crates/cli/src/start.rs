//! `start` and `restart`: runs in the background.

use crate::each::each_meant;
use crate::fail::{Fail, complain};
use crate::print::{json_line, tell, tell_json, try_print};
use crate::run::command;
use fullstop::{Command, Error, Run};
use fullstop_cli::args::{StartOptions, WaitReady, Which};
use std::ffi::OsStr;

pub async fn start(options: StartOptions) -> Result<(), Fail> {
    let mut run_options = options.run;
    if run_options.report.as_deref() == Some(OsStr::new("-")) {
        return Err("--report: a run in the background has no stdout of yours; name a file".into());
    }
    // The keeper writes it, and stands elsewhere.
    if let Some(report) = run_options.report.take() {
        run_options.report = Some(std::path::absolute(report)?.into());
    }
    let command = options.keep_fds.into_iter().fold(command(run_options), Command::keep_fd);
    let run = command.start().await?;
    if let Some(WaitReady { ready, timeout }) = &options.wait_ready {
        run.ready_or_stop(ready, *timeout).await?;
    }
    match told(&run, options.json).await {
        Ok(()) => Ok(()),
        Err(fail) => Err(taken_back(&run, &fail).await),
    }
}

async fn told(run: &Run, as_json: bool) -> Result<(), Fail> {
    let text = if as_json { json_line(&run.status().await?)? } else { format!("{}\n", run.id()) };
    try_print(&text)
}

/// A run that is over by now, and removed, was started nevertheless.
async fn tell_status(run: &Run) {
    match run.status().await {
        Ok(status) => tell_json(&status),
        Err(error) => complain(format!("{} was started again: {error}", run.id())),
    }
}

/// A run whose id cannot be told cannot be stopped by its caller: it does not stay.
async fn taken_back(run: &Run, fail: &Fail) -> Fail {
    let (id, why) = (run.id(), &fail.why);
    match run.stop().await {
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

pub async fn restart(which: &Which, as_json: bool) -> Result<(), Fail> {
    each_meant(which, Error::status, async |run| {
        let run = run.restart().await?;
        if as_json {
            tell_status(&run).await;
        } else {
            let generation = run.generation().unwrap_or_default();
            tell(&format!("{} generation {generation}\n", run.id()));
        }
        Ok(())
    })
    .await
}
