//! What the keeper tells: its guard, the record, its host.

use super::{Keeper, PROGRESS_EVERY};
use crate::assignment::Verbosity;
use crate::engine::News;
use crate::ledger::Ledger;
use crate::lifeline::{MEMBERS_AT_ONCE, Outcome, ToGuard};
use fullstop_cage::Cage as _;
use fullstop_cage::linux::now;
use fullstop_core::machine::State;
use fullstop_core::signal::Signal;
use fullstop_protocol::{EventKind, Failure, Frame, ReplyKind, Report};
use rustix::event::poll;
use std::time::Duration;

/// How many survivors are named on stderr; the report names them all.
const NAMED: usize = 16;
/// How long counting them for a guard that shows it may take.
const COUNTING: Duration = Duration::from_millis(20);
/// How long the last word to a window may take.
const LAST_WORD: Duration = Duration::from_millis(500);

impl Keeper<'_> {
    pub(super) fn shows_progress(&self) -> bool {
        let watched = self.watched && self.lifeline.is_some();
        watched && matches!(self.engine.state, State::Stopping(_))
    }

    pub(super) fn tell_guard(&mut self, news: &News) {
        if news.leader_continued {
            // A guard that stopped with its leader goes on with it.
            let guard = self.guard.as_ref().filter(|guard| guard.is_stopped());
            let _ = guard.map(|guard| guard.send(Signal::CONT));
        }
        if let Some(lifeline) = &self.lifeline {
            if let Some(signal) = news.leader_stopped {
                lifeline.send(&ToGuard::LeaderStopped(signal), None);
                self.bell.ring();
            }
            if news.leftovers {
                for some in self.engine.notes.leftovers.chunks(MEMBERS_AT_ONCE) {
                    if !lifeline.send_surely(&ToGuard::Leftovers(some.to_vec()), &self.bell) {
                        break;
                    }
                }
            }
            for step in &self.engine.notes.steps[self.told_to_guard.steps..] {
                if !lifeline.send_surely(&ToGuard::Step(step.clone()), &self.bell) {
                    break;
                }
            }
        }
        if let Some(ledger) = &mut self.ledger {
            // The end itself tells of a leader that was the last.
            if let Some(exit) = news.exit.filter(|_| !self.engine.state.is_over()) {
                ledger.event(EventKind::LeaderExited { exit });
            }
            ledger.asked(self.engine.notes.asked.as_ref());
            ledger.steps(&self.engine.notes.steps[self.told_to_guard.steps..], &self.engine.state);
        }
        self.told_to_guard.steps = self.engine.notes.steps.len();
        self.tell_state();
        self.tell_outcome();
    }

    /// Writes the state down, which tells whoever follows the run; and its birth, to the
    /// host.
    pub(super) fn write_state_and_tell_host(&mut self, news: &News) {
        if let Some(ledger) = &mut self.ledger {
            ledger.state(&self.engine.state, &self.engine.notes);
        }
        if news.born && self.control.has_host() {
            let accepted = self.accepted();
            self.control.tell_host(&accepted);
        }
    }

    /// Whatever ended before it could be said that it began.
    pub(super) fn answer_host(&mut self) {
        if self.control.has_host() {
            let answer = match &self.engine.failure {
                Some((status, why)) => ReplyKind::Failed(Failure::of_status(*status, why.clone())),
                None => self.accepted(),
            };
            self.control.tell_host(&answer);
        }
    }

    /// The guard needs the state only from the moment it carries a reason.
    fn tell_state(&mut self) {
        let state = &self.engine.state;
        if !matches!(state, State::Stopping(_)) {
            return;
        }
        let count_due =
            self.shows_progress() && now().since(self.told_to_guard.counted) >= PROGRESS_EVERY;
        if self.told_to_guard.state.as_ref() == Some(state) && !count_due {
            return;
        }
        let alive = if self.shows_progress() { self.engine.cage.count(COUNTING) } else { 0 };
        let state = &self.engine.state;
        if let Some(lifeline) = &self.lifeline {
            lifeline.send(&ToGuard::State { state: state.clone(), alive }, None);
            if self.watched || self.assigned.verbosity == Verbosity::Verbose {
                self.bell.ring();
            }
        }
        self.told_to_guard.state = Some(state.clone());
        self.told_to_guard.counted = now();
    }

    /// Whether it has ended, or got stuck, since `before`.
    fn is_news(&self, before: Option<&State>) -> bool {
        let stuck = |state: &State| matches!(state, State::Stuck { .. });
        let state = &self.engine.state;
        let said = before.is_some_and(|said| stuck(said) == stuck(state));
        !said && (stuck(state) || state.is_over())
    }

    /// Tells the guard how it ended, before anything else is made of it: no death of
    /// ours may turn a run that is over into one that has to be ended.
    fn tell_outcome(&mut self) {
        if !self.is_news(self.told_to_guard.outcome.as_ref()) {
            return;
        }
        let state = self.engine.state.clone();
        let notes = &self.engine.notes;
        let stuck = matches!(state, State::Stuck { .. });
        let named = if stuck { &notes.survivors } else { &notes.released };
        let outcome = Outcome {
            state: state.clone(),
            kernel: notes.kernel,
            error: self.engine.failure.clone(),
            named: named.iter().take(NAMED).cloned().collect(),
            count: named.len(),
        };
        if let Some(lifeline) = &self.lifeline {
            lifeline.send_surely(&ToGuard::Outcome(outcome), &self.bell);
            if self.capture.is_some() {
                // It is not to lose its patience while the output is drained.
                self.bell.ring();
            }
        }
        self.told_to_guard.outcome = Some(state);
    }

    /// Writes the report and lets the guard go, when it ended or got stuck.
    pub(super) fn report(&mut self) {
        if !self.is_news(self.told_to_guard.reported.as_ref()) {
            return;
        }
        let state = self.engine.state.clone();
        let stuck = matches!(state, State::Stuck { .. });
        if stuck {
            self.note_output(false);
        }
        let report = self.engine.notes.report(self.assigned, &state);
        // A run that never began leaves no trace.
        if self.engine.no_room && state.is_over() {
            let _ = self.ledger.take().map(Ledger::abandon);
        }
        let assigned = &*self.assigned;
        let unwritten = self.ledger.as_mut().and_then(|ledger| ledger.report(assigned, &report));
        let warning = self.assigned.write_report(&report, unwritten);
        // That a keeper leaves in order says as much.
        if let Some(lifeline) = self.lifeline.as_ref().filter(|_| stuck || warning.is_some()) {
            lifeline.send_surely(&ToGuard::Reported { warning }, &self.bell);
        }
        self.told_to_guard.reported = Some(state);
        self.answer_host();
        self.tell_windows(&report);
        if matches!(self.engine.state, State::Ended { .. }) {
            self.last_sample();
        }
        self.control.drain();
        if stuck {
            self.bell.ring();
            // The guard leaves now; what it leaves open must not be held by us.
            if self.capture.as_ref().is_none_or(|capture| capture.tty.is_none()) {
                self.engine.feed = None;
            }
            self.let_owner_go();
            self.assigned.report.take_if(|sink| !sink.is_replaceable());
        }
    }

    /// The last word to every window, and a moment for it to arrive.
    fn tell_windows(&mut self, report: &Report) {
        let tty = self.capture.as_mut().and_then(|capture| capture.tty.as_mut());
        let Some(tty) = tty.filter(|tty| !tty.windows.is_empty()) else { return };
        tty.tell_end(&Frame::Report(serde_json::to_vec(report).unwrap_or_default()));
        let until = now() + LAST_WORD;
        while !tty.windows.is_told() && now() < until {
            let mut fds: Vec<_> = tty.windows.interest(false).collect();
            let _ = poll(&mut fds, Some(&crate::engine::timespec(until.since(now()))));
            drop(fds);
            tty.flush_windows();
        }
    }
}
