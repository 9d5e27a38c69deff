//! The exec tool of an agent harness. A command has a time to end in and a time to say something
//! in; its output is capped; no process that holds a pipe makes the tool hang; and what a session
//! has started ends with it.
//!
//! ```text
//! cargo run --release -p fullstop --example exec_tool
//! ```
//!
//! Read [`Session`] first: it is the tool. The rest is a harness that uses it.

use fullstop::{Command, Error, Exit, Group, Process, Ready, Reason, Result, Run, Runs, Stdin};
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// How much of each stream is kept: its head and its tail. No log can be smaller.
const KEPT: u64 = 64 << 10;
/// How long a command may save its work before it is killed.
const LADDER: &str = "term@tree:30s,kill";
/// When a command is dead and somebody outside of it still holds its output open.
const DRAIN_QUIET: Duration = Duration::from_millis(200);
const DRAIN_MOST: Duration = Duration::from_secs(1);
/// How often it is looked for what the library does not tell.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Longer than any command here takes.
const PATIENCE: Duration = Duration::from_mins(1);

/// The commands of one session of an agent. What is in it ends when it is closed.
struct Session {
    group: Group,
    /// With the limits that all of its commands have.
    shell: Command,
}

/// What the agent is told.
#[derive(Debug)]
struct ExecResult {
    exit: Option<Exit>,
    /// Which of its clocks has ended it, if one has.
    timed_out: Option<Reason>,
    /// Stdout and stderr in order of time.
    output: String,
    /// How many bytes of the output are missing.
    truncated: u64,
    /// What lived on when the command had exited; it was ended.
    leftovers: Vec<String>,
    /// Who outside of the command held its output open.
    holders: Vec<i32>,
}

impl Session {
    fn new(runs: &Runs, name: &str) -> Result<Session> {
        let shell = runs.command("sh").arg("-c").group(name).capture().ladder(LADDER.parse()?);
        let shell = shell.log_max(KEPT).drain(DRAIN_QUIET, DRAIN_MOST);
        Ok(Session { group: runs.group(name)?, shell })
    }

    fn command(&self, script: &str) -> Command {
        self.shell.clone().arg(script)
    }

    /// Runs a command to its end. If the future is dropped, the command is stopped.
    async fn exec(&self, script: &str, most: Duration, silent: Duration) -> Result<ExecResult> {
        let command = self.command(script).timeout(most).no_output_timeout(silent);
        Session::result(command.spawn().await?).await
    }

    /// What came of a command, once nothing of it is alive. If the future is dropped, the last
    /// handle of the run goes with it, and the run is stopped.
    async fn result(run: Run) -> Result<ExecResult> {
        let report = run.wait().await?;
        let (mut output, mut truncated) = (String::new(), 0);
        let mut lines = run.logs().lines();
        while let Some(line) = lines.next().await? {
            truncated += line.missing;
            output.push_str(&line.text());
            output.push_str(if line.has_newline { "\n" } else { "" });
        }
        let clocks = [Reason::OverallTimeout, Reason::NoOutputTimeout];
        Ok(ExecResult {
            exit: report.exit,
            timed_out: clocks.into_iter().find(|clock| report.reason() == *clock),
            output,
            truncated,
            leftovers: report.leftovers.iter().map(|member| member.command.clone()).collect(),
            holders: report.holders.iter().map(|holder| holder.pid).collect(),
        })
    }
}

/// What an agent asks of its tool in one session.
async fn harness(session: &Session) -> Result<()> {
    let done = session.exec("echo built; echo warning >&2; exit 3", PATIENCE, PATIENCE).await?;
    println!("an exit: {done:?}");
    assert_eq!((done.exit, done.timed_out), (Some(Exit::Code(3)), None));
    assert!(done.output.contains("built\n") && done.output.contains("warning\n"));

    // The command is asked before it is killed, so that it can save its work.
    let saves = "trap 'echo work saved; exit 1' TERM; while :; do echo busy; sleep 0.1; done";
    let done = session.exec(saves, Duration::from_secs(1), PATIENCE).await?;
    println!("too long: {:?}, its last line: {:?}", done.timed_out, done.output.lines().last());
    assert_eq!(done.timed_out, Some(Reason::OverallTimeout));
    assert!(done.output.is_empty() || done.output.contains("work saved\n"), "{done:?}");

    let silent = Duration::from_millis(500);
    let done = session.exec("printf 'password: '; sleep 300", PATIENCE, silent).await?;
    println!("too silent: {:?}, at {:?}", done.timed_out, done.output);
    assert_eq!(done.timed_out, Some(Reason::NoOutputTimeout));

    let done = session.exec("seq 1 100000", PATIENCE, PATIENCE).await?;
    println!("too much: {} bytes and {} more", done.output.len(), done.truncated);
    assert!(done.truncated > 0 && done.output.len() as u64 <= KEPT);
    assert!(done.output.starts_with("1\n2\n") && done.output.ends_with("\n100000\n"));

    // Its grandchild holds the pipe, in a session of its own. Others wait for it, for 300 s.
    let done = session.exec("setsid sleep 300 & echo done", PATIENCE, PATIENCE).await?;
    println!("left behind: {:?}", done.leftovers);
    assert_eq!((&*done.output, done.leftovers.len()), ("done\n", 1));
    Ok(())
}

