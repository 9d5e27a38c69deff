//! A desktop app with several agents: a line of output appears as it is written, a board shows how
//! every agent stands, a Stop button says what it waits for, and the next turn of an agent begins
//! only when nothing of the turn before it is alive.
//!
//! ```text
//! cargo run --release -p fullstop --example agent_manager
//! ```
//!
//! Small shell scripts stand in for the agents. Read [`stop_button`] and [`auto_run`] first.

use fullstop::{Change, Error, Lines, Progress, Ready, Report, Result, Run, RunState, Runs, Watch};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// All agents of this app. What is closed as a group can start nothing more.
const AGENTS: &str = "agents";
/// How long a stop may go on before the Stop button kills.
const UNCONFIRMED: Duration = Duration::from_secs(3);
/// How long an agent may save its work, unless the Stop button kills it.
const GRACE: Duration = Duration::from_secs(30);
/// How long an agent may take until it is at work.
const PATIENCE: Duration = Duration::from_mins(1);

/// It saves its work when it is asked to end.
const TIDY: &str = "trap 'echo work saved; exit' TERM; echo at work; sleep 300 & wait";
/// Neither it nor its child hears a request.
const DEAF: &str = "trap '' TERM INT; echo at work; while :; do sleep 300; done";
/// Each turn leaves a server behind, in a session of its own. The last turn has no end.
const TURNS: [&str; 4] = [
    "setsid sleep 300 & echo planned",
    "setsid sleep 300 & echo built",
    "setsid sleep 300 & echo at work; exec sleep 300",
    "echo never reached",
];

/// The Stop button: it shows each state of the stop, and kills what was not confirmed in time.
///
/// A stop that is dropped goes on. So `select!` only stops listening to it, and the kill takes
/// the same run to its last step, at once.
async fn stop_button(name: &str, run: &Run) -> Result<Report> {
    println!("[{name}] stop: asked");
    let stop = run.stop_with(|progress| match progress {
        Progress::Now(RunState::Stopping { step, left, .. }) => {
            println!("[{name}] stop: {step}, {:.0} s left", left.as_secs_f64());
        }
        Progress::GoingAround(what) => println!("[{name}] stop: {what}"),
        Progress::Now(_) => {}
    });
    let force_kill = async {
        sleep(UNCONFIRMED).await;
        println!("[{name}] stop: not confirmed for {} s, killing", UNCONFIRMED.as_secs());
        run.kill().await
    };
    let report = tokio::select! {
        report = stop => report?,
        report = force_kill => report?,
    };
    show_end(name, &report);
    Ok(report)
}

/// Starts turn after turn, each once the one before it is proven dead. Returns how many began.
///
/// The loop needs no flag that tells it of a stop: whatever starts in a closed group is refused,
/// also if it was about to start while the group was closed.
async fn auto_run(runs: Runs) -> Result<usize> {
    let mut began = 0;
    for turn in TURNS {
        let run = match start(&runs, "turns", turn).await {
            Ok(run) => run,
            Err(Error::GroupClosed { .. }) => break,
            Err(error) => return Err(error),
        };
        began += 1;
        // Returns behind the last process of the turn, not behind its leader.
        let report = run.wait().await?;
        show_end("turns", &report);
        if !report.is_proven() {
            break;
        }
        let left = report.leftovers.iter().map(|member| (member.pid, member.start_ticks));
        assert!(!left.into_iter().any(lives), "the next turn would meet the server of this one");
    }
    Ok(began)
}

