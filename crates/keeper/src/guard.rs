//! The guard: the keeper's parent, and in the foreground `fullstop run` itself.
//!
//! It passes signals on, waits, and ends as the command did. If the keeper dies,
//! the whole tree becomes its own, and it ends it at once.

use crate::ending::{Ending, FAILED};
use crate::engine::{Engine, timespec};
use crate::keeper::{Inheritance, NAME, keep};
use crate::lifeline::{Bell, Came, Lifeline, Outcome, ToGuard, ToKeeper};
use crate::record::{Record, Sink};
use crate::spec::{Loudness, Spec};
use crate::terminal::Terminal;
use fullstop_cage::Cage as _;
use fullstop_cage::linux::{
    Blueprint, Change, Fork, Heard, Held, LinuxCage, Mask, Signals, Waited, close_all_but,
    disguise, fork, group_of, hold, leave, now, null_over, own_group, own_session, stop_self_by,
    wait_for,
};
use fullstop_core::machine::{Ask, Input, Leader, Rest, State};
use fullstop_core::report::{CageKind, Member};
use fullstop_core::signal::Signal;
use fullstop_core::words::{Exit, Moment, Proof, Reason};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{getpid, set_child_subreaper};
use std::collections::VecDeque;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

/// A stop that is over sooner than this is not worth a line.
const SHOW_AFTER: Duration = Duration::from_millis(300);
const SHOW_EVERY: Duration = Duration::from_millis(200);

/// What the process that becomes the guard brings along.
pub struct Post {
    pub mask: Mask,
    pub signals: Signals,
    pub terminal: Option<Terminal>,
    /// Whose death means that nobody wants the run any more.
    pub hosts: Vec<OwnedFd>,
}

struct Guard<'a> {
    spec: &'a mut Spec,
    blueprint: Blueprint,
    mask: Mask,
    signals: Signals,
    terminal: Option<Terminal>,
    lifeline: Lifeline,
    bell: Bell,
    keeper: Held,
    leader: Option<Held>,
    record: Record,
    /// The last state the keeper told.
    state: State,
    alive: usize,
    stopping_since: Option<Moment>,
    /// What the leader was last stopped by.
    last_stop: Option<Signal>,
    stops_heard: bool,
    /// The signal that first asked for a stop.
    asked: Option<Signal>,
    outcome: Option<Outcome>,
    /// The report is written, or could not be.
    reported: bool,
    warning: Option<String>,
    /// The keeper exited by itself: there was nothing left to keep.
    left_in_order: bool,
    /// What the keeper has had no room for yet.
    unsent: VecDeque<ToKeeper>,
    /// When a keeper that was asked to stop is not waited for any longer.
    give_up: Option<Moment>,
}

/// Guards one run from before its birth to its end.
pub fn guard(spec: &mut Spec, post: Post) -> Ending {
    match begin(spec, post) {
        Ok(mut guard) => guard.watch(),
        Err(why) => {
            say!("{why}");
            Ending::Code(FAILED)
        }
    }
}

fn begin(spec: &mut Spec, post: Post) -> Result<Guard<'_>, String> {
    let Post { mask, signals, terminal, hosts } = post;
    let blueprint = Blueprint::new(spec.cage, &format!("fullstop-{}", spec.id));
    let (ours, theirs) = Lifeline::pair().map_err(|error| format!("socketpair: {error}"))?;
    let bell = Bell::new().map_err(|error| format!("eventfd: {error}"))?;
    let record = Record::new();
    set_child_subreaper(Some(getpid())).map_err(|error| format!("subreaper: {error}"))?;
    // The keeper's death must wake a guard that was stopped by Ctrl-Z.
    let forked = fork(Signal::CONT).map_err(|error| format!("cannot fork: {error}"))?;
    let keeper = match forked {
        Fork::Parent(keeper) => keeper,
        Fork::Child => {
            drop(ours);
            let own_session = terminal.is_none();
            let shows = terminal.is_some() && spec.loudness > Loudness::Quiet;
            let watched = shows && rustix::termios::isatty(std::io::stderr().as_fd());
            drop((terminal, signals));
            let guard = Held::parent();
            keep(Inheritance {
                spec,
                blueprint: &blueprint,
                mask,
                lifeline: theirs,
                bell,
                hosts,
                guard,
                own_session,
                watched,
                record,
            })
        }
    };
    drop((theirs, hosts));
    let state = State::Running { leader: Leader::Alive, deadline: None };
    let give_up = spec.plan.timeout.map(|timeout| now() + timeout + patience(spec));
    let guard = Guard {
        spec,
        blueprint,
        mask,
        signals,
        terminal,
        lifeline: ours,
        bell,
        keeper,
        leader: None,
        record,
        state,
        alive: 0,
        stopping_since: None,
        last_stop: None,
        stops_heard: false,
        asked: None,
        outcome: None,
        reported: false,
        warning: None,
        left_in_order: false,
        unsent: VecDeque::new(),
        give_up,
    };
    guard.let_go();
    Ok(guard)
}

