//! One job in a pid namespace of its own: start one hostile tree under one
//! contender, order the stop, count who lives on.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use crate::child::{Watched, quiet_command};
use crate::fifo::Fifo;
use crate::{Outcome, proc};

/// How long a contender has to stop the tree.
const PATIENCE: Duration = Duration::from_secs(10);
const START_PATIENCE: Duration = Duration::from_secs(20);
/// A contender may still be setting itself up when the tree stands already; that
/// race is not what is counted here.
const SETTLE: Duration = Duration::from_millis(200);
/// Who is dying when the contender returns is not counted as a survivor, and
/// who comes to life again is.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

#[derive(Serialize, Deserialize)]
pub struct Job {
    pub prefix: Vec<String>,
    pub env: Vec<(String, String)>,
    pub zoo: PathBuf,
    pub animal: String,
    pub dir: PathBuf,
}

#[derive(Serialize, Deserialize)]
pub struct Catch {
    pub before: usize,
    pub survivors: usize,
    pub returned: bool,
}

pub fn hunt(job: &Path) -> Outcome<()> {
    let job: Job = serde_json::from_slice(&std::fs::read(job)?)?;
    let mut fifo = Fifo::make(&job.dir.join("ready"))?;
    let animal = [
        job.zoo.display().to_string(),
        "--dir".to_owned(),
        job.dir.display().to_string(),
        job.animal.clone(),
    ];
    let words = [job.prefix.as_slice(), &animal].concat();
    let run = Watched::start(quiet_command(&words, &job.env)?)?;
    fifo.read_line(START_PATIENCE)?;
    std::thread::sleep(SETTLE);
    // The contender's own processes run the same program as the one we started
    // by now, whatever chain of scripts led there.
    let keeper = std::fs::read_link(format!("/proc/{}/exe", run.pid()))?;
    let before = members(&keeper);
    run.signal(Signal::TERM)?;
    let returned = run.exited_within(PATIENCE)?;
    std::thread::sleep(LOOK_AGAIN);
    let catch = Catch { before, survivors: members(&keeper), returned };
    println!("{}", serde_json::to_string(&catch)?);
    Ok(())
}

fn members(keeper: &Path) -> usize {
    proc::living().iter().filter(|seen| seen.exe.as_deref() != Some(keeper)).count()
}
