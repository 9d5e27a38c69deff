//! What all orders of one process share, so that a thousand of them need no more than a few
//! descriptors.

use fullstop_cage::linux::room_for_descriptors;
use std::sync::LazyLock;
use tokio::sync::Semaphore;

/// So many keepers are asked at a time, and so many processes watched, for a descriptor
/// or two each. The others wait for their turn, or are followed by the journal alone.
const AT_ONCE: usize = 128;
/// The part of our descriptors that may be held for either: the rest is for files that
/// are looked at, and for the program that we are a part of.
const PART: usize = 4;

/// Leave to ask a keeper.
pub(crate) static ASKING: LazyLock<Semaphore> = LazyLock::new(few);
/// Leave to watch a process.
pub(crate) static WATCHING: LazyLock<Semaphore> = LazyLock::new(few);

/// So many lost runs are swept at a time: each has a thread, for seconds if it is stubborn.
const SWEEPS: usize = 32;
/// Leave to sweep a lost run.
pub(crate) static SWEEPING: Semaphore = Semaphore::const_new(SWEEPS);

fn few() -> Semaphore {
    Semaphore::new((room_for_descriptors() / PART).clamp(1, AT_ONCE))
}
