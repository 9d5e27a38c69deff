//! A start that is dropped before it was answered leaves nothing that nobody knows of.

use crate::kit::{Sleeper, finish, is_running, poll_times, until};
use fullstop::{Run, Runs};
use std::error::Error;
use std::thread::sleep;
use std::time::Duration;

const ROUNDS: u32 = 60;
/// A start has begun to run within so many steps of a millisecond, unless the machine stalls.
const STEPS: u32 = 30;

pub fn leave_nothing_unknown(runs: &Runs) -> Result<(), Box<dyn Error>> {
    let mut all = Vec::new();
    for round in 0..ROUNDS {
        let (command, seconds) = Sleeper::command(runs, 0);
        let start =
            async { if round % 2 == 0 { command.start().await } else { command.spawn().await } };
        let moment = Duration::from_millis(u64::from(round % STEPS));
        let mut start = Box::pin(start);
        // One poll hands it over; it is dropped some time later, answered or not.
        let none = poll_times(start.as_mut(), 1);
        assert!(none.is_none(), "a start that is answered at once: nothing is dropped");
        sleep(moment);
        drop(start);
        all.push(seconds);
    }
    // The directory can be read.
    finish(runs.live_ids())?;
    let is_over = || {
        finish(runs.live_ids()).is_ok_and(|live| live.is_empty())
            && !all.iter().any(|it| is_running(it))
    };
    until("all starts that were dropped are taken back", is_over);
    Ok(())
}

/// Our own threads hear no signals, and what they start must nevertheless.
pub fn keep_the_mask(runs: &Runs) -> Result<(), Box<dyn Error>> {
    let own = held_back("/proc/thread-self/status")?;
    let run = Sleeper::start(runs, 1)?.run;
    check_mask(&run, &own)?;
    check_mask(&finish(run.restart())?, &own)?;
    let mut ours = 0;
    for thread in std::fs::read_dir("/proc/self/task")? {
        let path = thread?.path();
        // One that has just ended is nobody.
        let Ok(name) = std::fs::read_to_string(path.join("comm")) else { continue };
        if let Ok(held) = held_back(&path.join("status").to_string_lossy())
            && name.starts_with("fullstop-")
        {
            let held = u64::from_str_radix(&held, 16)?;
            assert!(held & TERM != 0, "{name} would hear a signal of the program's");
            ours += 1;
        }
    }
    assert!(ours > 0, "orders are carried out on no thread of ours");
    Ok(())
}

/// Its bit in a mask.
const TERM: u64 = 1 << 14;

fn check_mask(run: &Run, own: &str) -> Result<(), Box<dyn Error>> {
    let members = finish(run.processes())?;
    let leader = members.first().ok_or("nobody lives in it")?.pid;
    assert_eq!(held_back(&format!("/proc/{leader}/status"))?, own);
    Ok(())
}

/// Which signals a process holds back.
fn held_back(status: &str) -> Result<String, Box<dyn Error>> {
    let status = std::fs::read_to_string(status)?;
    let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:"));
    Ok(mask.ok_or("the kernel does not tell")?.trim().to_owned())
}
