//! One signal for many processes. All of them are held before the first gets it, as far as there
//! are descriptors, so that one that dies of it takes no other out of sight.

use super::descriptors::room_for_descriptors;
use super::pinned_process::PinnedProcess;
use super::procfs::Stat;
use fullstop_core::signal::Signal;

/// The processes that one signal is to be sent to, held until then.
pub struct SignalBatch {
    signal: Signal,
    /// With their start times.
    held: Vec<(PinnedProcess, u64)>,
    /// How many of them cost a descriptor, and how many may.
    open: usize,
    room: usize,
    /// The pids that have got it, with their start times.
    pub reached: Vec<(i32, u64)>,
}

impl SignalBatch {
    pub fn new(signal: Signal) -> SignalBatch {
        SignalBatch {
            signal,
            held: Vec::new(),
            open: 0,
            room: room_for_descriptors(),
            reached: Vec::new(),
        }
    }

    /// Adds a process, unless it could not be held. Sends at once if no descriptor is left for more.
    pub fn extend(&mut self, held: Option<PinnedProcess>, stat: &Stat) {
        self.open += usize::from(held.as_ref().is_some_and(|held| held.pidfd().is_some()));
        self.held.extend(held.map(|held| (held, stat.start_ticks)));
        if self.open >= self.room {
            self.send_all();
        }
    }

    pub fn send_all(&mut self) {
        let sent = self.held.drain(..).filter(|(held, _)| send(held, self.signal));
        self.reached.extend(sent.map(|(held, start_ticks)| (held.pid(), start_ticks)));
        self.open = 0;
    }
}

/// Sends a signal to a process, and returns whether it was sent. A stopped process is continued,
/// since it gets its signal only then.
pub fn send(held: &PinnedProcess, signal: Signal) -> bool {
    // Read before the signal is sent, which may itself stop the process.
    let stopped = held.is_stopped();
    let is_sent = held.send(signal).is_ok();
    if is_sent && stopped && signal != Signal::KILL {
        let _ = held.send(Signal::CONT);
    }
    is_sent
}
