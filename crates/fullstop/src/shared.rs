//! What all who give orders from one program share, so that a thousand of them need no
//! more than a few.

use crate::notices::Notices;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// So many keepers are asked at a time. Each takes a few descriptors, of which even a
/// small program has a thousand.
const ASKED_AT_ONCE: usize = 128;
/// So many processes are watched at a time, for a descriptor each. The others are
/// followed by the journal alone.
const WATCHED_AT_ONCE: usize = 128;

#[derive(Debug)]
pub(crate) struct Shared {
    pub notices: Arc<Notices>,
    pub asking: Semaphore,
    pub watching: Semaphore,
}

impl Default for Shared {
    fn default() -> Shared {
        Shared {
            notices: Arc::default(),
            asking: Semaphore::new(ASKED_AT_ONCE),
            watching: Semaphore::new(WATCHED_AT_ONCE),
        }
    }
}