/// A process that is none of the command's holds the pipe. It is drained for a second at most,
/// and named, and left alone.
async fn held_from_outside(session: &Session) -> Result<()> {
    let run = session.command("echo at work; read line").stdin(Stdin::Pipe).spawn().await?;
    let leader = run.processes().await?[0].pid;
    let script = format!("exec sleep 300 >/proc/{leader}/fd/1");
    let mut outside = std::process::Command::new("sh");
    let mut outside = outside.args(["-c", &script]).spawn().expect("a process outside");
    // It has opened the pipe before it becomes its command.
    let comm = format!("/proc/{}/comm", outside.id());
    let is_there = || std::fs::read_to_string(&comm).is_ok_and(|name| name == "sleep\n");
    let done = async {
        comes_true("the process outside has not begun", is_there).await;
        run.close_stdin().await?;
        Session::result(run).await
    };
    let done = done.await;
    assert!(is_there(), "a stranger was ended");
    outside.kill().and_then(|()| outside.wait()).expect("the process outside ends");
    let done = done?;
    println!("held from outside: {:?}, by {:?}", done.output, done.holders);
    assert_eq!((&*done.output, &*done.holders), ("at work\n", &[outside.id().cast_signed()][..]));
    Ok(())
}

/// The two ways to cancel, and the end of the session.
async fn cancels(session: &Session) -> Result<()> {
    let at_work = Ready::Line("at work".to_owned());
    // This cancel waits for the end. What lives after half a second is killed.
    let deaf = "trap '' TERM; echo at work; while :; do sleep 300; done";
    let run = session.command(deaf).spawn().await?;
    run.wait_ready(&at_work, PATIENCE).await?;
    let report = run.stop_within(Duration::from_millis(500)).await?;
    println!("cancelled: {}, {} ms", report.state.word(), report.elapsed_ms);
    assert!(report.is_proven());

    // This cancel does not wait: the call is dropped, as soon as its command is at work, and the
    // run is stopped by its ladder.
    let seen = async {
        loop {
            if let Some(run) = session.group.members().await?.pop() {
                run.wait_ready(&at_work, PATIENCE).await?;
                return run.processes().await;
            }
            sleep(LOOK_EVERY).await;
        }
    };
    let dropped = tokio::select! {
        ended = session.exec("echo at work; exec sleep 300", PATIENCE, PATIENCE) => {
            panic!("it has not waited for the cancel: {ended:?}")
        }
        processes = seen => processes?,
    };
    comes_true("a dropped call goes on", || !dropped.iter().any(lives)).await;

    // A server, which the agent has left to itself. It ends with the session.
    let server = session.command("echo at work; setsid sleep 300 & wait").start().await?;
    server.wait_ready(&at_work, PATIENCE).await?;
    let processes = server.processes().await?;
    let closed = session.group.close().await?;
    println!("session closed, with {} still in it", closed.reports.len());
    assert!(closed.is_clean(), "{closed:?}");
    assert!(!processes.iter().any(lives), "something outlives its session");
    let refused = session.exec("echo never", PATIENCE, PATIENCE).await;
    assert!(matches!(refused, Err(Error::GroupClosed { .. })), "{refused:?}");
    println!("and nothing more starts in it: {}", refused.expect_err("it is closed"));
    Ok(())
}

/// Looks until this is so, which the library knows nothing of.
async fn comes_true(otherwise: &str, is_true: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_true() {
        assert!(began.elapsed() < PATIENCE, "{otherwise}");
        sleep(LOOK_EVERY).await;
    }
}

/// Whether it lives. A zombie does not.
fn lives(process: &Process) -> bool {
    let path = format!("/proc/{}/stat", process.pid);
    let stat = std::fs::read_to_string(path).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, behind)| !behind.starts_with(['Z', 'X']))
}

#[tokio::main]
pub async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let state = std::env::temp_dir().join(format!("fullstop-exec-tool-{}", std::process::id()));
    let session = Session::new(&Runs::at(&state)?, "session-1")?;
    harness(&session).await?;
    held_from_outside(&session).await?;
    cancels(&session).await?;
    std::fs::remove_dir_all(&state)?;
    Ok(())
}
