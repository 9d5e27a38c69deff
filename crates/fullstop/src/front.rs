//! What a program that stands in front of a run's terminal needs of the system, and
//! of the line to a keeper. It is for the command `fullstop`; nothing here is stable.

pub use crate::link::{AttachRequest, Attached, Link, Tail};
pub use crate::many::end_all_with_clock;
pub use crate::offload::on_thread;
pub use crate::readable::while_read;
pub use crate::send::Sender;
pub use fullstop_cage::linux::{
    Heard, Origin, Signals, die_of, hide_arguments_behind, own_group, stop_self_by, watch_parent,
};
pub use fullstop_cage::{cannot, plain};
pub use fullstop_keeper::{LEAVE_OTHER_SCREEN, SANE, name_living, name_unshown, stops_with_parent};
pub use fullstop_protocol::Frame;

use crate::error::Result;
use crate::orders::carry_out;
use crate::run::Run;
use crate::stop;
use fullstop_cage::linux::{ask_for_short_turns, raise_descriptor_limit, set_ignored};
use fullstop_core::signal::Signal;
use fullstop_protocol::{Report, RequestKind, StopReason};

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

/// What made whoever stands in front of a run ask for its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    Heard(Signal),
    HostGone,
}

fn request(cause: Cause) -> RequestKind {
    let (reason, signal) = match cause {
        Cause::Heard(signal) => (StopReason::Stopped, Some(signal)),
        Cause::HostGone => (StopReason::HostGone, None),
    };
    RequestKind::Stop { reason, signal, within: None }
}

/// Stops the run as if it had heard that itself, and returns with the report; a
/// keeper that does not answer is gone around.
pub async fn stop_because(run: &Run, cause: Cause) -> Result<Report> {
    run.end(request(cause), |_| ()).await
}

/// The same said again, while a stop is under way.
pub async fn repeat(run: &Run, cause: Cause) -> Result<()> {
    let run = run.unhosted();
    carry_out(async move { stop::accept(&run, &request(cause)).await.map(drop) }).await
}
