//! The next generation of a run: what it needs is looked at while the last one lives.

use crate::command::{ask, commission_run};
use crate::error::{Error, Result};
use crate::host::Recruit;
use crate::run::Run;
use crate::secret::SecretFile;
use fullstop_cage::linux::check_program;
use fullstop_cage::plain;
use fullstop_core::ladder::Ladder;
use fullstop_keeper::commission::Commission;
use fullstop_keeper::{Ground, HostPolicy, Secret};
use fullstop_store::format::SpecFile;
use fullstop_store::{AskedGroup, GroupName, Output, Reserve, Stdin, Streams, Tag, Text};
use std::io;
use std::path::{Path, PathBuf};

pub(crate) async fn restart(run: &Run) -> Result<Run> {
    let needs = Needs::take(run).map_err(|why| Error::LeftAlone(Box::new(why)))?;
    let report = run.stop().await?;
    if !report.is_proven() {
        let why = format!("run {} is {}; it is not started again", run.id(), report.state);
        return Err(Error::Unfit(why));
    }
    let begun = needs.begin(run).await;
    begun.map_err(|why| Error::NotAgain { report: Box::new(report), why: Box::new(why) })
}

/// What the next generation needs, and what could be taken of it beforehand.
struct Needs {
    asked: Option<AskedGroup>,
    secrets: Vec<Secret>,
    room: Reserve,
    recruit: Recruit,
}

impl Needs {
    fn take(run: &Run) -> Result<Needs> {
        let (runs, spec) = (run.runs(), run.spec()?);
        check_place(&spec)?;
        let group: Option<GroupName> = spec.group.as_deref().map(str::parse).transpose()?;
        Ok(Needs {
            asked: ask(group.as_ref(), runs.store())?,
            secrets: read_again(&spec)?,
            room: runs.store().reserve(run.id())?,
            recruit: Recruit::spawn(&runs.keeper()?, &Tag::new(run.id(), runs.path()))?,
        })
    }

    async fn begin(self, run: &Run) -> Result<Run> {
        let (runs, spec) = (run.runs(), run.spec()?);
        drop(self.room);
        let commission = Commission {
            id: spec.id,
            name: spec.name,
            group: spec.group,
            group_generations: self.asked.as_ref().map(|asked| asked.generations.clone()),
            generation: spec.generation + 1,
            argv: spec.argv,
            env: spec.env,
            cwd: spec.cwd,
            cage: spec.cage,
            on_host_exit: HostPolicy::Ignore,
            report: None,
            store: runs.path().as_os_str().to_owned().into(),
            ground: Ground::Back,
            streams: in_the_background(spec.streams, &spec.plan.ladder),
            plan: spec.plan,
            secrets: self.secrets,
            // Whoever had them open for the first generation is gone.
            keep_fds: Vec::new(),
        };
        commission_run(runs, self.recruit, commission).await
    }
}

/// Looks whether the command's working directory, program and input are there.
fn check_place(spec: &SpecFile) -> Result<()> {
    let path = |text: &Text| PathBuf::from(&text.0);
    let cwd = spec.cwd.as_ref().map(path);
    let failed = |what: &str, path: &Path, why: &io::Error| {
        Err(Error::Unfit(format!("cannot {what} {}: {}", path.display(), plain(why))))
    };
    if let Some(cwd) = &cwd
        && let Err(why) = std::fs::metadata(cwd.join("."))
    {
        return failed("enter working directory", cwd, &why);
    }
    if let Stdin::File(input) = &spec.streams.stdin {
        let input = path(input);
        if let Err(why) = rustix::fs::access(&input, rustix::fs::Access::READ_OK) {
            return failed("read stdin from", &input, &why.into());
        }
    }
    let searched = spec.env.iter().find(|(key, _)| key.0 == "PATH").map(|(_, value)| &*value.0);
    let program = spec.argv.first().map(|word| word.0.clone()).unwrap_or_default();
    check_program(&program, searched, cwd.as_deref())
        .map_err(|why| Error::Failed { status: why.status(), why: why.to_string() })
}

/// The streams of a run whose host, and whatever that gave it, is gone.
fn in_the_background(mut streams: Streams, ladder: &Ladder) -> Streams {
    if matches!(streams.output, Output::Inherit | Output::Show) {
        streams.output = Output::Log;
    }
    if streams.stdin == Stdin::Inherit {
        streams.stdin = if ladder.needs_stdin() { Stdin::Pipe } else { Stdin::Null };
    }
    streams
}

fn read_again(spec: &SpecFile) -> Result<Vec<Secret>> {
    let file = |(name, path): &(Text, Text)| SecretFile {
        name: name.0.to_string_lossy().into_owned(),
        path: PathBuf::from(&path.0),
    };
    let read = |secret| file(secret).read_again();
    spec.secrets.iter().map(read).collect()
}

#[cfg(test)]
mod tests;
