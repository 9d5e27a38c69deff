//! Is the report true? Everything that is not is named at once.

use std::collections::BTreeSet;
use std::time::{Duration, Instant, SystemTime};

use super::cell::{Cage, Cell};
use super::member::{Count, Crowd};
use super::story::{self, Rung};
use super::trigger::Trigger;
use crate::report::Report;
use crate::{Condition, Failure, Missed, Outcome, Took, ensure, millis};

/// How late a busy machine may be with a step.
const LATE: Duration = millis(1000);

/// What the driver has seen itself, to hold the report against.
pub struct Seen {
    /// The count the member has announced.
    pub announced: usize,
    /// Process ids of the members before the trigger, the leader among them.
    pub members: BTreeSet<i32>,
    pub leader: Option<i32>,
    /// When `run` was started.
    pub at: Instant,
    /// From then until the member stood and was looked at.
    pub stood: Took,
    /// From its start until all was over.
    pub took: Took,
    /// The command line behind `--`.
    pub command: Vec<String>,
}

pub fn report_is_true(cell: &Cell, report: &Report, seen: &Seen) -> Outcome {
    patience_was_enough(cell, report, seen)?;
    let mut lies = Lies::default();
    identity(cell, report, seen, &mut lies);
    ending(cell, report, &mut lies);
    steps(cell, report, seen, &mut lies);
    counts(cell, report, seen, &mut lies);
    leftovers(cell, report, seen, &mut lies);
    clocks(cell, report, seen, &mut lies);
    lies.verdict()
}

#[derive(Default)]
struct Lies(Vec<Failure>);

impl Lies {
    fn unless(&mut self, truth: impl Condition, lie: impl FnOnce() -> String) {
        if let Err(missed) = truth.holds() {
            self.0.push(Failure { text: lie(), missed });
        }
    }

    /// Lies are about time if each of them is, and then about the longest.
    fn verdict(self) -> Outcome {
        if self.0.is_empty() {
            return Ok(());
        }
        let texts: Vec<&str> = self.0.iter().map(|lie| lie.text.as_str()).collect();
        let text = format!("the report is not true: {}", texts.join("; "));
        let missed: Option<Vec<Missed>> = self.0.iter().map(|lie| lie.missed).collect();
        let missed = missed.into_iter().flatten().max_by_key(|missed| missed.bound);
        Err(Failure { text, missed })
    }
}

fn identity(cell: &Cell, report: &Report, seen: &Seen, lies: &mut Lies) {
    lies.unless(report.version == 2, || format!("version {}", report.version));
    lies.unless(!report.id.is_empty(), || "no id".into());
    lies.unless(report.name.is_none(), || format!("name {:?} was never given", report.name));
    lies.unless(report.generation == 1, || format!("generation {}", report.generation));
    lies.unless(report.command == seen.command, || format!("command {:?}", report.command));
    lies.unless(report.cage == cell.cage.reported(), || format!("cage {}", report.cage));
}

fn ending(cell: &Cell, report: &Report, lies: &mut Lies) {
    lies.unless(report.state == "ended", || format!("state {}", report.state));
    lies.unless(report.reason == cell.trigger.reason(), || format!("reason {}", report.reason));
    let proof = match cell.cage {
        Cage::Tree => "no-children",
        Cage::Cgroup | Cage::Auto => "cgroup-empty",
    };
    lies.unless(report.proof.as_deref() == Some(proof), || {
        format!("proof {:?}, not {proof}", report.proof)
    });
    let leader = story::leader_end(cell.member, cell.trigger, cell.pace, report);
    lies.unless(report.leader() == Some(leader), || {
        format!("exit {:?}, but the leader had {leader}", report.exit)
    });
    lies.unless(report.survivors.is_empty(), || "survivors of an ended run".into());
    lies.unless(report.released.is_empty(), || "nobody was released".into());
}

/// Those who fall when they are asked fall within the patience of the ladder. If
/// they did not, the report is about something else, and is not read further.
fn patience_was_enough(cell: &Cell, report: &Report, seen: &Seen) -> Outcome {
    let asked = cell.trigger != Trigger::KillKeeper && cell.somebody_is_asked();
    let in_vain = asked && !cell.may_be_killed() && report.has_step("kill");
    let ladder = story::rungs(cell.member, cell.trigger, cell.pace);
    let patience = ladder.iter().filter(|rung| rung.sends.is_some()).map(|rung| rung.patience);
    let fell = seen.took.kept(patience.sum(), !in_vain);
    ensure!(fell, "killed although all would have fallen to TERM");
    Ok(())
}

