//! `fullstop demo`: a hostile little agent, shown, stopped, and proven dead.

use crate::fail::Fail;
use crate::print::print;
use crate::ps::picture;
use fullstop::{Command, HostPolicy, Process, Report, Run, Runs};
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// What agents really do: tools in sessions of their own, servers that detach,
/// that scrub their environment, that do not listen. Each says when it is up, and
/// none lives longer than a minute even without us.
const AGENT: &str = r#"
tool='echo up; exec sleep 60'
setsid sh -c "$tool" &
sh -c "trap '' TERM INT HUP; $tool" &
(setsid sh -c "$tool" &)
(env -i PATH="$PATH" setsid sh -c "trap '' TERM; $tool" &)
echo up
wait
"#;
const UP: usize = 5;
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(5);

pub async fn demo() -> Result<(), Fail> {
    let dir = std::env::temp_dir().join(format!("fullstop-demo-{}", std::process::id()));
    let shown = match Runs::at(&dir) {
        Ok(runs) => show(&runs).await,
        Err(error) => Err(error.into()),
    };
    let _ = std::fs::remove_dir_all(&dir);
    shown
}

async fn show(runs: &Runs) -> Result<(), Fail> {
    print(
        "A hostile little agent: tools in sessions of their own, a daemon, one with an\n\
         empty environment, one deaf to TERM.\n\n\
         $ fullstop start --name demo --grace 1s -- sh -c '…'\n\n",
    )?;
    let command = Command::new("sh").args(["-c", AGENT]).name("demo").runs(runs);
    let command = command.grace(Duration::from_secs(1)).on_host_exit(HostPolicy::Stop);
    let run = command.start().await?;
    wait_until_up(&run).await?;
    let tree = run.processes().await?;
    print(&format!("$ fullstop tree demo\n\n{}\n$ fullstop stop demo\n\n", picture(&run).await?))?;
    print(&told(&run.stop().await?))?;
    let alive = tree.iter().filter(|process| is_alive(process)).count();
    print(&format!("\nLooked for in /proc: {alive} of {} alive.\n", tree.len()))
}

async fn wait_until_up(run: &Run) -> Result<(), Fail> {
    let until = Instant::now() + PATIENCE;
    while run.output().await?.0.split(|&byte| byte == b'\n').count() <= UP {
        if Instant::now() > until {
            return Err("the demo's agent did not come up".into());
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    Ok(())
}

/// By the kernel's word, not by ours.
fn is_alive(process: &Process) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.pid));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

fn told(report: &Report) -> String {
    let mut text = "The report:\n".to_owned();
    for step in &report.steps {
        let (at, alive, told) = (step.at_ms, step.alive, step.signalled);
        let _ = writeln!(text, "  {at:>5} ms  {:<14} {alive} alive, {told} signalled", step.step);
    }
    let proof = report.proof.as_ref().map_or("none".to_owned(), ToString::to_string);
    let (at, state, reason) = (report.elapsed_ms, report.state.word(), report.reason());
    let _ = writeln!(text, "  {at:>5} ms  {state}: {reason}, proof: {proof}");
    text
}
