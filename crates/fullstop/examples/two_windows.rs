//! Two windows of one application. One of them crashes, and takes with it all that watched over
//! its agent. It is opened again, and tidies up: what its predecessor has left without anybody
//! ends, what was meant to live on is taken over, and the other window's runs are not touched.
//!
//! ```text
//! cargo run --release -p fullstop --example two_windows
//! ```
//!
//! Read [`tidy_up`] first: it is all that an application needs. The rest is the application, and
//! the crash.

use fullstop::{HostPolicy, HostedBy, Run, Runs};
use std::error::Error;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

const APP: &str = "two-windows";
/// A run with this label is to outlive the window that has started it.
const LIVES_ON: (&str, &str) = ("lives-on", "yes");

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

pub fn main() -> Outcome {
    // First of all: this program may have been started anew as the keeper of a run.
    fullstop::init();
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["window", state] => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(window(Path::new(state)))
        }
        _ => desktop(),
    }
}

/// What a window does first: it looks for runs of this application whose window is dead.
///
/// Whose a run is, the kernel says: the process that was written down as its host is compared by
/// pid, start time and inode. So a pid that was used again is no living window, and a window that
/// was opened a moment ago is no dead one.
async fn tidy_up(runs: &Runs) -> fullstop::Result<Vec<Run>> {
    // Runs that nobody looks after any more: their keeper and their guard were killed as well.
    for swept in runs.sweep_of(APP).await? {
        println!("swept {}", swept.id);
    }
    let mut taken_over = Vec::new();
    for found in runs.of(APP).await? {
        match found.hosted_by {
            HostedBy::Predecessor if found.status.labels.get(LIVES_ON.0) == Some(LIVES_ON.1) => {
                println!("adopted {}", found.run.id());
                taken_over.push(found.run.adopt(HostPolicy::Stop).await?);
            }
            HostedBy::Predecessor => {
                println!("stopped {}", found.run.id());
                found.run.stop().await?;
            }
            // Our own; or that of another window, which lives; or nobody can tell.
            _ => {}
        }
    }
    Ok(taken_over)
}

/// One window: it tidies up, starts an agent and, if it has taken over none, a server. It ends
/// when its stdin does, and its runs end with it.
async fn window(state: &Path) -> Outcome {
    let runs = Runs::at(state)?.with_app(APP)?;
    let taken_over = tidy_up(&runs).await?;
    // Agents put their workers into sessions of their own, as this one does.
    let script = "setsid sleep 300 & echo agent at work; exec sleep 300";
    let agent = runs.command("sh").args(["-c", script]).spawn().await?;
    println!("agent {}", agent.id());
    let server = match taken_over.into_iter().next() {
        Some(server) => server,
        None => {
            let server = runs.command("sleep").arg("300");
            server.label(LIVES_ON.0, LIVES_ON.1).start().await?
        }
    };
    println!("server {}", server.id());
    std::io::stdin().read_to_end(&mut Vec::new())?;
    agent.stop().await?;
    server.stop().await?;
    Ok(())
}

/// The application: it opens two windows, lets one crash, and opens it again.
fn desktop() -> Outcome {
    let state = std::env::temp_dir().join(format!("fullstop-two-windows-{}", std::process::id()));
    let runs = Runs::at(&state)?;
    let first = Window::open(&runs)?;
    let second = Window::open(&runs)?;
    let agent = members(&first.agent)?;
    let server = members(&first.server)?;
    let others = [members(&second.agent)?, members(&second.server)?].concat();
    println!("two windows, each with an agent and a server");

    let crashed = first.crash()?;
    assert!(agent.iter().all(Process::lives), "nobody was there to end the agent");
    assert!(!crashed.agent.status()?.live, "its keeper and its guard are dead");
    println!("the first window has crashed, and its agent goes on without anybody");

    let again = Window::open(&runs)?;
    assert!(!agent.iter().any(Process::lives), "something of the agent was left");
    assert!(server.iter().all(Process::lives), "the server was meant to live on");
    assert_eq!(again.server.id(), crashed.server.id(), "and it has another host");
    assert!(others.iter().all(Process::lives), "the second window was touched");
    println!("it was opened again: its agent is gone, its server is its own again");

    let new_agent = members(&again.agent)?;
    assert!(again.close()?.success());
    assert!(!server.iter().chain(&new_agent).any(Process::lives), "it is closed");
    assert!(others.iter().all(Process::lives), "the second window was touched");
    assert!(second.close()?.success());
    assert!(!others.iter().any(Process::lives) && runs.live_ids()?.is_empty());
    println!("both are closed, and nothing is left");
    std::fs::remove_dir_all(&state)?;
    Ok(())
}

