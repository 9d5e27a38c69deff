//! One job in a pid namespace of its own: one flood, captured into a file.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use fullstop_bench::clock::now_ns;
use serde::{Deserialize, Serialize};

use crate::Outcome;
use crate::child::Watched;
use crate::fifo::Fifo;

/// As long as a flood may live.
const PATIENCE: Duration = Duration::from_mins(2);
/// How often the file is looked at: often enough for a flood of a second, and seldom
/// enough not to take part in it.
const AGAIN: Duration = Duration::from_millis(2);
/// Whoever said goodbye has gone by then.
const SETTLE: Duration = Duration::from_millis(100);

#[derive(Serialize, Deserialize)]
pub struct Job {
    pub before: Option<String>,
    pub script: String,
    pub flood: PathBuf,
    pub fifo: PathBuf,
    pub bytes: u64,
    /// Everything that is written goes there.
    pub dir: PathBuf,
    /// Everything that is started goes there.
    pub cgroup: Option<PathBuf>,
    pub answer: PathBuf,
}

/// In nanoseconds.
#[derive(Serialize, Deserialize)]
pub struct Answer {
    pub flow: u64,
    pub whole: u64,
    pub cpu: Option<u64>,
}

pub fn capture(job: &Path) -> Outcome<()> {
    let job: Job = serde_json::from_slice(&fs::read(job)?)?;
    let answer = job.run()?;
    fs::write(&job.answer, serde_json::to_vec(&answer)?)?;
    Ok(())
}

impl Job {
    fn run(&self) -> Outcome<Answer> {
        let mut fifo = Fifo::make(&self.fifo)?;
        if let Some(before) = &self.before {
            let server = Watched::start(self.shell(before))?;
            if !server.exited_within(PATIENCE)? {
                return Err("its server did not come up".into());
            }
            succeeded(server)?;
        }
        let used_before = self.used_ns()?;
        let start = now_ns();
        let (full, over) = self.watch(Watched::start(self.shell(&self.script))?)?;
        let said = fifo.read_line(PATIENCE)?;
        let (began, flood) = said.split_once(' ').ok_or("the flood said nothing useful")?;
        std::thread::sleep(SETTLE);
        let cpu = match (used_before, self.used_ns()?) {
            (Some(before), Some(after)) => Some((after - before).saturating_sub(flood.parse()?)),
            _ => None,
        };
        if largest(&self.dir) != self.bytes {
            return Err(format!("{} of {} bytes were kept", largest(&self.dir), self.bytes).into());
        }
        Ok(Answer { flow: full.saturating_sub(began.parse()?), whole: full.max(over) - start, cpu })
    }

    /// It enters the cgroup by itself, so that we need not.
    fn shell(&self, script: &str) -> Command {
        let enter = self.cgroup.as_ref().map_or(String::new(), |cgroup| {
            format!("echo 0 > '{}/cgroup.procs' || exit\n", cgroup.display())
        });
        let mut command = Command::new("sh");
        command
            .args(["-c", &(enter + script), "sh"])
            .arg(&self.flood)
            .arg(&self.fifo)
            .arg(self.bytes.to_string())
            .env("DIR", &self.dir)
            .current_dir(&self.dir)
            .stdin(Stdio::null());
        // Nobody's own settings, and nothing left behind.
        for home in
            ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"]
        {
            command.env(home, &self.dir);
        }
        command
    }

    /// When the last byte was seen in the file, and when the script was over.
    fn watch(&self, script: Watched) -> Outcome<(u64, u64)> {
        let deadline = Instant::now() + PATIENCE;
        let mut script = Some(script);
        let (mut full, mut over) = (None, None);
        loop {
            match script.take() {
                Some(running) if !running.exited_within(AGAIN)? => script = Some(running),
                Some(done) => {
                    over = Some(now_ns());
                    succeeded(done)?;
                }
                None => std::thread::sleep(AGAIN),
            }
            let size = largest(&self.dir);
            if size >= self.bytes {
                full = full.or(Some(now_ns()));
            }
            if let (Some(full), Some(over)) = (full, over) {
                return Ok((full, over));
            }
            if Instant::now() >= deadline {
                let (whole, time) = (self.bytes, PATIENCE.as_secs());
                return Err(format!("{size} of {whole} bytes were kept after {time} s").into());
            }
        }
    }

    fn used_ns(&self) -> Outcome<Option<u64>> {
        let Some(cgroup) = &self.cgroup else {
            return Ok(None);
        };
        let stat = fs::read_to_string(cgroup.join("cpu.stat"))?;
        let used = stat.lines().find_map(|line| line.strip_prefix("usage_usec "));
        Ok(Some(used.ok_or("cpu.stat knows no usage")?.parse::<u64>()? * 1000))
    }
}

fn succeeded(script: Watched) -> Outcome<()> {
    let status = script.reap()?;
    if status.success() { Ok(()) } else { Err(format!("it ended with {status}").into()) }
}

/// The captured output, wherever it was put: nothing else there is as large.
fn largest(dir: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(dir) else {
        return 0;
    };
    let size = |entry: fs::DirEntry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => largest(&entry.path()),
        Ok(meta) if meta.is_file() => meta.len(),
        _ => 0,
    };
    entries.flatten().map(size).max().unwrap_or(0)
}
