//! The sweep that every run brings along: quiet, and never in its way.
//!
//! It waits until the command runs. Ending what others have left may take a while,
//! and a guard must hear, so a child does it; a run that is over does it itself.

use crate::assignment::Assignment;
use crate::directory::leave_callers_directory;
use crate::name;
use crate::sweep::{self, LostElsewhere};
use fullstop_cage::linux::{
    Fork, PinnedProcess, close_all_but, fork, leave, now, null_over, wait_for,
};
use fullstop_core::signal::Signal;
use fullstop_core::words::Moment;
use fullstop_store::Store;
use std::time::Duration;

/// How long a sweeper may take to come to its end, when the run has come to its own.
const PATIENCE: Duration = Duration::from_millis(500);

pub enum Sweep {
    Later(Moment),
    /// A child is at it.
    Now(PinnedProcess),
    Done,
}

impl Sweep {
    /// When to look after it.
    pub fn patience(&self) -> Option<Duration> {
        match self {
            Sweep::Later(at) => Some(at.since(now())),
            // Its end wakes us.
            Sweep::Now(_) | Sweep::Done => None,
        }
    }

    pub fn service(&mut self, assigned: &Assignment) {
        match self {
            Sweep::Later(at) if *at <= now() => {
                *self = send(assigned).map_or(Sweep::Done, Sweep::Now);
            }
            Sweep::Now(child) if wait_for(child.pid()).is_gone() => *self = Sweep::Done,
            _ => {}
        }
    }

    /// The run is over.
    pub fn finish(&mut self, assigned: &Assignment) {
        if let Sweep::Later(_) = self
            && let Some(store) = store(assigned)
        {
            sweep::sweep_in_passing(&store);
        }
        self.wait(PATIENCE);
    }

    /// The tree is to be taken over: a sweeper is no part of it, and must not be
    /// counted with it.
    pub fn abandon(&mut self) {
        if let Sweep::Now(child) = self {
            let _ = child.send(Signal::KILL);
        }
        self.wait(PATIENCE);
    }

    fn wait(&mut self, patience: Duration) {
        let until = now() + patience;
        while let Sweep::Now(child) = self
            && !wait_for(child.pid()).is_gone()
            && now() < until
        {
            std::thread::sleep(Duration::from_micros(200));
        }
        *self = Sweep::Done;
    }
}

fn store(assigned: &Assignment) -> Option<Store> {
    assigned.state_dir().map_or_else(Store::open, Store::at).ok()
}

/// Sends a child to end lost runs, if there are any that it could end.
fn send(assigned: &Assignment) -> Option<PinnedProcess> {
    let store = store(assigned)?;
    let mut lost = sweep::lost_in_passing(&store).ok()?;
    lost.retain(|id| LostElsewhere::look(&store, id).is_none_or(|lost| lost.is_provable()));
    if lost.is_empty() {
        return None;
    }
    match fork(Signal::CHLD) {
        Ok(Fork::Parent(child)) => Some(child),
        Ok(Fork::Child) => {
            let path = store.path().to_owned();
            drop(store);
            let _ = rustix::process::setsid();
            name::take(name::SWEEP, None);
            leave_callers_directory();
            null_over(&[0, 1, 2]);
            // Among them the lock of a run that is none of its business.
            close_all_but(&[]);
            if let Ok(store) = Store::at(&path) {
                sweep::sweep_beside_run(&store, &lost);
            }
            leave(0)
        }
        Err(_) => None,
    }
}
