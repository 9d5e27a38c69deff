//! The last step without a cgroup: kill everybody in sight, until there is nobody.
//!
//! A round kills our children. A parent that is dead forks no more and leaves its
//! children to us, so that the next round finds them here. Where there are few it
//! also walks on below them, parents first; in a storm that would lose the race,
//! because looking below costs thirty times as much as killing a child. While new
//! ones keep coming nobody is reaped: the dead still count against every limit that
//! a fork bomb runs into, so that they keep the places of the living. The caller
//! reaps when it is calm, and naps when nobody new was met; ECHILD ends it.

use super::descendants::{Bound, First, own_children, walk};
use super::pinned_process::PinnedProcess;
use super::procfs::threads;
use super::wait::is_dead_child;
use crate::Round;
use fullstop_core::signal::Signal;
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// More children than this that nobody has met before: others are being born.
const FEW: usize = 4;

/// Whoever has been killed may still be on its way to die, and its last children on
/// their way to us. It is calm once all are dead; or, if one of them cannot die, after
/// so long, and so many looks: a storm leaves us little of the processor.
const CALM: Duration = Duration::from_millis(20);
const CALM_LOOKS: usize = 8;

/// How long one round may take, and how often it looks for new children.
const LONGEST_ROUND: Duration = Duration::from_millis(200);
const LOOKS: usize = 16;

/// With more dead than this, or after this time, they are reaped all the same: no
/// limit seems to hold the storm, and the machine needs its pids.
const MOST_UNREAPED: usize = 5000;
const LONGEST_STORM: Duration = Duration::from_secs(3);

/// Somebody who was killed and does not die keeps its children. So now and then
/// everybody is looked at again, and the children of every thread.
const THOROUGH_EVERY: Duration = Duration::from_millis(50);

/// Others are born while some are killed.
#[derive(Clone, Copy, Debug)]
struct Storm {
    since: Instant,
    last_birth: Instant,
    /// How often nobody new was met since then.
    looks: usize,
}

#[derive(Debug, Default)]
pub struct KillLoop {
    /// Who was met, so killed if that is allowed, and not reaped by us yet: one look is
    /// enough for a while.
    met: HashSet<i32>,
    /// The last round met somebody whom none before had met.
    somebody_new: bool,
    storm: Option<Storm>,
    /// When everybody was last looked at, or found to be too many for that. The first
    /// round walks everywhere, because it also counts.
    last_thorough: Option<Instant>,
}

impl KillLoop {
    /// There are too many to be counted.
    pub fn do_not_count(&mut self) {
        self.last_thorough.get_or_insert_with(Instant::now);
    }

    pub fn has_begun(&self) -> bool {
        self.last_thorough.is_some()
    }

    pub fn met_somebody_new(&self) -> bool {
        self.somebody_new
    }

    pub fn round(&mut self) -> Round {
        self.somebody_new = false;
        let children = own_children();
        let new = self.new_among(&children);
        let storms = self.storm.is_some() && !new.is_empty() || new.len() > FEW;
        if self.has_begun() && storms {
            return self.kill_while_new(new);
        }
        if let Some(storm) = &mut self.storm {
            storm.looks += 1;
            let long = storm.looks >= CALM_LOOKS && storm.last_birth.elapsed() >= CALM;
            if long || children.into_iter().all(is_dead_child) {
                self.storm = None;
            }
            return Round::default();
        }
        if self.last_thorough.is_some_and(|at| at.elapsed() < THOROUGH_EVERY) {
            return if new.is_empty() { Round::default() } else { self.kill_below(false) };
        }
        let round = self.kill_below(true);
        // Counted from its end: a long one must not be followed by another at once.
        self.last_thorough = Some(Instant::now());
        round
    }

    /// New ones keep coming, and it is not yet too long to leave the dead lying.
    pub fn is_storming(&self) -> bool {
        let few_dead = self.met.len() < MOST_UNREAPED;
        self.storm.is_some_and(|storm| storm.since.elapsed() < LONGEST_STORM && few_dead)
    }

    fn new_among(&self, children: &[i32]) -> Vec<i32> {
        children.iter().copied().filter(|pid| !self.met.contains(pid)).collect()
    }

    fn kill_while_new(&mut self, mut new: Vec<i32>) -> Round {
        let now = Instant::now();
        let since = self.storm.map_or(now, |storm| storm.since);
        if self.storm.replace(Storm { since, last_birth: now, looks: 0 }).is_none() {
            // Others may have got the pids of those that were not ours to reap.
            self.met.clear();
            new = own_children();
        }
        let mut round = Round::default();
        for _ in 0..LOOKS {
            for held in new.into_iter().filter_map(PinnedProcess::child) {
                self.kill(&held, &mut round);
            }
            new = self.new_among(&own_children());
            if new.is_empty() || now.elapsed() >= LONGEST_ROUND {
                break;
            }
        }
        self.somebody_new = true;
        round
    }

    fn kill_below(&mut self, thorough: bool) -> Round {
        let mut round = Round::default();
        let before = std::mem::take(&mut self.met);
        let look = |held: &PinnedProcess| match held {
            held if held.is_dead() => None,
            held if thorough => threads(held.pid()).map(|threads| (threads, ())),
            held if before.contains(&held.pid()) => None,
            _ => Some((1, ())),
        };
        let bound = Bound::within(LONGEST_ROUND);
        walk(First::Oldest, bound, look, |held, ()| self.kill(held, &mut round));
        self.somebody_new = !self.met.is_subset(&before);
        // A process that a thorough round does not meet may be gone, and its pid another's.
        if !thorough {
            self.met.extend(before);
        }
        round
    }

    fn kill(&mut self, held: &PinnedProcess, round: &mut Round) {
        round.alive += 1;
        round.signalled += usize::from(held.send(Signal::KILL).is_ok());
        self.met.insert(held.pid());
    }

    /// Its pid is free for others now.
    pub fn reaped(&mut self, pid: i32) {
        self.met.remove(&pid);
    }
}
