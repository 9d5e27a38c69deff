//! What the guard hears: signals for the command, asks to stop, job control.

use super::{Guard, patience};
use crate::asker;
use crate::lifeline::ToKeeper;
use crate::terminal::Terminal;
use fullstop_cage::linux::{
    Heard, PinnedProcess, group_of, now, own_group, own_session, stop_self_by,
};
use fullstop_core::machine::Ask;
use fullstop_core::signal::Signal;
use rustix::process::getpid;

impl Guard<'_> {
    /// Returns whether we were continued.
    pub(super) fn hear_signals(&mut self) -> bool {
        let mut continued = false;
        if self.hear_pending(&mut continued) && !self.is_to_stop_again(&mut continued) {
            self.continue_leader();
        }
        continued
    }

    /// Looks once more, as late as possible.
    fn is_to_stop_again(&mut self, continued: &mut bool) -> bool {
        if !self.leader_is_stopped() {
            return true;
        }
        self.stops_heard = false;
        self.hear_pending(continued);
        self.stops_heard
    }

    /// Returns whether the leader is to be continued.
    fn hear_pending(&mut self, continued: &mut bool) -> bool {
        let mut wake = false;
        while let Some(heard) = self.signals.next() {
            let message = match heard.signal {
                Signal::CHLD => continue,
                Signal::CONT => {
                    *continued = true;
                    // The keeper's says that the leader goes on already.
                    wake |= heard.sender != self.keeper.pid();
                    continue;
                }
                // Without a terminal there is no job to be stopped.
                Signal::TSTP | Signal::TTIN | Signal::TTOU if self.terminal.is_none() => {
                    ToKeeper::Forward(heard.signal)
                }
                // A Ctrl-Z after it: what was continued is to stop again.
                Signal::TSTP | Signal::TTIN | Signal::TTOU => {
                    wake = false;
                    self.stops_heard = true;
                    if !heard.by_kernel {
                        self.stop_leader(heard.signal);
                        continue;
                    }
                    ToKeeper::StoppedByHand
                }
                Signal::INT | Signal::TERM | Signal::HUP | Signal::QUIT => {
                    let terminal = self.came_from_terminal(heard);
                    self.asked.get_or_insert(heard.signal);
                    let ask = if terminal { Ask::Terminal } else { Ask::Signal };
                    ToKeeper::Ask(ask(heard.signal), asker::of_sender(heard))
                }
                // An alarm that was set before we were executed is the command's.
                Signal::ALRM => ToKeeper::Forward(heard.signal),
                // What the kernel sends of these (a resize) goes to the whole group, or is
                // about our own files, in our own name.
                _ if heard.by_kernel || heard.sender == getpid().as_raw_pid() => continue,
                other => ToKeeper::Forward(other),
            };
            // What else the terminal sends starts nothing.
            if matches!(message, ToKeeper::Ask(Ask::Signal(_) | Ask::Terminal(Signal::HUP), _)) {
                self.expect_an_end();
            }
            self.unsent.push_back(message);
        }
        self.flush();
        wake
    }

    /// Whoever sent this may have meant the whole job (editors do), or us alone.
    fn stop_leader(&self, signal: Signal) {
        if let Some(leader) = self.leader.as_ref().filter(|leader| !leader.is_stopped()) {
            let _ = leader.send(signal);
        }
    }

    /// The shell continues the whole job; a leader that is not in it, or was not
    /// meant by whoever continued us alone, is continued by us. Not by the keeper:
    /// by the time it hears, another Ctrl-Z may have stopped everybody again.
    fn continue_leader(&self) {
        if let Some(leader) = self.leader.as_ref().filter(|leader| leader.is_stopped()) {
            let _ = leader.send(Signal::CONT);
        }
    }

    /// Nothing asked is lost, even if the keeper has no room for it now.
    fn flush(&mut self) {
        while let Some(message) = self.unsent.pop_front() {
            if !self.lifeline.send(&message, None) {
                return self.unsent.push_front(message);
            }
        }
    }

    /// A keeper that was stopped, or spins, does not protect its run.
    fn expect_an_end(&mut self) {
        let at = now() + patience(self.assigned);
        self.give_up = Some(self.give_up.map_or(at, |earlier| earlier.min(at)));
    }

    /// Whether the leader has got this signal as well.
    ///
    /// A terminal sends to the whole foreground group. A window that closes is told
    /// to the session's leader first; a shell then tells its jobs, each as a group.
    fn came_from_terminal(&self, heard: Heard) -> bool {
        if self.terminal.is_none() || !self.leader_in_our_group() {
            return false;
        }
        let session = own_session();
        match heard.signal {
            Signal::INT | Signal::QUIT => heard.by_kernel,
            Signal::HUP if session == getpid().as_raw_pid() => false,
            // The shell may also have meant us alone: `kill -HUP PID` at its prompt.
            Signal::HUP => {
                let gone = self.terminal.as_ref().is_some_and(Terminal::is_gone);
                heard.by_kernel || (heard.sender == session && gone)
            }
            _ => false,
        }
    }

    fn leader_in_our_group(&self) -> bool {
        let group = self.leader.as_ref().and_then(|leader| group_of(leader.pid()));
        group == Some(own_group())
    }

    /// As under `time` or `nice`, the shell must see the job stop.
    pub(super) fn stop_with_leader(&mut self) {
        if self.terminal.is_none() || !self.leader_is_stopped() {
            return;
        }
        let before = now();
        stop_self_by(self.last_stop.unwrap_or(Signal::STOP));
        // The clocks of the run stood still meanwhile, and so did this one.
        self.give_up = self.give_up.map(|at| at + now().since(before));
    }

    fn leader_is_stopped(&self) -> bool {
        self.leader.as_ref().is_some_and(PinnedProcess::is_stopped)
    }
}