/// A window as the desktop sees it.
struct Window {
    process: Child,
    agent: Run,
    server: Run,
}

/// What is left of a window.
struct Crashed {
    agent: Run,
    server: Run,
}

impl Window {
    /// Returns once its runs have begun.
    fn open(runs: &Runs) -> Outcome<Window> {
        let mut process = Command::new(std::env::current_exe()?)
            .arg("window")
            .arg(runs.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let said = BufReader::new(process.stdout.take().ok_or("no stdout")?).lines();
        let (mut agent, mut server, mut is_at_work) = (None, None, false);
        for line in said {
            let line = line?;
            println!("  window {}: {line}", process.id());
            match line.split_once(' ') {
                Some(("agent", "at work")) => is_at_work = true,
                Some(("agent", id)) => agent = Some(runs.find(id)?),
                Some(("server", id)) => server = Some(runs.find(id)?),
                _ => {}
            }
            if is_at_work && let (Some(agent), Some(server)) = (&agent, &server) {
                let (agent, server) = (agent.clone(), server.clone());
                return Ok(Window { process, agent, server });
            }
        }
        Err("the window has said nothing more".into())
    }

    /// It dies at once, and with it the two processes that would have ended its agent. They are
    /// stopped first, so that none sees another one die.
    fn crash(mut self) -> Outcome<Crashed> {
        let record = self.agent.record()?;
        let watchers = [record.guard.ok_or("no guard")?.pid, record.keeper.ok_or("no keeper")?.pid];
        let pids =
            [watchers[0].to_string(), watchers[1].to_string(), self.process.id().to_string()];
        for signal in ["-STOP", "-KILL"] {
            let sent = Command::new("kill").arg(signal).args(&pids).status()?;
            assert!(sent.success());
        }
        self.process.wait()?;
        while watchers.iter().any(|&pid| Process::of(pid).is_some()) {
            std::thread::yield_now();
        }
        Ok(Crashed { agent: self.agent, server: self.server })
    }

    fn close(mut self) -> Outcome<ExitStatus> {
        drop(self.process.stdin.take());
        Ok(self.process.wait()?)
    }
}

/// One process, which is not taken for another one of the same pid.
#[derive(Clone, PartialEq)]
struct Process {
    pid: i32,
    start_ticks: String,
}

impl Process {
    /// Whoever lives under this pid. A zombie does not.
    fn of(pid: i32) -> Option<Process> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // Behind the name, which may hold anything: the state first, the start time as the 20th.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let is_dead = matches!(fields.next()?, "Z" | "X");
        let start_ticks = fields.nth(18)?.to_owned();
        (!is_dead).then_some(Process { pid, start_ticks })
    }

    fn lives(&self) -> bool {
        Process::of(self.pid).as_ref() == Some(self)
    }
}

/// Who is in a run now.
fn members(run: &Run) -> Outcome<Vec<Process>> {
    let members: Vec<Process> =
        run.processes()?.iter().filter_map(|process| Process::of(process.pid)).collect();
    assert!(!members.is_empty(), "nobody is in run {}", run.id());
    Ok(members)
}
