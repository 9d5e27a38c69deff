//! What must happen in a cell: the steps of its ladder, and how the leader
//! ends on the way.

use std::time::Duration;

use super::member::{Leader, Member};
use super::trigger::Trigger;
use crate::report::{Report, signal_name};
use crate::{Ended, millis, seconds};

const HUP: i32 = 1;
const INT: i32 = 2;
const KILL: i32 = 9;
const TERM: i32 = 15;

/// How patient the ladder is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// For those who fall at once or never.
    Short,
    /// For those who save: they need 300 ms, and more on a busy machine.
    Patient,
    /// No `--ladder` at all.
    Default,
    /// Does not wait long for a proof that will not come.
    Stuck,
}

impl Pace {
    pub fn ladder(self) -> Option<&'static str> {
        match self {
            Self::Short => Some("term@leader:400ms,term@tree:300ms,kill"),
            Self::Patient => Some("term@leader:3s,term@tree:3s,kill"),
            Self::Default => None,
            Self::Stuck => Some("term@leader:300ms,term@tree:200ms,kill:1s"),
        }
    }

    fn patiences(self) -> (Duration, Duration) {
        match self {
            Self::Short => (millis(400), millis(300)),
            Self::Patient => (seconds(3), seconds(3)),
            Self::Default => (seconds(3), seconds(2)),
            Self::Stuck => (millis(300), millis(200)),
        }
    }

    pub fn total(self) -> Duration {
        let (leader, tree) = self.patiences();
        leader + tree
    }
}

/// One step that may be taken.
#[derive(Debug, Clone)]
pub struct Rung {
    pub label: String,
    /// The signal it sends, and whether the whole tree gets it.
    pub sends: Option<(i32, bool)>,
    pub patience: Duration,
}

impl Rung {
    /// What the step is called when a leader that fell passes it on.
    pub fn passed_on(&self) -> Option<String> {
        let signal = self.label.strip_suffix("@leader")?;
        Some(format!("{signal}@children"))
    }
}

fn rung(signal: i32, target: &str, patience: Duration) -> Rung {
    Rung {
        label: format!("{}@{target}", signal_name(signal)),
        sends: Some((signal, target == "tree")),
        patience,
    }
}

/// The ladder as it must be climbed, bottom up, as far as it is needed. What is
/// meant for a leader that has left goes to the children it left.
pub fn rungs(member: &Member, trigger: Trigger, pace: Pace) -> Vec<Rung> {
    let (first, then) = pace.patiences();
    let left = trigger == Trigger::Natural || !member.leader_stays();
    let target = if left { "children" } else { "leader" };
    let widening = |signal| vec![rung(signal, target, first), rung(TERM, "tree", then)];
    let mut rungs = match trigger {
        Trigger::Term | Trigger::Timeout | Trigger::Natural => widening(TERM),
        Trigger::Int => widening(INT),
        Trigger::Hup => widening(HUP),
        Trigger::KillRun | Trigger::KillGuard | Trigger::KillHost => {
            vec![rung(TERM, "tree", millis(500))]
        }
        Trigger::KillKeeper => Vec::new(),
    };
    rungs.push(Rung { label: "kill".into(), sends: None, patience: seconds(4) });
    rungs
}

/// How the leader must have ended. A leader that answers may be too slow for
/// the short ladder of a lost host: then, and only then, it was killed.
pub fn leader_end(member: &Member, trigger: Trigger, pace: Pace, report: &Report) -> Ended {
    if !member.leader_stays() {
        return Ended::Code(0);
    }
    if trigger == Trigger::Natural {
        return Ended::Signal(KILL);
    }
    let too_slow = trigger.kills_us() && member.saves && report.has_step("kill");
    let heard = rungs(member, trigger, pace).into_iter().filter_map(|rung| rung.sends);
    for (signal, tree) in heard {
        match member.leader {
            Leader::Falls { deaf_to } if deaf_to.contains(&signal) => {}
            Leader::Falls { .. } => return Ended::Signal(signal),
            _ if too_slow => return Ended::Signal(KILL),
            Leader::AnswersForItsChildren if tree => return Ended::Code(1),
            _ => return Ended::Code(0),
        }
    }
    Ended::Signal(KILL)
}

/// The status `run` must end with.
pub fn status(leader: Ended, trigger: Trigger) -> Ended {
    match (trigger, leader) {
        (Trigger::KillRun, _) => Ended::Signal(KILL),
        (Trigger::Timeout, _) => Ended::Code(124),
        // A guard that was killed cannot tell how the command ended.
        (Trigger::KillGuard, _) | (_, Ended::Signal(KILL)) => Ended::Code(137),
        (_, other) => other,
    }
}
