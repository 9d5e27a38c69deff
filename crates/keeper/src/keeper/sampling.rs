//! What only the keeper knows of its run, told to those who subscribe: its members, their
//! number, what they use. It is counted only while somebody subscribes.

use super::Keeper;
use fullstop_cage::Cage as _;
use fullstop_cage::linux::now;
use fullstop_core::words::Moment;
use fullstop_protocol::{Census, ReplyKind, Timestamp};
use std::time::Duration;

/// How often a subscriber is told.
const EVERY: Duration = Duration::from_secs(1);
/// How long members are looked for: others wait meanwhile.
const COUNTING: Duration = Duration::from_millis(100);

impl Keeper<'_> {
    pub(super) fn take_census(&mut self) -> Census {
        let members = self.engine.cage.census(COUNTING);
        let memory_bytes = members.iter().map(|member| member.memory_bytes).sum();
        let alive = members.len();
        let members = if alive > Census::MOST_NAMED { Vec::new() } else { members };
        Census { at: Timestamp::now(), alive, memory_bytes, members }
    }

    /// The first sample comes at once.
    pub(super) fn subscribe(&mut self, client: usize, id: u64) {
        self.control.subscribe(client, id);
        self.sample_at = Some(Moment::default());
    }

    /// How long nobody needs a sample.
    pub(super) fn until_sample(&self) -> Option<Duration> {
        let at = self.sample_at.filter(|_| !self.engine.state.is_killing())?;
        Some(at.since(now()))
    }

    /// Tells the subscribers, if it is time to. The last step needs every moment.
    pub(super) fn sample(&mut self) {
        if self.sample_at.is_none_or(|at| now() < at) || self.engine.state.is_killing() {
            return;
        }
        if !self.control.has_subscribers() {
            return self.sample_at = None;
        }
        let census = self.take_census();
        let cpu_ms = u64::try_from(self.engine.cage.cpu_time().as_millis()).unwrap_or(u64::MAX);
        self.control.tell_subscribers(&ReplyKind::Sample {
            census,
            cpu_ms,
            wrote_at: self.wrote_at,
        });
        self.sample_at = Some(now() + EVERY);
    }
}
