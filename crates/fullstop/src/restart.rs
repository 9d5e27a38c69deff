//! The next generation of a run: what it needs is looked at while the last one lives.

use crate::command::{ask, begin_run};
use crate::error::{Error, Result};
use crate::host::Recruit;
use crate::many::Order;
use crate::offload::offload;
use crate::run::Run;
use crate::secret;
use crate::stop;
use fullstop_cage::linux::{Mask, check_program};
use fullstop_protocol::{Failure, Launch, Placement, Spec, Start, Stdin, Text};
use fullstop_store::{AskedGroup, Reserve, Tag};
use std::io;
use std::path::{Path, PathBuf};

/// The command has this signal mask.
pub(crate) async fn restart(run: &Run, mask: Mask) -> Result<Run> {
    let theirs = run.clone();
    // Its secrets may come from pipes, whose writers take their time.
    let taken = offload(move || Needs::take(&theirs, &mask)).await?;
    let needs = taken.map_err(|why| Error::LeftAlone(Box::new(why)))?;
    let report = stop::order(run, &Order::Stop.request(), |_| ()).await?;
    if !report.is_proven() {
        return Err(Error::NotProven(Box::new(report)));
    }
    let begun = needs.begin(run).await;
    begun.map_err(|why| Error::NotRestarted { report: Box::new(report), why: Box::new(why) })
}

/// What the next generation needs, and what could be taken of it beforehand.
struct Needs {
    asked: Option<AskedGroup>,
    start: Start,
    room: Reserve,
    recruit: Recruit,
}

impl Needs {
    fn take(run: &Run, mask: &Mask) -> Result<Needs> {
        let (runs, file) = (run.runs(), run.runs().store().spec(run.id())?);
        let generation = file.generation + 1;
        let spec = file.whole_spec()?;
        if let Some(needed) = spec.needs_caller() {
            return Err(Error::NeedsCaller { id: run.id().clone(), needed });
        }
        check_place(&spec)?;
        let asked = ask(&spec, runs.store())?;
        let launch = Launch {
            generation,
            state_dir: Some(Text(runs.path().as_os_str().to_owned())),
            group_generations: asked.as_ref().map(|asked| asked.generations.clone()),
            secrets: spec.secrets.iter().map(secret::read_again).collect::<Result<_>>()?,
            ..Launch::new(run.id().clone(), Placement::Background)
        };
        Ok(Needs {
            asked,
            start: Start::new(spec, launch),
            room: runs.store().reserve(run.id())?,
            recruit: Recruit::spawn(&runs.keeper()?, &Tag::new(run.id(), runs.path()), mask)?,
        })
    }

    async fn begin(self, run: &Run) -> Result<Run> {
        let Needs { asked, start, room, recruit } = self;
        drop(room);
        let begun = begin_run(run.runs(), recruit, start).await;
        // Its group is held until it is born.
        drop(asked);
        begun
    }
}

/// Looks whether the command's working directory, program and input are there.
fn check_place(spec: &Spec) -> Result<()> {
    let path = |text: &Text| PathBuf::from(&text.0);
    let cwd = spec.cwd.as_ref().map(path);
    let failed = |what: &'static str, path: &Path, source: io::Error| {
        Err(Error::File { what, path: path.to_owned(), source })
    };
    if let Some(cwd) = &cwd
        && let Err(why) = std::fs::metadata(cwd.join("."))
    {
        return failed("enter working directory", cwd, why);
    }
    if let Stdin::File(input) = &spec.stdin {
        if secret::names_own_descriptor(input) {
            let why = io::Error::other("it is no file that can be opened again");
            return failed("read stdin from", Path::new(&input.0), why);
        }
        let input = path(input);
        if let Err(why) = rustix::fs::access(&input, rustix::fs::Access::READ_OK) {
            return failed("read stdin from", &input, why.into());
        }
    }
    if let Some(report) = &spec.report {
        check_report(report)?;
    }
    let searched = spec.variable("PATH").map(|value| &*value.0);
    let program = spec.argv.first().map(|word| word.0.clone()).unwrap_or_default();
    check_program(&program, searched, cwd.as_deref())
        .map_err(|why| Error::NotStarted(Failure::of_status(why.status(), why.to_string())))
}

/// Looks whether the report can be written. It is not made, or it would be empty for a run
/// that goes on.
fn check_report(report: &Text) -> Result<()> {
    let path = Path::new(&report.0);
    let failed = |source| Error::File { what: "write the report", path: path.to_owned(), source };
    if secret::names_own_descriptor(report) {
        return Err(failed(io::Error::other("it is no file that can be opened again")));
    }
    let written = if path.exists() { path } else { path.parent().unwrap_or(path) };
    rustix::fs::access(written, rustix::fs::Access::WRITE_OK).map_err(|why| failed(why.into()))
}

#[cfg(test)]
mod tests;
