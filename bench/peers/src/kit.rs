//! processkit: a cgroup where one can be had, else a process group.

use std::process::ExitCode;

use processkit::{Command, ProcessGroup, RunningProcess, StdioMode};
use tokio::signal::unix::{SignalKind, signal};

use crate::{GRACE, Outcome};

async fn start(group: &ProcessGroup, words: &[&str]) -> Outcome<RunningProcess> {
    let [program, args @ ..] = words else {
        return Err("no command".into());
    };
    // Its default is to capture the output; nobody else here does.
    let command = Command::new(program)
        .args(args)
        .inherit_stdin()
        .stdout(StdioMode::Inherit)
        .stderr(StdioMode::Inherit);
    Ok(group.start(&command).await?)
}

pub async fn once(words: &[&str]) -> Outcome<()> {
    let group = ProcessGroup::new()?;
    start(&group, words).await?.wait().await?;
    Ok(())
}

pub async fn run(words: &[&str]) -> Outcome<ExitCode> {
    let mut asked = signal(SignalKind::terminate())?;
    let group = ProcessGroup::new()?;
    // Kept until the stop is over: to drop it would kill the leader at once.
    let over = start(&group, words).await?.wait();
    tokio::pin!(over);
    let ended = tokio::select! {
        outcome = &mut over => Some(outcome?),
        _ = asked.recv() => None,
    };
    if let Some(outcome) = ended {
        let code = outcome.code().and_then(|code| u8::try_from(code).ok());
        return Ok(code.map_or(ExitCode::FAILURE, ExitCode::from));
    }
    group.stop(GRACE, true).await?;
    Ok(ExitCode::FAILURE)
}
