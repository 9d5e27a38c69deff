//! One job in a pid namespace of its own: a run without a cgroup loses keeper
//! and guard, and is searched for among many processes.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use fullstop_bench::clock::now_ns;
use fullstop_bench::results::{Sample, Sweep};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::child::Watched;
use crate::fifo::Fifo;
use crate::{Outcome, proc};

/// The word that makes this program read all of /proc; see [`raw_read`].
pub const RAW_READ: &str = "raw-read";
/// The command of the lost run ends itself after this many seconds.
const LIFE: &str = "600";
/// What one `bench-tree` can be.
const TREE: usize = 2000;
const PATIENCE: Duration = Duration::from_secs(30);
const AGAIN: Duration = Duration::from_millis(1);

#[derive(Serialize, Deserialize)]
pub struct Job {
    pub fullstop: PathBuf,
    pub tree: PathBuf,
    pub fifo: PathBuf,
    pub state: PathBuf,
    pub processes: usize,
    pub rounds: usize,
    pub answer: PathBuf,
}

pub fn lost(job: &Path) -> Outcome<()> {
    let job: Job = serde_json::from_slice(&std::fs::read(job)?)?;
    // It comes first: whoever is older than it need not be looked at.
    let leader = job.lose()?;
    let trees = job.populate()?;
    let (dry_run, raw_read) = job.race()?;

    let start = now_ns();
    let swept = job.sweep(&["sweep", "--json"])?;
    let sweep_ns = now_ns() - start;
    if swept["found"]["found"] != "ended" {
        return Err(format!("the sweep said {swept}").into());
    }
    let alive = proc::living().iter().filter(|seen| seen.pid == leader).count();
    let listed = std::fs::read_dir(job.state.join("live"))?.count();
    let answer =
        Sweep { processes: job.processes, dry_run, raw_read, sweep_ns, left: alive + listed };
    std::fs::write(&job.answer, serde_json::to_vec(&answer)?)?;
    // The trees end with the namespace.
    drop(trees);
    Ok(())
}

impl Job {
    fn fullstop(&self, words: &[&str]) -> Outcome<Output> {
        let output = Command::new(&self.fullstop)
            .args(words)
            .env("FULLSTOP_DIR", &self.state)
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()?;
        if !output.status.success() {
            return Err(format!("`fullstop {}`: {}", words.join(" "), output.status).into());
        }
        Ok(output)
    }

    /// Starts a run and takes keeper and guard from it. Returns its leader.
    fn lose(&self) -> Outcome<u32> {
        let started = self.fullstop(&["start", "--cage", "tree", "--", "sleep", LIFE])?;
        let id = String::from_utf8(started.stdout)?.trim().to_owned();
        let record = running(&self.state.join("runs").join(&id).join("record.json"))?;
        let leader = record["leader"]["pid"].as_u64().ok_or("the record names no leader")?;
        let both = ["guard", "keeper"].map(|who| self.hold(who, &record[who]));
        let both = both.into_iter().collect::<Outcome<Vec<_>>>()?;
        // Neither of them shall see the other one die. The guard comes first: it wakes
        // a keeper that is stopped, and is woken by the death of one.
        for (pid, pidfd) in &both {
            pidfd_send_signal(pidfd, Signal::STOP)?;
            wait_until("to be stopped", || proc::state(*pid) == Some('T'))?;
        }
        for (_, pidfd) in &both {
            pidfd_send_signal(pidfd, Signal::KILL)?;
        }
        wait_until("to be dead", || both.iter().all(|(pid, _)| proc::state(*pid).is_none()))?;
        let leader = u32::try_from(leader)?;
        if proc::state(leader).is_none() {
            return Err("the run ended with its keeper and guard".into());
        }
        Ok(leader)
    }

