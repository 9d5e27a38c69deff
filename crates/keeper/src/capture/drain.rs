//! Output that outlives the tree: read until it is quiet, but not for ever.

use super::Capture;
use fullstop_core::words::Moment;
use fullstop_protocol::Drain;
use std::time::Duration;

/// A drain under way.
#[derive(Debug)]
pub struct Draining {
    drain: Drain,
    /// Silence until then is the end.
    quiet_at: Moment,
    /// Whatever comes.
    end_at: Moment,
    /// What was in the pipes when the tree was gone: its last words, which a slow owner
    /// gets in its own time, unless somebody wants the end.
    owed: u64,
    wanted: bool,
}

impl Draining {
    /// `wanted`: somebody wants the end; `since`: how long the last step has taken.
    pub fn new(
        capture: &mut Capture,
        drain: Drain,
        wanted: bool,
        since: Duration,
        now: Moment,
    ) -> Draining {
        capture.let_go_of_side();
        let together = drain.together().saturating_sub(since);
        Draining {
            drain,
            quiet_at: now + drain.quiet,
            end_at: now + drain.most.min(together),
            owed: capture.waiting(),
            wanted,
        }
    }

    /// Somebody wants the end now.
    pub fn hurry(&mut self) {
        self.wanted = true;
    }

    /// Somebody does not want to wait for anything any more.
    pub fn cut(&mut self, now: Moment) {
        self.wanted = true;
        self.end_at = self.end_at.min(now);
    }

    pub fn saw(&mut self, bytes: u64, now: Moment) {
        self.owed = self.owed.saturating_sub(bytes);
        if bytes > 0 {
            self.quiet_at = now + self.drain.quiet;
        }
    }

    /// Whether it is waited for an owner, who may take as long as it likes.
    fn waits_for_owner(&self, capture: &Capture) -> bool {
        !self.wanted && (capture.owner_is_behind() || capture.owner_is_asked())
    }

    pub fn is_over(&mut self, capture: &Capture, now: Moment) -> bool {
        if capture.is_over() && !capture.owner_is_behind() && !capture.owner_is_asked() {
            return true;
        }
        if self.waits_for_owner(capture) && (self.owed > 0 || capture.is_over()) {
            // The clocks begin once the owner has what it is owed.
            self.quiet_at = now + self.drain.quiet;
            self.end_at = self.end_at.max(now + self.drain.quiet);
            return false;
        }
        let quiet = self.quiet_at <= now && !capture.owner_is_behind();
        quiet || self.end_at <= now
    }

    pub fn patience(&self, capture: &Capture, now: Moment) -> Duration {
        if self.waits_for_owner(capture) {
            return self.drain.quiet;
        }
        if capture.owner_is_behind() {
            return self.end_at.since(now);
        }
        self.quiet_at.min(self.end_at).since(now)
    }
}
