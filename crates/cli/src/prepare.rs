//! What this process prepares itself for.

use fullstop::Signal;
use fullstop_cage::linux::{ask_for_short_turns, raise_descriptor_limit, set_ignored};

/// Asks for short turns on the processor, as the keepers do, and for all the descriptors
/// that this process may have: it is about to give orders to many.
pub fn prepare_for_many() {
    ask_for_short_turns();
    raise_descriptor_limit();
}

/// Whoever reads what this process prints may be gone: then a write fails, and does not
/// kill.
pub fn survive_broken_pipes() {
    set_ignored(Signal::PIPE, true);
}

/// A signal that stops a job does not stop this process, until it hears signals itself. A
/// command on a terminal of its own is not born with that.
pub fn ignore_job_stops() {
    for signal in [Signal::TSTP, Signal::TTIN, Signal::TTOU] {
        set_ignored(signal, true);
    }
}
