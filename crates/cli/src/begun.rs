//! When a run was begun, told by its id alone.

use fullstop::Id;
use std::collections::BTreeSet;
use std::time::Duration;

/// Whether the run of this id was begun before an order was given that met those. Ids grow
/// also where the clock was set back, so that whatever sorts among those is not new.
pub fn was_begun_before(id: &Id, order: Duration, met: &BTreeSet<Id>) -> bool {
    let order = u64::try_from(order.as_millis()).unwrap_or(u64::MAX);
    *id < Id::new(order, 0) || met.last().is_some_and(|last| id < last)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Also one that is listed already, and has no spec to be read yet.
    #[test]
    fn a_run_that_was_begun_after_the_order_is_not_meant() {
        const ORDER_MS: u64 = 1_800_000_000_500;
        let order = Duration::from_millis(ORDER_MS);
        let begun = |ms: u64| Id::new(ORDER_MS + ms, 7);
        let none = BTreeSet::new();
        assert!(was_begun_before(&Id::new(ORDER_MS - 1, u64::MAX), order, &none));
        assert!(!was_begun_before(&begun(0), order, &none));
        assert!(!was_begun_before(&begun(1), order, &none));
        // The clock was set back since these were begun.
        let met = BTreeSet::from([begun(60_000)]);
        assert!(was_begun_before(&begun(59_999), order, &met));
        assert!(!was_begun_before(&begun(60_001), order, &met));
    }
}