/// The app, from its first agent to its last proof.
async fn app(runs: &Runs) -> Result<()> {
    let board = tokio::spawn(show_states(runs.watch().group(AGENTS)));
    let mut outputs = JoinSet::new();

    let tidy = start(runs, "tidy", TIDY).await?;
    let deaf = start(runs, "deaf", DEAF).await?;
    let turns = tokio::spawn(auto_run(runs.clone()));
    for (name, run) in [("tidy", &tidy), ("deaf", &deaf)] {
        // What reads an output keeps no agent alive.
        outputs.spawn(show_output(name, run.logs().follow().lines()));
        run.wait_ready(&Ready::Line("at work".to_owned()), PATIENCE).await?;
    }

    // The user stops one agent. The others go on.
    let processes = [processes(&tidy).await?, processes(&deaf).await?].concat();
    let report = stop_button("deaf", &deaf).await?;
    assert_eq!(report.steps.last().map(|step| &*step.step), Some("kill"));
    assert!(tidy.status().await?.live, "the wrong agent was stopped");

    // The user closes the app.
    println!("closing the app");
    let closed = runs.group(AGENTS)?.close().await?;
    assert!(closed.is_clean(), "{closed:?}");
    for report in &closed.reports {
        show_end(report.name.as_deref().unwrap_or("?"), report);
    }
    assert!(!processes.into_iter().any(lives), "something of an agent lives on");
    let began = turns.await.expect("the turns")?;
    println!("turns: {began} of {} began", TURNS.len());
    assert!(began < TURNS.len(), "a turn began in a closed group");

    // Outputs end with their runs, behind the last line that was written.
    let last_lines: Vec<_> = outputs.join_all().await.into_iter().collect::<Result<_>>()?;
    assert!(last_lines.contains(&("tidy", "work saved".to_owned())), "{last_lines:?}");
    // A watch never ends by itself, and makes a journal anew that was removed under it.
    board.abort();
    assert!(board.await.is_err_and(|end| end.is_cancelled()), "the board had an end of its own");
    Ok(())
}

/// Starts an agent, which is captured, and ends with this app.
async fn start(runs: &Runs, name: &'static str, script: &str) -> Result<Run> {
    let agent = runs.command("sh").args(["-c", script]).name(name).group(AGENTS);
    agent.grace(GRACE).capture().spawn().await
}

/// The board: how all agents stand, whenever that changes.
async fn show_states(mut watch: Watch) -> Result<()> {
    loop {
        match watch.next().await? {
            Change::Snapshot { runs, .. } => println!("board: {} agents", runs.len()),
            Change::Run { run } => {
                let (name, step) = (run.name.as_deref().unwrap_or("?"), run.step.as_deref());
                println!("board: {name} is {} {}", run.state, step.unwrap_or_default());
            }
            _ => {}
        }
    }
}

/// One output, line by line, until its run is over. Returns the last line.
async fn show_output(name: &'static str, mut lines: Lines) -> Result<(&'static str, String)> {
    let mut last = String::new();
    while let Some(line) = lines.next().await? {
        println!("[{name}] {}", line.text());
        last = line.text().into_owned();
    }
    Ok((name, last))
}

fn show_end(name: &str, report: &Report) {
    let (state, reason, left) = (report.state.word(), report.reason(), report.leftovers.len());
    let proof = report.proof.as_ref().map_or("none".to_owned(), ToString::to_string);
    println!("[{name}] {state}: {reason}, {left} left behind, proof {proof}");
}

/// Who is in a run now.
async fn processes(run: &Run) -> Result<Vec<(i32, u64)>> {
    let pids = run.processes().await?.into_iter().map(|process| process.pid);
    Ok(pids.filter_map(|pid| Some((pid, born(pid)?))).collect())
}

/// Whether this process lives, and not another one that has its pid now.
fn lives((pid, start_ticks): (i32, u64)) -> bool {
    born(pid) == Some(start_ticks)
}

/// When whoever lives under this pid was born, in ticks. A zombie does not live.
fn born(pid: i32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Behind the name, which may hold anything: the state first, the birth as the 20th.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let is_dead = matches!(fields.next()?, "Z" | "X");
    fields.nth(18).filter(|_| !is_dead)?.parse().ok()
}

#[tokio::main]
pub async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let state = std::env::temp_dir().join(format!("fullstop-agent-manager-{}", std::process::id()));
    app(&Runs::at(&state)?.with_app("agent-manager")?).await?;
    std::fs::remove_dir_all(&state)?;
    Ok(())
}
