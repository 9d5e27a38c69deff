//! How many worlds may be busy at the same time.
//!
//! A scenario is busy until it says that it only waits any more (or ends); what
//! is measured in a second must not share the machine with ten others. A heavy
//! one has the machine to itself.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

static STATE: Mutex<State> = Mutex::new(State { taken: 0, served: 0, next: 0 });
static CHANGED: Condvar = Condvar::new();

struct State {
    taken: usize,
    /// Tickets are served in order, so that a heavy world is not starved by a
    /// stream of light ones.
    served: usize,
    next: usize,
}

pub(crate) struct Slots;

/// The right to be busy.
pub(crate) struct Slot(usize);

impl Slots {
    /// Two for each core: even a busy world waits half of its time.
    fn all() -> usize {
        2 * std::thread::available_parallelism().map_or(1, usize::from)
    }

    pub(crate) fn take(heavy: bool) -> Slot {
        let wanted = if heavy { Self::all() } else { 1 };
        let mut state = lock();
        let ticket = state.next;
        state.next += 1;
        while state.served != ticket || state.taken + wanted > Self::all() {
            state = CHANGED.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.served += 1;
        state.taken += wanted;
        CHANGED.notify_all();
        Slot(wanted)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        lock().taken -= self.0;
        CHANGED.notify_all();
    }
}

fn lock() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}
