//! What all who give orders from one program share, so that a thousand of them need no
//! more than a few.

use crate::notices::Notices;
use fullstop_cage::linux::room_for_descriptors;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// So many keepers are asked at a time, and so many processes watched, for a descriptor
/// or two each. The others wait for their turn, or are followed by the journal alone.
const AT_ONCE: usize = 128;
/// The part of our descriptors that may be held for either: the rest is for files that
/// are looked at, and for the program that we are a part of.
const PART: usize = 4;

#[derive(Debug)]
pub(crate) struct Shared {
    pub notices: Arc<Notices>,
    pub asking: Semaphore,
    pub watching: Semaphore,
}

impl Default for Shared {
    fn default() -> Shared {
        let few = (room_for_descriptors() / PART).clamp(1, AT_ONCE);
        Shared {
            notices: Arc::default(),
            asking: Semaphore::new(few),
            watching: Semaphore::new(few),
        }
    }
}
