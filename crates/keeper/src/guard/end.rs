//! How a guard ends: in order, or in place of a keeper that was killed.

use super::Guard;
use crate::assignment::Verbosity;
use crate::capture::Draining;
use crate::directory::leave_callers_directory;
use crate::ending::Ending;
use crate::engine::{Engine, timespec};
use crate::ledger::SETTLED;
use crate::lifeline::Outcome;
use crate::living::name_living;
use crate::name;
use crate::notes::Notes;
use crate::unshown::name_unshown;
use fullstop_cage::Cage as _;
use fullstop_cage::linux::{
    Fork, LinuxCage, PinnedProcess, fork, has_children, hold, leave, now, null_over,
};
use fullstop_core::cage::CageKind;
use fullstop_core::machine::{Input, Leader, Rest, State};
use fullstop_core::signal::Signal;
use fullstop_core::words::{Exit, Proof, Reason};
use fullstop_protocol::{EventKind, Report};
use rustix::event::{PollFd, PollFlags, poll};
use std::time::Duration;

impl Guard<'_> {
    /// The outcome of a keeper that has ended its run but could not say so.
    #[cold]
    pub(super) fn untold_outcome(&mut self) -> Option<Outcome> {
        // It may have been made to leave: no keeper leaves a child behind in order.
        if !self.left_in_order || has_children() {
            return None;
        }
        let exit = self.leader.as_ref().and_then(PinnedProcess::exit).unwrap_or(Exit::Unknown);
        let proof = match self.notes.cage {
            CageKind::Cgroup => Proof::CgroupEmpty,
            CageKind::Tree => Proof::NoChildren,
        };
        let reason = self.state.reason().unwrap_or(Reason::Exited);
        let state = State::Ended { reason, leader: Leader::Gone(exit), proof };
        Some(Outcome { state, kernel: None, error: None, named: Vec::new(), count: 0 })
    }

    /// The keeper is dead and the tree is ours: end it, at once.
    #[cold]
    #[inline(never)]
    pub(super) fn take_over(&mut self) -> Ending {
        self.sweep.abandon();
        let leader = self.leader.take();
        let known = leader.as_ref().and_then(PinnedProcess::exit);
        let cage = LinuxCage::adopt(&self.blueprint, self.mask, leader);
        let notes = std::mem::replace(&mut self.notes, Notes::new());
        let state = self.state.clone();
        let mut engine = Engine::new(self.assigned.spec.plan(), state, cage, notes);
        engine.notes.cage = engine.cage.kind();
        let told = engine.notes.steps.len();
        engine.tell(Input::KeeperDied);
        if let Some(exit) = known {
            engine.tell(Input::LeaderExited { exit, rest: Rest::Alive });
        }
        let mut show = Some(now() + SETTLED);
        loop {
            engine.look();
            engine.press();
            engine.tick();
            if engine.state.is_over() || matches!(engine.state, State::Stuck { .. }) {
                break;
            }
            if show.take_if(|at| *at <= now()).is_some() {
                self.find_record_again();
                if let Some(ledger) = &mut self.ledger {
                    ledger.reload();
                    ledger.take_over(engine.notes.state(&engine.state));
                }
            }
            engine.let_die();
            let mut fds = [PollFd::new(&self.signals, PollFlags::IN)];
            let shown = show.map(|at| at.since(now()));
            let wait = engine.patience().into_iter().chain(shown).min().map(timespec);
            let _ = poll(&mut fds, wait.as_ref());
            while self.signals.next().is_some() {}
        }
        self.find_record_again();
        if engine.state.is_over() {
            let since = engine.last_step_took();
            self.drain(&mut engine.notes, since);
        }
        engine.notes.error = Some("the keeper was killed; its guard ended the run".to_owned());
        if let Some(ledger) = &mut self.ledger {
            ledger.steps(&engine.notes.steps[told..], &engine.state);
        }
        let report = engine.notes.report(self.assigned, &engine.state);
        let report = self.write_down(report);
        self.notes.output = report.output;
        if self.assigned.verbosity > Verbosity::Quiet && engine.state.is_over() {
            say!("the keeper was killed; the run was ended in its place");
        }
        let outcome = Outcome {
            state: engine.state.clone(),
            kernel: engine.notes.kernel,
            error: None,
            count: report.survivors.len(),
            named: engine.notes.survivors.clone(),
        };
        if matches!(engine.state, State::Stuck { .. }) {
            self.leave_a_follower(engine);
        }
        self.finish(&outcome)
    }

    /// We must return, but the run stays tracked and is tried again.
    fn leave_a_follower(&mut self, mut engine: Engine<LinuxCage>) {
        if !engine.cage.follow(&engine.notes.survivors)
            || !matches!(fork(Signal::CHLD), Ok(Fork::Child))
        {
            return;
        }
        let _ = rustix::process::setsid();
        name::take(name::KEEPER, self.assigned.tag().as_ref());
        leave_callers_directory();
        null_over(&[0, 1, 2]);
        self.assigned.report.take_if(|sink| !sink.is_replaceable());
        self.terminal = None;
        self.capture = None;
        if let Some(ledger) = &mut self.ledger {
            ledger.take_over(engine.notes.state(&engine.state));
        }
        while !engine.state.is_over() {
            let wait = engine.patience().map(timespec);
            let _ = poll(&mut [], wait.as_ref());
            engine.look();
            engine.tick();
        }
        let report = engine.notes.report(self.assigned, &engine.state);
        self.write_down(report);
        leave(0)
    }

    /// Keeps what the tree wrote last, in place of a keeper that could not. Nobody can
    /// give us orders meanwhile, so that no owner is waited for.
    fn drain(&mut self, notes: &mut Notes, since: Duration) {
        let Some(capture) = &mut self.capture else { return };
        capture.resume();
        let mut draining = Draining::new(capture, self.assigned.spec.drain, true, since, now());
        loop {
            let came = capture.service();
            draining.saw(came.bytes, now());
            for (stream, why) in came.failed {
                if let Some(ledger) = &mut self.ledger {
                    ledger.event(EventKind::LogFailed { stream, why });
                }
            }
            if draining.is_over(capture, now()) {
                break;
            }
            // A signal is an ask, and so is the second one.
            let mut fds = vec![PollFd::new(&self.signals, PollFlags::IN)];
            fds.extend(capture.interest(false));
            let _ = poll(&mut fds, Some(&timespec(draining.patience(capture, now()))));
            drop(fds);
            while let Some(heard) = self.signals.next() {
                if !matches!(heard.signal, Signal::CHLD | Signal::CONT) {
                    draining.hurry();
                }
            }
        }
        notes.drained = Some(capture.is_over());
        if !capture.is_over() {
            notes.holders = capture.holders(&[]);
        }
        capture.close();
        notes.output = capture.captured();
    }

    /// The directory that we hold may have been removed, and restored by the keeper.
    fn find_record_again(&mut self) {
        if let Some(ledger) = &mut self.ledger {
            ledger.find_again(self.assigned, self.capture.as_mut());
        }
    }

    /// In place of a keeper that could not.
    fn write_down(&mut self, mut report: Report) -> Report {
        let unwritten = self.ledger.as_mut().and_then(|ledger| {
            ledger.reload();
            report.asked = report.asked.take().or_else(|| ledger.asker().cloned());
            ledger.report(self.assigned, &report)
        });
        self.warning = self.assigned.write_report(&report, unwritten);
        self.reported = true;
        report
    }

    /// Says what must be said, gives the terminal back.
    #[inline(never)]
    pub(super) fn finish(&mut self, outcome: &Outcome) -> Ending {
        hold(&[Signal::TTOU]);
        if let Some(terminal) = &mut self.terminal {
            terminal.clear();
            // A command that left by itself has left the terminal as it wanted it.
            if !left_by_itself(&outcome.state) {
                terminal.restore();
            }
        }
        let error = outcome.error.as_ref().map(|(_, why)| why.clone());
        // A keeper that died before it had written the report leaves that to us.
        if !self.reported && outcome.state.reason().is_some() {
            self.find_record_again();
            let mut notes = std::mem::replace(&mut self.notes, Notes::new());
            if outcome.state.is_over() {
                self.drain(&mut notes, Duration::ZERO);
            }
            self.notes = notes;
            self.notes.error.clone_from(&error);
            self.notes.kernel = outcome.kernel;
            if matches!(outcome.state, State::Released { .. }) {
                self.notes.released.clone_from(&outcome.named);
            }
            let report = self.notes.report(self.assigned, &outcome.state);
            self.write_down(report);
        }
        for why in error.into_iter().chain(self.warning.take()) {
            say!("{why}");
        }
        for line in name_living(&self.notes.state(&outcome.state), outcome.count, &outcome.named) {
            say!("{line}");
        }
        for line in name_unshown(&self.assigned.launch.id, &self.notes.output) {
            say!("{line}");
        }
        Ending::of(outcome, self.asked).unless_refused(&self.notes.output)
    }
}

fn left_by_itself(state: &State) -> bool {
    let reason = state.reason() == Some(Reason::Exited);
    reason && matches!(state.leader(), Leader::Gone(Exit::Code(_)))
}
