//! Which process is what: fullstop's own and the leader, found as any
//! administrator would find them, by parent and name.

use super::trigger::Trigger;
use crate::{Context, Outcome, Process, World, await_until, ensure, seconds};

const KEEPER: &str = "fullstop-keeper";

#[derive(Debug, Clone)]
pub struct Parts {
    pub host: Option<i32>,
    pub run: i32,
    pub guard: i32,
    pub keeper: i32,
    /// `None` if it has ended by itself.
    pub leader: Option<i32>,
}

impl Parts {
    /// `spawned` is what the driver has started: `run`, or its host.
    pub fn find(
        world: &World,
        spawned: i32,
        trigger: Trigger,
        leader_lives: bool,
    ) -> Outcome<Self> {
        // It takes its name only when the leader runs already.
        let named = || world.survivors().iter().any(|process| process.comm == KEEPER);
        ensure!(await_until(seconds(5), named), "there is no keeper");
        let all = world.survivors();
        let keeper =
            all.iter().find(|process| process.comm == KEEPER).context("there is no keeper")?;
        let guard = keeper.ppid;
        let (host, run) = match trigger {
            Trigger::KillHost => {
                (Some(spawned), child_of(&all, spawned).context("the host has no child")?)
            }
            _ => (None, spawned),
        };
        if trigger == Trigger::KillGuard {
            ensure!(guard != run, "run had a child and is the guard all the same");
        } else {
            ensure!(guard == run, "the keeper's parent is {guard}, and not run ({run})");
        }
        // The leader is the keeper's first child. Ids grow in a young
        // namespace, and orphans that the keeper inherits are younger.
        let leader = if leader_lives { child_of(&all, keeper.pid) } else { None };
        ensure!(leader.is_some() == leader_lives, "the keeper has no child");
        Ok(Self { host, run, guard, keeper: keeper.pid, leader })
    }

    /// Is this process fullstop's own, or the host?
    pub fn holds(&self, pid: i32) -> bool {
        [Some(self.run), Some(self.guard), Some(self.keeper), self.host].contains(&Some(pid))
    }
}

fn child_of(all: &[Process], parent: i32) -> Option<i32> {
    all.iter().filter(|process| process.ppid == parent).map(|process| process.pid).min()
}
