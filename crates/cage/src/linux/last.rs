//! The last step without a cgroup: kill everybody in sight, until there is nobody.
//!
//! A round kills our children. A parent that is dead forks no more and leaves its
//! children to us, so that the next round finds them here. Where there are few it
//! also walks on below them, parents first; in a storm that would lose the race,
//! because looking below costs thirty times as much as killing a child. The caller
//! reaps between two rounds and naps only when nobody new was met; ECHILD ends it.

use super::held::Held;
use super::kin::{Kin, walk};
use crate::Round;
use fullstop_core::signal::Signal;
use rustix::process::getpid;
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// With more new children than this in a round, killing them is enough to do.
const FEW: usize = 16;

/// Somebody who was killed and does not die keeps its children. So now and then
/// everybody is looked at again, and the children of every thread.
const THOROUGH_EVERY: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub struct LastStep {
    /// Children of ours who have been killed and not reaped yet. Their pids are
    /// theirs until then, so that one look is enough for a while.
    killed: HashSet<i32>,
    /// The first round walks everywhere, because it also counts.
    begun: bool,
    thorough_at: Instant,
}

impl Default for LastStep {
    fn default() -> LastStep {
        let thorough_at = Instant::now() + THOROUGH_EVERY;
        LastStep { killed: HashSet::new(), begun: false, thorough_at }
    }
}

impl LastStep {
    pub fn round(&mut self) -> Round {
        let children = Kin::now().children(getpid().as_raw_pid(), 1);
        let new: Vec<i32> = children.into_iter().filter(|pid| !self.killed.contains(pid)).collect();
        if std::mem::replace(&mut self.begun, true) && new.len() > FEW {
            return self.kill_children(&new);
        }
        let thorough = new.is_empty() && Instant::now() >= self.thorough_at;
        if thorough {
            self.killed.clear();
            self.thorough_at = Instant::now() + THOROUGH_EVERY;
        }
        self.kill_below(thorough)
    }

    fn kill_children(&mut self, children: &[i32]) -> Round {
        let mut round = Round::default();
        for held in children.iter().copied().filter_map(Held::child) {
            self.kill(&held, &mut round);
        }
        round
    }

    fn kill_below(&mut self, thorough: bool) -> Round {
        let mut round = Round::default();
        let before = std::mem::take(&mut self.killed);
        let threads = |held: &Held| match held {
            held if before.contains(&held.pid()) || held.is_dead() => None,
            held if thorough => held.stat().map(|stat| stat.threads),
            _ => Some(1),
        };
        walk(threads, |held| self.kill(held, &mut round));
        self.killed.extend(before);
        round
    }

    fn kill(&mut self, held: &Held, round: &mut Round) {
        round.alive += 1;
        if held.send(Signal::KILL).is_ok() {
            round.signalled += 1;
            // Whoever is held by pidfd is not our child yet, and will be met again.
            if held.pidfd().is_none() {
                self.killed.insert(held.pid());
            }
        }
    }

    /// Its pid is free for others now.
    pub fn reaped(&mut self, pid: i32) {
        self.killed.remove(&pid);
    }
}
