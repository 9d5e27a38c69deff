//! process-wrap: a process group, killed as a group.

use std::process::ExitCode;

use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop, ProcessGroup};
use tokio::signal::unix::{SignalKind, signal};

use crate::{GRACE, Outcome};

const SIGTERM: i32 = 15;

fn start(words: &[&str]) -> Outcome<Box<dyn ChildWrapper>> {
    let [program, args @ ..] = words else {
        return Err("no command".into());
    };
    Ok(CommandWrap::with_new(program, |command| {
        command.args(args);
    })
    .wrap(ProcessGroup::leader())
    .wrap(KillOnDrop)
    .spawn()?)
}

pub async fn once(words: &[&str]) -> Outcome<()> {
    start(words)?.wait().await?;
    Ok(())
}

pub async fn run(words: &[&str]) -> Outcome<ExitCode> {
    let mut asked = signal(SignalKind::terminate())?;
    let mut child = start(words)?;
    let ended = tokio::select! {
        status = child.wait() => Some(status?),
        _ = asked.recv() => None,
    };
    if let Some(status) = ended {
        let code = status.code().and_then(|code| u8::try_from(code).ok());
        return Ok(code.map_or(ExitCode::FAILURE, ExitCode::from));
    }
    child.signal(SIGTERM)?;
    if tokio::time::timeout(GRACE, child.wait()).await.is_err() {
        Box::into_pin(child.kill()).await?;
    }
    Ok(ExitCode::FAILURE)
}
