//! One job in a pid namespace of its own: keys typed into terminals, and how long
//! the answer of the command in them takes.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use fullstop_bench::clock::now_ns;
use fullstop_bench::results::{BARE, Failure, Keys, Sample};
use serde::{Deserialize, Serialize};

use crate::Outcome;
use crate::pty::Pty;

/// The terminal itself answers nothing, the command does, key by key.
const ECHO: &str = "stty raw -echo && printf ready && exec cat";
/// No terminal's control sequences have it.
const KEY: &[u8] = b"#";
const WARM_UP: usize = 10;
/// Between keys, so that all of them find everybody asleep.
const PAUSE: Duration = Duration::from_millis(3);
const PATIENCE: Duration = Duration::from_secs(10);
/// Without a line of its own, which shows the time.
const TMUX_SETTINGS: &str = "set -g status off\nset -s escape-time 0\n";

#[derive(Serialize, Deserialize)]
pub struct Job {
    pub fullstop: PathBuf,
    pub tmux: Option<PathBuf>,
    pub dir: PathBuf,
    pub rounds: usize,
    pub answer: PathBuf,
}

#[derive(Serialize, Deserialize)]
pub struct Answer {
    pub keys: Vec<Keys>,
    pub failures: Vec<Failure>,
}

struct Lane {
    way: &'static str,
    pty: Outcome<Pty>,
    times: Vec<u64>,
}

pub fn keys(job: &Path) -> Outcome<()> {
    let job: Job = serde_json::from_slice(&std::fs::read(job)?)?;
    std::fs::create_dir_all(&job.dir)?;
    let mut lanes = job.lanes();
    for round in 0..WARM_UP + job.rounds {
        let count = lanes.len();
        for turn in 0..count {
            lanes[(round + turn) % count].press(round >= WARM_UP);
        }
    }
    job.end();
    let mut answer = Answer { keys: Vec::new(), failures: Vec::new() };
    for Lane { way, pty, times } in lanes {
        match pty {
            Ok(_) => answer
                .keys
                .extend(Sample::of(times).map(|sample| Keys { way: way.to_owned(), sample })),
            Err(error) => answer.failures.push(Failure {
                contender: way.to_owned(),
                part: "output, keys".to_owned(),
                why: error.to_string(),
            }),
        }
    }
    std::fs::write(&job.answer, serde_json::to_vec(&answer)?)?;
    Ok(())
}

impl Lane {
    fn press(&mut self, counts: bool) {
        let Ok(pty) = &self.pty else {
            return;
        };
        std::thread::sleep(PAUSE);
        match press(pty) {
            Ok(time) if counts => self.times.push(time),
            Ok(_) => {}
            Err(error) => self.pty = Err(error.into()),
        }
    }
}

fn press(pty: &Pty) -> std::io::Result<u64> {
    pty.drain()?;
    let start = now_ns();
    pty.write(KEY)?;
    pty.read_until(KEY, PATIENCE)?;
    Ok(now_ns() - start)
}

impl Job {
    fn lanes(&self) -> Vec<Lane> {
        let lane = |way, pty| Lane { way, pty, times: Vec::new() };
        let mut lanes = vec![
            lane(BARE, ready("sh", &["-c", ECHO], &[])),
            lane("fullstop attach", self.attached()),
            lane("fullstop run --pty", self.ran()),
        ];
        if let Some(tmux) = &self.tmux {
            lanes.push(lane("tmux", self.multiplexed(tmux)));
        }
        lanes
    }

    fn attached(&self) -> Outcome<Pty> {
        let started = self.fullstop(&["start", "--pty", "--", "sh", "-c", ECHO]).output()?;
        if !started.status.success() {
            return Err(String::from_utf8_lossy(&started.stderr).trim().into());
        }
        let id = String::from_utf8(started.stdout)?;
        ready(utf8(&self.fullstop)?, &["attach", id.trim()], &[self.state()?])
    }

    fn ran(&self) -> Outcome<Pty> {
        let words = ["run", "--pty", "--", "sh", "-c", ECHO];
        ready(utf8(&self.fullstop)?, &words, &[self.state()?])
    }

    fn multiplexed(&self, tmux: &Path) -> Outcome<Pty> {
        let settings = self.dir.join("tmux.conf");
        std::fs::write(&settings, TMUX_SETTINGS)?;
        // In the directory it starts in: the name of a socket has to be short.
        let words = ["-S", "keys.sock", "-f", utf8(&settings)?, "new-session", ECHO];
        std::env::set_current_dir(&self.dir)?;
        ready(utf8(tmux)?, &words, &[])
    }

    fn state(&self) -> Outcome<(&str, &str)> {
        Ok(("FULLSTOP_DIR", utf8(&self.dir)?))
    }

    fn fullstop(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.fullstop);
        command.args(words).env("FULLSTOP_DIR", &self.dir).stdin(Stdio::null());
        command
    }

    /// Its cgroups are removed by nobody but itself.
    fn end(&self) {
        let _ = self.fullstop(&["kill", "--all"]).stdout(Stdio::null()).status();
    }
}

fn ready(program: &str, args: &[&str], env: &[(&str, &str)]) -> Outcome<Pty> {
    let pty = Pty::start(program, args, env)?;
    pty.read_until(b"ready", PATIENCE)?;
    Ok(pty)
}

fn utf8(path: &Path) -> Outcome<&str> {
    Ok(path.to_str().ok_or("the build directory's name is not UTF-8")?)
}