    /// The process that the record means, and no other: of our own namespace, with
    /// the start time that was written down, running fullstop.
    fn hold(&self, who: &str, identity: &Value) -> Outcome<(u32, OwnedFd)> {
        let nobody = || format!("the record's {who} is not there");
        let pid = identity["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
        let pid = pid.ok_or_else(nobody)?;
        let held = Pid::from_raw(i32::try_from(pid)?).ok_or_else(nobody)?;
        let pidfd = pidfd_open(held, PidfdFlags::empty())?;
        let link = |of: &str, name: &str| std::fs::read_link(format!("/proc/{of}/{name}"));
        let of = pid.to_string();
        let ours = link(&of, "ns/pid")? == link("self", "ns/pid")?;
        let runs_fullstop = link(&of, "exe")? == self.fullstop;
        let as_recorded = proc::start_ticks(pid) == identity["start_ticks"].as_u64();
        if !(ours && runs_fullstop && as_recorded) {
            return Err(nobody().into());
        }
        Ok((pid, pidfd))
    }

    fn populate(&self) -> Outcome<Vec<Watched>> {
        let mut fifo = Fifo::make(&self.fifo)?;
        let mut trees = Vec::new();
        let mut missing = self.processes;
        while missing > 0 {
            let size = missing.min(TREE);
            missing -= size;
            let tree = self.tree.display().to_string();
            let words = [tree, fifo.path().to_owned(), size.to_string()];
            trees.push(Watched::spawn(&words, &[])?);
            fifo.read_line(PATIENCE)?;
        }
        Ok(trees)
    }

    /// A dry sweep and a raw read in turn, each as a program of its own.
    fn race(&self) -> Outcome<(Sample, Sample)> {
        let mut sweeps = Vec::new();
        let mut reads = Vec::new();
        // The first round warms up and is not counted.
        for round in 0..=self.rounds {
            let start = now_ns();
            let swept = self.sweep(&["sweep", "--dry-run", "--json"])?;
            let sweep = now_ns() - start;
            if swept["found"]["found"] != "would-end" || swept["found"]["alive"] != 1 {
                return Err(format!("the dry sweep said {swept}").into());
            }
            let start = now_ns();
            let output = Command::new(std::env::current_exe()?).arg(RAW_READ).output()?;
            let read = now_ns() - start;
            let seen: usize = String::from_utf8(output.stdout)?.trim().parse()?;
            if seen < self.processes {
                return Err(format!("{seen} processes are left of {}", self.processes).into());
            }
            if round > 0 {
                sweeps.push(sweep);
                reads.push(read);
            }
        }
        Sample::of(sweeps).zip(Sample::of(reads)).ok_or_else(|| "nothing was measured".into())
    }

    /// What a sweep says of the one lost run.
    fn sweep(&self, words: &[&str]) -> Outcome<Value> {
        let swept: Vec<Value> = serde_json::from_slice(&self.fullstop(words)?.stdout)?;
        let [one] = <[Value; 1]>::try_from(swept)
            .map_err(|all| format!("the sweep found {} runs", all.len()))?;
        Ok(one)
    }
}

/// The record, once it says that the run runs.
fn running(record: &Path) -> Outcome<Value> {
    let mut read = Value::Null;
    wait_until("to run", || {
        let text = std::fs::read(record).unwrap_or_default();
        read = serde_json::from_slice(&text).unwrap_or_default();
        read["state"] == "running"
    })?;
    Ok(read)
}

fn wait_until(what: &str, mut reached: impl FnMut() -> bool) -> Outcome<()> {
    let deadline = Instant::now() + PATIENCE;
    while !reached() {
        if Instant::now() >= deadline {
            return Err(format!("waited {} s for somebody {what}", PATIENCE.as_secs()).into());
        }
        std::thread::sleep(AGAIN);
    }
    Ok(())
}

/// The least that anybody pays who looks at all processes: opens, reads to the end
/// and closes `stat` and `environ` of each. Prints how many there were.
pub fn raw_read() -> Outcome<()> {
    let mut buffer = vec![0; 16 * 1024];
    let mut seen = 0;
    for entry in std::fs::read_dir("/proc")?.flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        for file in ["stat", "environ"] {
            // Whoever has gone meanwhile has nothing to read.
            if let Ok(mut file) = File::open(format!("/proc/{pid}/{file}")) {
                while matches!(file.read(&mut buffer), Ok(1..)) {}
            }
        }
        seen += 1;
    }
    println!("{seen}");
    Ok(())
}
