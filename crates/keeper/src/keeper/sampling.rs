//! What only the keeper knows of its run, told to those who subscribe: its members, their
//! number, what they use, who has died. It is counted only while somebody subscribes.

use super::Keeper;
use crate::roster::Roster;
use fullstop_cage::Cage as _;
use fullstop_cage::linux::now;
use fullstop_core::cage::Member;
use fullstop_core::words::Moment;
use fullstop_protocol::{Census, ReplyKind, Timestamp};
use std::time::Duration;

/// How often a subscriber is told.
const EVERY: Duration = Duration::from_secs(1);
/// How long members are looked for: others wait meanwhile.
const COUNTING: Duration = Duration::from_millis(100);

/// The next sample, and what the last one has told.
#[derive(Debug)]
pub(super) struct Sampling {
    at: Moment,
    roster: Roster,
}

impl Keeper<'_> {
    /// However often it is asked for, the keeper spends half of its time on it at most.
    pub(super) fn take_census(&mut self) -> Census {
        if let Some((taken, census)) = &self.last_census
            && (now().since(*taken) < COUNTING || self.engine.state.is_killing())
        {
            return census.clone();
        }
        let members = self.engine.cage.census(COUNTING);
        let census = self.census_of(members);
        self.last_census = Some((now(), census.clone()));
        census
    }

    fn census_of(&self, members: Vec<Member>) -> Census {
        let alive = members.len();
        let memory_bytes = members.iter().map(|member| member.memory_bytes).sum();
        let notes = &self.engine.notes;
        let current = notes.current_step(&self.engine.state);
        let named = if alive > Census::MOST_NAMED { Vec::new() } else { members };
        let members = named.into_iter().map(|member| notes.reached.track(member, current));
        Census { at: Timestamp::now(), alive, memory_bytes, members: members.collect() }
    }

    /// The first sample comes at once.
    pub(super) fn subscribe(&mut self, client: usize, id: u64) {
        self.control.subscribe(client, id);
        let roster = self.sampling.take().map(|sampling| sampling.roster).unwrap_or_default();
        self.engine.died.get_or_insert_default();
        self.sampling = Some(Sampling { at: Moment::default(), roster });
    }

    /// How long nobody needs a sample.
    pub(super) fn until_sample(&self) -> Option<Duration> {
        let state = &self.engine.state;
        let is_last = state.is_killing() || state.is_over();
        let sampling = self.sampling.as_ref().filter(|_| !is_last)?;
        Some(sampling.at.since(now()))
    }

    pub(super) fn note_deaths(&mut self) {
        if let (Some(sampling), Some(died)) = (&mut self.sampling, &mut self.engine.died) {
            died.drain(..).for_each(|pid| sampling.roster.reaped(pid));
        }
    }

    /// Tells the subscribers, if it is time to. The last step needs every moment.
    pub(super) fn sample(&mut self) {
        if self.until_sample().is_some_and(|wait| wait.is_zero()) {
            let members = self.engine.cage.census(COUNTING);
            self.tell_sample(members);
        }
    }

    /// Of a run that is over, who died last.
    pub(super) fn last_sample(&mut self) {
        self.note_deaths();
        self.tell_sample(Vec::new());
    }

    fn tell_sample(&mut self, members: Vec<Member>) {
        let Some(mut sampling) = self.sampling.take() else { return };
        if !self.control.has_subscribers() {
            self.engine.died = None;
            return;
        }
        let died = sampling.roster.sampled(&members);
        let cpu_ms = u64::try_from(self.engine.cage.cpu_time().as_millis()).unwrap_or(u64::MAX);
        let (census, wrote_at) = (self.census_of(members), self.wrote_at);
        self.control.tell_subscribers(&ReplyKind::Sample { census, died, cpu_ms, wrote_at });
        sampling.at = now() + EVERY;
        self.sampling = Some(sampling);
    }
}