impl Guard<'_> {
    /// The command's descriptors are the command's alone; only stderr is kept.
    fn let_go(&self) {
        null_over(&[0, 1]);
        let mut keep = vec![self.signals.as_fd().as_raw_fd(), self.bell.as_fd().as_raw_fd()];
        keep.push(self.lifeline.descriptor());
        keep.extend(self.keeper.pidfd().map(|fd| fd.as_raw_fd()));
        keep.extend(self.terminal.as_ref().map(Terminal::descriptor));
        keep.extend(self.spec.report.as_ref().map(Sink::descriptor));
        close_all_but(&keep);
    }

    fn watch(&mut self) -> Ending {
        loop {
            self.sleep();
            let stopped = self.hear_keeper();
            let continued = self.hear_signals();
            if self.keeper_died() {
                // It may have told us its outcome with its last breath.
                self.hear_keeper();
                let stuck = |outcome: &Outcome| matches!(outcome.state, State::Stuck { .. });
                let outcome = self.outcome.take().filter(|outcome| !stuck(outcome));
                return match outcome.or_else(|| self.untold_outcome()) {
                    Some(outcome) => self.finish(&outcome),
                    None => self.take_over(),
                };
            }
            // The keeper of a stuck run stays; any other is waited for, so that
            // nothing of ours is left when we return.
            let stuck = |outcome: &mut Outcome| matches!(outcome.state, State::Stuck { .. });
            if self.reported
                && let Some(outcome) = self.outcome.take_if(stuck)
            {
                return self.finish(&outcome);
            }
            self.last_stop = stopped.or(self.last_stop);
            if stopped.is_some() || continued {
                self.stop_with_leader();
            }
            self.show();
        }
    }

    fn sleep(&self) {
        let showing = self.terminal.is_some() && self.stopping_since.is_some();
        let show = showing.then_some(SHOW_EVERY);
        let give_up = self.give_up.map(|at| at.since(now()));
        let wait = show.into_iter().chain(give_up).min().map(timespec);
        let mut fds =
            vec![PollFd::new(&self.signals, PollFlags::IN), PollFd::new(&self.bell, PollFlags::IN)];
        if !self.unsent.is_empty() {
            fds.push(PollFd::new(&self.lifeline, PollFlags::OUT));
        }
        fds.extend(self.keeper.pidfd().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        let _ = poll(&mut fds, wait.as_ref());
    }

    /// Returns whether we were continued.
    fn hear_signals(&mut self) -> bool {
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
                // A Ctrl-Z after it: what was continued is to stop again.
                Signal::TSTP | Signal::TTIN | Signal::TTOU => {
                    wake = false;
                    self.stops_heard = true;
                    if !heard.by_kernel {
                        self.stop_leader(heard.signal);
                    }
                    continue;
                }
                Signal::INT | Signal::TERM | Signal::HUP | Signal::QUIT => {
                    let terminal = self.came_from_terminal(heard);
                    self.asked.get_or_insert(heard.signal);
                    let ask = if terminal { Ask::Terminal } else { Ask::Signal };
                    ToKeeper::Ask(ask(heard.signal))
                }
                // What the kernel sends of these (a resize) goes to the whole group.
                _ if heard.by_kernel => continue,
                other => ToKeeper::Forward(other),
            };
            // What else the terminal sends starts nothing.
            if matches!(message, ToKeeper::Ask(Ask::Signal(_) | Ask::Terminal(Signal::HUP))) {
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
        let at = now() + patience(self.spec);
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

    /// Returns the signal the leader was stopped by, if that is the last word.
    fn hear_keeper(&mut self) -> Option<Signal> {
        let mut stopped = None;
        self.bell.silence();
        while let Came::Message(message, fd) = self.lifeline.receive() {
            match message {
                ToGuard::Born { pid, cage } => {
                    self.record.cage = cage;
                    self.leader = fd.and_then(|fd| Held::newborn(pid, Some(fd)));
                    if self.spec.loudness == Loudness::Verbose {
                        say!("run {} leader {pid} cage {}", self.spec.id, cage);
                    }
                }
                ToGuard::State { state, alive } => {
                    self.stopping_since.get_or_insert_with(now);
                    self.state = state;
                    self.alive = alive;
                }
                ToGuard::Step(step) => {
                    if self.spec.loudness == Loudness::Verbose {
                        say!(
                            "{} ms: {}, {} alive, {} signalled",
                            step.at_ms,
                            step.step,
                            step.alive,
                            step.signalled
                        );
                    }
                    self.record.steps.push(step);
                }
                ToGuard::Leftovers(mut some) => self.record.leftovers.append(&mut some),
                ToGuard::LeaderStopped(signal) => stopped = Some(signal),
                ToGuard::Outcome(outcome) => self.outcome = Some(outcome),
                ToGuard::Reported { warning } => {
                    self.reported = true;
                    self.warning = warning;
                }
            }
        }
        stopped
    }

    /// Waits for it only when it is dead: then the tree is already ours.
    fn keeper_died(&mut self) -> bool {
        match wait_for(self.keeper.pid()) {
            Waited::Changed { change: Change::Exited(exit), .. } => {
                self.left_in_order = exit == Exit::Code(0);
                return true;
            }
            Waited::Nobody => return true,
            Waited::Changed { change: Change::Stopped(_), .. } => {
                let _ = self.keeper.send(Signal::CONT);
            }
            Waited::Changed { .. } | Waited::NotYet | Waited::Unknown => {}
        }
        if self.give_up.is_some_and(|at| at <= now()) {
            let _ = self.keeper.send(Signal::KILL);
        }
        false
    }

    /// The outcome of a keeper that has ended its run but could not say so.
    fn untold_outcome(&mut self) -> Option<Outcome> {
        if !self.left_in_order {
            return None;
        }
        let exit = self.leader.as_ref().and_then(Held::exit).unwrap_or(Exit::Unknown);
        let proof = match self.record.cage {
            CageKind::Cgroup => Proof::CgroupEmpty,
            CageKind::Tree => Proof::NoChildren,
        };
        let reason = self.state.reason().unwrap_or(Reason::Exited);
        let state = State::Ended { reason, leader: Leader::Gone(exit), proof };
        self.reported = true;
        Some(Outcome { state, error: None, named: Vec::new(), count: 0 })
    }

    /// As under `time` or `nice`, the shell must see the job stop.
    fn stop_with_leader(&mut self) {
        if self.terminal.is_none() || !self.leader_is_stopped() {
            return;
        }
        stop_self_by(self.last_stop.unwrap_or(Signal::STOP));
    }

    fn leader_is_stopped(&self) -> bool {
        self.leader.as_ref().is_some_and(Held::is_stopped)
    }

    fn show(&mut self) {
        let Some(since) = self.stopping_since else { return };
        let now = now();
        if self.spec.loudness == Loudness::Quiet || now.since(since) < SHOW_AFTER {
            return;
        }
        if let Some(terminal) = &mut self.terminal {
            terminal.show(&self.state, self.alive, now);
        }
    }

    /// The keeper is dead and the tree is ours: end it, at once.
    fn take_over(&mut self) -> Ending {
        let leader = self.leader.take();
        let known = leader.as_ref().and_then(Held::exit);
        let cage = LinuxCage::adopt(&self.blueprint, self.mask, leader);
        let record = std::mem::replace(&mut self.record, Record::new());
        let state = self.state.clone();
        let mut engine = Engine::new(self.spec.plan.clone(), state, cage, record);
        engine.record.cage = engine.cage.kind();
        engine.tell(Input::KeeperDied);
        if let Some(exit) = known {
            engine.tell(Input::LeaderExited { exit, rest: Rest::Alive });
        }
        loop {
            engine.look();
            engine.tick();
            if engine.state.is_over() || matches!(engine.state, State::Stuck { .. }) {
                break;
            }
            engine.press();
            let mut fds = [PollFd::new(&self.signals, PollFlags::IN)];
            let wait = engine.patience().map(timespec);
            let _ = poll(&mut fds, wait.as_ref());
            while self.signals.next().is_some() {}
        }
        engine.record.error = Some("the keeper was killed; its guard ended the run".to_owned());
        let report = engine.record.report(self.spec, &engine.state);
        self.reported = true;
        self.warning = self.spec.write_report(&report);
        if self.spec.loudness > Loudness::Quiet && engine.state.is_over() {
            say!("the keeper was killed; the run was ended in its place");
        }
        let outcome = Outcome {
            state: engine.state.clone(),
            error: None,
            count: report.survivors.len(),
            named: report.survivors,
        };
        if matches!(engine.state, State::Stuck { .. }) {
            self.leave_a_follower(engine);
        }
        self.finish(&outcome)
    }

    /// We must return, but the run stays tracked and is tried again.
    fn leave_a_follower(&mut self, mut engine: Engine<LinuxCage>) {
        if !engine.cage.follow(&engine.record.survivors)
            || !matches!(fork(Signal::CHLD), Ok(Fork::Child))
        {
            return;
        }
        let _ = rustix::process::setsid();
        disguise(NAME);
        null_over(&[0, 1, 2]);
        self.spec.report.take_if(|sink| !sink.is_replaceable());
        self.terminal = None;
        while !engine.state.is_over() {
            let wait = engine.patience().map(timespec);
            let _ = poll(&mut [], wait.as_ref());
            engine.look();
            engine.tick();
        }
        let report = engine.record.report(self.spec, &engine.state);
        self.spec.write_report(&report);
        leave(0)
    }

    /// Says what must be said, gives the terminal back.
    fn finish(&mut self, outcome: &Outcome) -> Ending {
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
            self.record.error.clone_from(&error);
            if matches!(outcome.state, State::Released { .. }) {
                self.record.released.clone_from(&outcome.named);
            }
            let report = self.record.report(self.spec, &outcome.state);
            self.warning = self.spec.write_report(&report);
        }
        for why in error.into_iter().chain(self.warning.take()) {
            say!("{why}");
        }
        match &outcome.state {
            State::Stuck { .. } => name(outcome, "still alive", "stuck"),
            State::Released { .. } if outcome.count > 0 => {
                name(outcome, "released", "released, not stopped");
            }
            _ => {}
        }
        Ending::of(outcome, self.asked)
    }
}

/// How long a stop may take before its keeper is not waited for any longer.
fn patience(spec: &Spec) -> Duration {
    /// What a healthy keeper may need beyond its ladder.
    const SLACK: Duration = Duration::from_secs(1);
    let ladder = &spec.plan.ladder;
    ladder.total() + ladder.kill_patience() + SLACK
}

fn left_by_itself(state: &State) -> bool {
    let reason = state.reason() == Some(Reason::Exited);
    reason && matches!(state.leader(), Leader::Gone(Exit::Code(_)))
}

fn name(outcome: &Outcome, what: &str, verdict: &str) {
    if outcome.count == 0 {
        return say!("{verdict}: somebody is {what} who cannot be seen from here");
    }
    let processes = if outcome.count == 1 { "process" } else { "processes" };
    say!("{verdict}: {} {processes} {what}", outcome.count);
    for Member { pid, state, wchan, command, .. } in &outcome.named {
        let wchan = wchan.as_deref().unwrap_or("?");
        say!("  pid {pid} state {state} in {wchan}: {command}");
    }
    let more = outcome.count - outcome.named.len();
    if more > 0 {
        say!("  and {more} more");
    }
}
