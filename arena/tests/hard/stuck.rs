//! When a run is stuck: it says so in time and names who lives, keeps trying,
//! and confirms the end once they are let go.

use std::time::{Duration, Instant};

use arena::report::{Member, Report};
use arena::{Context, Ended, Outcome, Process, Took, World, await_until, ensure, millis, seconds};

use super::kit::{Cage, Place, Run, SOON};

/// Does not wait long for a proof that will not come.
pub const LADDER: &str = "term@leader:200ms,term@tree:200ms,kill:600ms";
/// What the ladder takes, and the five seconds of promise 4.
pub const BOUND: Duration = millis(200 + 200 + 5000);
/// A stuck run is tried again every second.
const RETRY: Duration = seconds(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    Term,
    Timeout,
    LeaderExits,
    KillRun,
    KillKeeper,
}

impl Trigger {
    pub fn reason(self) -> &'static str {
        match self {
            Self::Term => "stopped",
            Self::Timeout => "overall-timeout",
            Self::LeaderExits => "exited",
            Self::KillRun => "host-gone",
            Self::KillKeeper => "keeper-died",
        }
    }
}

/// The one zoo member of this world.
pub fn zoo(world: &World) -> Outcome<Process> {
    let mut all = world.survivors();
    all.retain(|process| process.comm == "zoo");
    all.pop().context("no member of the zoo is there")
}

/// Waits until a process hangs in the kernel, and is not just passing through.
pub fn hangs(process: &Process) -> Outcome {
    let asleep = || Process::read(process.pid).is_some_and(|now| now.state == 'D');
    let still = || (0..20).all(|_| asleep() && !process.wchan().is_empty());
    ensure!(await_until(SOON, still), "{process} does not hang");
    Ok(())
}

/// `run` has returned in time and said who lives, and nobody else does.
pub fn is_stuck(
    world: &World,
    run: &Run,
    member: &Process,
    pulled: Instant,
    trigger: Trigger,
) -> Outcome {
    let ended = world.wait(&run.spawned, BOUND)?;
    let took = Took::since(pulled);
    ensure!(took.within(BOUND), "run returned after {took:?}");
    if trigger == Trigger::KillRun {
        // Nobody waits for the keeper's word any more; it gives it all the same.
        let said = || run.report().is_ok();
        ensure!(await_until(BOUND + seconds(1), said), "no report from the keeper");
    } else {
        ensure!(ended == Ended::Code(120), "run ended with {ended}, not with status 120");
        names(&run.stderr(), member)?;
    }
    let report = run.report()?;
    ensure!(report.state == "stuck", "the report says {}", report.state);
    ensure!(report.reason == trigger.reason(), "the reason is {}", report.reason);
    ensure!(report.proof.is_none(), "stuck, with the proof {:?}", report.proof);
    ensure!(report.has_step("kill"), "stuck, and nothing was killed: {:?}", report.steps);
    one_survivor(&report, member)?;
    let mut alive = world.survivors();
    alive.retain(|process| process.pid != member.pid);
    let of_ours = |process: &Process| process.comm.starts_with("fullstop");
    ensure!(alive.iter().all(of_ours), "others live as well: {alive:?}");
    ensure!(alive.len() == 1, "nobody keeps trying: {alive:?}");
    world.expect_bystanders_untouched()
}

/// stderr names the survivor with pid, state and wait channel.
fn names(said: &str, member: &Process) -> Outcome {
    let pid = format!("pid {} ", member.pid);
    let line = said.lines().find(|line| line.contains(&pid));
    let line = line.context(format!("the survivor {} is not named: {said}", member.pid))?;
    let now = Process::read(member.pid).context("the survivor is gone")?;
    let (state, wchan) = (format!("state {}", now.state), member.wchan());
    ensure!(line.contains(&state) && line.contains(&wchan), "{line:?} lacks {state} or {wchan}");
    Ok(())
}

fn one_survivor(report: &Report, member: &Process) -> Outcome {
    let [Member { pid, state, start_ticks, wchan, .. }] = report.survivors.as_slice() else {
        return Err(format!("{} survivors are named, not one", report.survivors.len()).into());
    };
    let named = (*pid, *state, *start_ticks, wchan.clone().unwrap_or_default());
    let now = Process::read(member.pid).context("the survivor is gone")?;
    let real = (member.pid, now.state, member.start_ticks, member.wchan());
    ensure!(named == real, "the survivor is named {named:?}, and is {real:?}");
    Ok(())
}

/// Let go, the member dies; the run notices by itself and says so.
pub fn is_confirmed(world: &World, run: &Run, place: Place, trigger: Trigger) -> Outcome {
    world.expect_extinct(RETRY + seconds(2)).context("after it was let go")?;
    let report = if trigger == Trigger::KillKeeper && place.cage == Cage::Tree {
        // Who goes on in the guard's place is not their parent: the weaker proof.
        let report = run.report()?;
        let said = (report.state.as_str(), report.reason.as_str(), report.proof.as_deref());
        ensure!(said == ("ended", trigger.reason(), Some("scan-clean")), "it says {said:?}");
        report
    } else {
        run.expect_ended(place, trigger.reason())?
    };
    let kills = report.steps.iter().filter(|step| step.step == "kill").count();
    ensure!(kills == 1, "the last step is told {kills} times");
    Ok(())
}
