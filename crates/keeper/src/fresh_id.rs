//! Ids for runs that begin now. Those of one process sort in the order in which they were
//! asked for, and those of several by the clock, to a tick.

use fullstop_core::id::{Id, Tick};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

/// The number of the last tick that was given away here.
static LAST: AtomicU64 = AtomicU64::new(0);

/// An id that no run of this process has had, and hardly one of another.
pub fn fresh_id() -> Id {
    let now = Tick::at(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default());
    let next = |last| now.behind(Tick::from_number(last));
    let last = LAST.fetch_update(Relaxed, Relaxed, |last| Some(next(last).number()));
    let mut chance = [0; 8];
    // Where the kernel has no chance to give, the time alone must do.
    let _ = rustix::rand::getrandom(&mut chance, rustix::rand::GetRandomFlags::NONBLOCK);
    Id::of(next(last.unwrap_or_default()), u64::from_ne_bytes(chance))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sorts_behind_the_last() {
        let ids: Vec<Id> = (0..10_000).map(|_| fresh_id()).collect();
        assert!(ids.is_sorted_by(|one, next| one < next));
    }

    #[test]
    fn threads_get_different_ones() {
        let some = || (0..1000).map(|_| fresh_id()).collect::<Vec<_>>();
        let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(some)).collect();
        let mut ids: Vec<Id> =
            threads.into_iter().flat_map(|thread| thread.join().expect("ids")).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 4000);
    }
}