/// The steps are the lower part of the ladder, in order, none left out, each
/// after the patience of the one before. When the leader falls to the first
/// step, the same signal may go to the children it leaves, within that step.
fn steps(cell: &Cell, report: &Report, seen: &Seen, lies: &mut Lies) {
    let ladder = story::rungs(cell.member, cell.trigger, cell.pace);
    let mut next = 0;
    let mut from = 0;
    let mut passed_on = false;
    for step in &report.steps {
        lies.unless(step.at_ms >= from, || format!("{} goes back in time", step.step));
        if next == 1 && !passed_on && ladder[0].passed_on().as_ref() == Some(&step.step) {
            passed_on = true;
            continue;
        }
        let Some(rung) = ladder.get(next).filter(|rung| rung.label == step.step) else {
            lies.unless(false, || format!("{} is not the next step", step.step));
            return;
        };
        if next > 0 {
            let waited = Duration::from_millis(step.at_ms.saturating_sub(from));
            patience_kept(&ladder[next - 1], cell.may_storm(), waited, seen, lies);
        }
        (next, from) = (next + 1, step.at_ms);
        lies.unless(rung.sends.is_none() || step.alive > 0, || format!("{} for nobody", step.step));
    }
    let killed = report.has_step("kill");
    if cell.trigger != Trigger::KillKeeper && cell.somebody_is_asked() {
        lies.unless(!report.steps.is_empty(), || "no step was taken".into());
        lies.unless(killed || cell.member.crowd != Crowd::Deaf, || {
            "deaf members, and no kill".into()
        });
    }
    if cell.trigger == Trigger::KillKeeper {
        lies.unless(killed, || "the guard killed, and does not say so".into());
    }
}

fn patience_kept(rung: &Rung, storms: bool, waited: Duration, seen: &Seen, lies: &mut Lies) {
    let patience = rung.patience;
    // Both ends are rounded to milliseconds.
    lies.unless(storms || waited + millis(1) >= patience, || {
        format!("{} had {waited:?} of {patience:?}", rung.label)
    });
    let bound = patience + LATE;
    lies.unless(seen.took.kept(bound, waited <= bound), || {
        format!("{} waited {waited:?}, not {patience:?}", rung.label)
    });
}

fn counts(cell: &Cell, report: &Report, seen: &Seen, lies: &mut Lies) {
    let Some(first) = report.steps.first() else {
        return;
    };
    lies.unless(first.alive >= 1, || "nobody alive at the first step".into());
    let leader_gone = cell.trigger == Trigger::Natural || !cell.member.leader_stays();
    let standing = seen.announced - usize::from(leader_gone);
    // Before anybody was signalled, nobody has fallen.
    let exact = match cell.member.count {
        Count::Steady => true,
        Count::FallsTogether => cell.trigger.is_soft(),
        Count::Restless => false,
    };
    let plausible = if exact { first.alive == standing } else { first.alive <= standing };
    let plausible = plausible || cell.member.count == Count::Restless;
    let lie = || format!("{} alive at first, not {standing}", first.alive);
    // A clock waits for nobody: it is assumed that all stood before it ran out.
    if cell.trigger == Trigger::Timeout && seen.stood >= cell.timeout() {
        lies.unless(seen.stood.kept(cell.timeout(), plausible), lie);
    } else {
        lies.unless(plausible, lie);
    }
    for step in report.steps.iter().filter(|step| step.step != "kill") {
        let most = step.alive;
        lies.unless(step.signalled <= most, || {
            format!("{} signalled of {most} alive", step.signalled)
        });
    }
    if cell.member.leader_stays() && cell.trigger.is_soft() {
        // One: the leader. More: it fell, and those it left were asked too.
        lies.unless(first.signalled >= 1, || "the first step reached nobody".into());
    }
}

/// Leftovers are members that were there before, and not the leader.
fn leftovers(cell: &Cell, report: &Report, seen: &Seen, lies: &mut Lies) {
    let named: BTreeSet<i32> = report.leftovers.iter().map(|member| member.pid).collect();
    lies.unless(named.len() == report.leftovers.len(), || "a leftover is named twice".into());
    if let Some(leader) = seen.leader {
        lies.unless(!named.contains(&leader), || "the leader is its own leftover".into());
    }
    if cell.member.count == Count::Restless {
        return;
    }
    // A tree born at the last minute is news to the driver, and a run that
    // ends by itself is over before the driver can look.
    let unseen = cell.member.name == "tree-on-term" || seen.members.is_empty();
    let strangers: Vec<_> = named.difference(&seen.members).collect();
    lies.unless(unseen || strangers.is_empty(), || {
        format!("leftovers {strangers:?} never were members")
    });
    let left_by_itself = cell.trigger == Trigger::Natural || !cell.member.leader_stays();
    if left_by_itself && cell.member.count == Count::Steady {
        let left = seen.announced - 1;
        lies.unless(named.len() == left, || format!("{} leftovers, not {left}", named.len()));
    }
}

fn clocks(cell: &Cell, report: &Report, seen: &Seen, lies: &mut Lies) {
    let elapsed = Duration::from_millis(report.elapsed_ms);
    lies.unless(elapsed <= seen.took.lasted() + millis(5), || {
        format!("elapsed {elapsed:?} of {:?}", seen.took)
    });
    let last = report.steps.last().map_or(0, |step| step.at_ms);
    lies.unless(report.elapsed_ms >= last, || "over before the last step".into());
    if report.reason == "overall-timeout" {
        let first = report.steps.first().map_or(0, |step| step.at_ms);
        let wanted = u64::try_from(cell.timeout().as_millis()).unwrap_or(u64::MAX);
        lies.unless(first + 1 >= wanted, || format!("the timeout came after {first} ms"));
    }
    let (now, started) = (SystemTime::now(), report.started_at);
    let age = now.duration_since(started).unwrap_or_default();
    let bound = seen.took.lasted() + LATE;
    lies.unless(started <= now, || {
        format!("starts {started:?} after the epoch, and now is {now:?}")
    });
    lies.unless(Took::since(seen.at).kept(bound, age <= bound), || format!("started {age:?} ago"));
}
