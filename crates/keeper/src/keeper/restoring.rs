//! A run whose directory was removed is restored: see `ledger/restore.rs`.

use super::Keeper;
use fullstop_core::machine::{Ask, Input};
use fullstop_core::words::Reason;

impl Keeper<'_> {
    /// Looks, now and then, whether others can still find the run. Where the end is near
    /// nothing comes before it: the last record makes anew what it needs.
    pub(super) fn look_after_names(&mut self) {
        if self.engine.is_at_last_step() || self.engine.state.is_over() {
            return;
        }
        let (assigned, listens) = (&*self.assigned, self.control.is_open());
        let Some(ledger) = &mut self.ledger else { return };
        let Some(restored) = ledger.look_after_names(assigned, listens, self.capture.as_mut())
        else {
            return;
        };
        if let Some(socket) = restored.socket {
            self.control.listen(socket);
        }
        // It may have settled while there was nothing to listen in.
        if self.is_settled {
            self.open_to_others();
        }
        if restored.group_is_closed {
            self.engine.tell(Input::Ask(Ask::Order { reason: Reason::GroupClosed, within: None }));
            self.hurry();
        }
    }
}
