//! The command's output on its way, the clocks that listen to it, and its end.

use super::{Keeper, Pause};
use crate::capture::{Capture, Draining};
use crate::engine::News;
use crate::lifeline::ToGuard;
use fullstop_cage::Cage as _;
use fullstop_cage::linux::now;
use fullstop_core::machine::Input;
use fullstop_core::words::{Moment, Reason};
use fullstop_protocol::{EventKind, Timestamp};
use std::time::Duration;

/// How often the use of the processor is looked at, as a part of the patience.
const LOOKS: u32 = 4;
const LOOK_AT_LEAST_EVERY: Duration = Duration::from_secs(5);
const LOOK_AT_MOST_EVERY: Duration = Duration::from_millis(20);
/// Less than a hundredth of a processor is not work: even a program that hangs wakes
/// up to look at its timers.
const IDLE_PART: u32 = 100;

/// Whether the tree uses the processor.
pub struct Idling {
    every: Duration,
    at: Moment,
    used: Duration,
}

impl Idling {
    pub fn new(patience: Duration) -> Idling {
        let every = (patience / LOOKS).clamp(LOOK_AT_MOST_EVERY, LOOK_AT_LEAST_EVERY);
        Idling { every, at: now(), used: Duration::ZERO }
    }

    pub fn patience(&self) -> Duration {
        (self.at + self.every).since(now())
    }

    /// Whether it was used since the last look.
    fn looks_busy(&mut self, used: Duration, now: Moment) -> bool {
        let (spent, passed) = (used.saturating_sub(self.used), now.since(self.at));
        (self.used, self.at) = (used, now);
        !spent.is_zero() && spent >= passed / IDLE_PART
    }
}

impl Keeper<'_> {
    /// Moves the output on, and what was typed into windows.
    pub(super) fn take_output(&mut self) {
        let Some(capture) = &mut self.capture else { return };
        let mut came = capture.service();
        if let (Some(tty), Some(feed)) = (&mut capture.tty, &mut self.engine.feed) {
            let typed = tty.hear(feed.room());
            came.refused |= tty.refused_now();
            if !typed.is_empty() {
                feed.input(&typed);
            }
            // A program that asks and does not read its answers gets no more of them.
            let answers = tty.answers();
            if !answers.is_empty() && answers.len() <= feed.room() {
                feed.input(answers.as_bytes());
            }
        }
        if came.bytes > 0 {
            self.wrote_at = Some(Timestamp::now());
            self.engine.tell(Input::Output);
        }
        if let Some(draining) = &mut self.draining {
            draining.saw(came.bytes, now());
        }
        // What the guard holds of it would keep a writer from knowing.
        for stream in came.over {
            if let Some(lifeline) = &self.lifeline {
                lifeline.send_surely(&ToGuard::StreamOver(stream), &self.bell);
                self.bell.ring();
            }
        }
        if came.refused {
            self.tell_unshown();
        }
        for (stream, why) in came.failed {
            if let Some(ledger) = &mut self.ledger {
                ledger.event(EventKind::LogFailed { stream, why });
                ledger.write();
            }
        }
    }

    /// Tells the machine what its clocks must know.
    pub(super) fn keep_clocks(&mut self, news: &News) {
        self.pause.leader_stopped |= news.leader_stopped.is_some();
        if news.leader_continued {
            self.pause = Pause::default();
            self.engine.tell(Input::Resumed);
        } else if self.pause.leader_stopped && self.pause.by_hand {
            self.engine.tell(Input::Paused);
        }
        // Who waits for a slow owner is not silent by its own choice.
        if self.capture.as_ref().is_some_and(Capture::owner_is_behind) {
            self.engine.tell(Input::Output);
        }
        // A stop that is under way has no use for it.
        self.idling.take_if(|_| self.engine.state.reason().is_some());
        let due = self.idling.as_ref().is_some_and(|idling| idling.patience().is_zero());
        if let Some(idling) = self.idling.as_mut().filter(|_| due) {
            let used = self.engine.cage.cpu_time();
            if idling.looks_busy(used, now()) {
                self.engine.tell(Input::Busy);
            }
        }
    }

    pub(super) fn hurry(&mut self) {
        self.end_wanted = true;
        if let Some(draining) = &mut self.draining {
            draining.hurry();
        }
    }

    /// Somebody wants the end at once: nothing more is waited for.
    pub(super) fn cut_drain(&mut self) {
        if let Some(draining) = &mut self.draining {
            draining.cut(now());
        }
    }

    /// Whether all output has come to its end, or is not waited for any more.
    pub(super) fn is_drained(&mut self) -> bool {
        if self.told_to_guard.reported.as_ref().is_some_and(fullstop_core::machine::State::is_over)
        {
            return true;
        }
        if self.capture.is_none() {
            return true;
        }
        // What the tree wrote last may have come after the last turn.
        self.take_output();
        let Some(capture) = &mut self.capture else { return true };
        let now = now();
        let draining = self.draining.get_or_insert_with(|| {
            let exited = self.engine.state.reason() == Some(Reason::Exited);
            let wanted = self.end_wanted || !exited;
            let since = self.engine.last_step_took();
            Draining::new(capture, self.assigned.spec.drain, wanted, since, now)
        });
        if !draining.is_over(capture, now) {
            return false;
        }
        self.note_output(true);
        true
    }

    /// Notes for the report what became of the output.
    pub(super) fn note_output(&mut self, at_the_end: bool) {
        let Some(capture) = &mut self.capture else { return };
        let drained = capture.is_over();
        if at_the_end && !drained {
            let guard = self.guard.as_ref().map(fullstop_cage::linux::PinnedProcess::pid);
            self.engine.notes.holders = capture.holders(guard.as_slice());
        }
        if at_the_end {
            capture.close();
        }
        self.engine.notes.output = capture.captured();
        self.engine.notes.drained = Some(drained);
        if self.engine.notes.output.iter().any(|stream| stream.refusal.is_some()) {
            self.tell_unshown();
        }
    }

    /// The guard says it, and ends as a command would whose output cannot be written.
    fn tell_unshown(&self) {
        if let (Some(capture), Some(lifeline)) = (&self.capture, &self.lifeline) {
            lifeline.send_surely(&ToGuard::Unshown(capture.captured()), &self.bell);
        }
    }

    /// Of a stuck run only the log goes on: whoever waits for it is let go.
    pub(super) fn let_owner_go(&mut self) {
        let _ = self.capture.as_mut().map(Capture::forget_owner);
    }
}
