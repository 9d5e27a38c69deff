//! The guard: the keeper's parent, and in the foreground `fullstop run` itself.
//!
//! It passes signals on, waits, and ends as the command did. If the keeper dies,
//! the whole tree becomes its own, and it ends it at once.

mod end;
mod hearing;
mod opening;
mod sweeper;

use crate::assignment::{Assignment, Verbosity};
use crate::capture::{Capture, Ends};
use crate::directory::leave_callers_directory;
use crate::ending::Ending;
use crate::engine::{BLIND_NAP, timespec};
use crate::keeper::{Inheritance, keep};
use crate::ledger::Ledger;
use crate::lifeline::{Lifeline, Outcome, Received, ToGuard, ToKeeper};
use crate::name;
use crate::notes::Notes;
use crate::sink::Sink;
use crate::terminal::Terminal;
use fullstop_cage::linux::{
    Blueprint, Change, Fork, Mask, OwnTime, PinnedProcess, Signals, Waited, ask_for_short_turns,
    close_all_but, fork, now, null_over, wait_for,
};
use fullstop_cage::os::Bell;
use fullstop_cage::{cannot, plain};
use fullstop_core::clocks::Clocks;
use fullstop_core::machine::{Leader, State};
use fullstop_core::signal::Signal;
use fullstop_core::words::{Exit, Moment, Reason};
use fullstop_protocol::Placement;
use opening::open_ledger;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{getpid, set_child_subreaper};
use std::collections::VecDeque;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;
use sweeper::Sweep;

/// A stop that is over sooner than this is not worth a line.
const SHOW_AFTER: Duration = Duration::from_millis(300);
/// Whatever is over sooner sweeps at its end.
const SWEEP_AFTER: Duration = Duration::from_millis(50);
/// How often a keeper that is not waited for any longer, and does not die, is killed.
const KILL_AGAIN: Duration = Duration::from_secs(1);
const SHOW_EVERY: Duration = Duration::from_millis(200);

/// What the process that becomes the guard brings along.
pub struct Post {
    pub mask: Mask,
    pub signals: Signals,
    pub terminal: Option<Terminal>,
    /// Pidfds of the hosts, by whose death the run's `on_host_exit` applies.
    pub hosts: Vec<OwnedFd>,
    /// The line to the program that asked for the run, if the run stands apart.
    pub host: Option<OwnedFd>,
}

struct Guard<'a> {
    assigned: &'a mut Assignment,
    blueprint: Blueprint,
    mask: Mask,
    signals: Signals,
    terminal: Option<Terminal>,
    lifeline: Lifeline,
    /// Rung by the keeper for a message that cannot wait until its end. A guard that sleeps
    /// through the others costs nothing.
    bell: Bell,
    keeper: PinnedProcess,
    sweep: Sweep,
    ledger: Option<Ledger>,
    /// The same output that the keeper holds, for the case that it is killed.
    capture: Option<Capture>,
    leader: Option<PinnedProcess>,
    notes: Notes,
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
    /// When a keeper that was asked to stop should have done so.
    give_up: Option<Moment>,
    /// How long a keeper that is past `give_up` has run or slept since.
    overtime: Option<(OwnTime, Duration)>,
}

/// Guards one run from before its birth to its end.
pub fn guard(assigned: &mut Assignment, post: Post) -> Result<Ending, String> {
    match begin(assigned, post)? {
        Begun::Guard(mut guard) => {
            let ending = guard.watch();
            guard.sweep.finish(guard.assigned);
            Ok(ending)
        }
        Begun::Keeper(inheritance) => keep(inheritance),
    }
}

/// Which of the two this process is. Both are large and live as long as the run, but not on the
/// stack of the beginning, which is gone by then.
enum Begun<'a> {
    Guard(Box<Guard<'a>>),
    Keeper(Box<Inheritance<'a>>),
}

/// From here on there are two processes, which hold the same output.
fn split(
    assigned: &Assignment,
    ledger: Option<&Ledger>,
) -> Result<((Option<Capture>, Ends), Fork), String> {
    let output = Capture::new(assigned, ledger)?;
    set_child_subreaper(Some(getpid()))
        .map_err(|error| format!("cannot adopt orphans: {}", plain(&error.into())))?;
    // The keeper's death must wake a guard that was stopped by Ctrl-Z.
    let forked = fork(Signal::CONT).map_err(cannot("fork the keeper"))?;
    Ok((output, forked))
}

#[inline(never)]
fn begin(assigned: &mut Assignment, post: Post) -> Result<Begun<'_>, String> {
    let Post { mask, signals, terminal, hosts, host } = post;
    let (ours, theirs) = Lifeline::pair().map_err(cannot("make the lifeline (socketpair)"))?;
    let bell = Bell::new().map_err(cannot("make a wake-up (eventfd)"))?;
    let notes = Notes::new();
    let (blueprint, ledger) = open_ledger(assigned, notes.started_at)?;
    name::show(name::GUARD, assigned.tag().as_ref());
    let ((mut capture, ends), forked) = match split(assigned, ledger.as_ref()) {
        Ok(done) => done,
        // A run that never began leaves no trace.
        Err(why) => {
            let _ = ledger.map(Ledger::abandon);
            return Err(why);
        }
    };
    let keeper = match forked {
        Fork::Parent(keeper) => keeper,
        Fork::Child => {
            drop(ours);
            let own_session = terminal.is_none() || assigned.spec.output.terminal().is_some();
            let shows = terminal.is_some() && assigned.verbosity > Verbosity::Quiet;
            let watched = shows && rustix::termios::isatty(std::io::stderr().as_fd());
            drop((terminal, signals));
            let guard = PinnedProcess::parent();
            return Ok(Begun::Keeper(Box::new(Inheritance {
                assigned,
                blueprint,
                mask,
                lifeline: theirs,
                bell,
                hosts,
                guard,
                own_session,
                watched,
                notes,
                ledger,
                capture,
                ends,
                host,
            })));
        }
    };
    drop((theirs, hosts, host, ends));
    assigned.launch.secrets.clear();
    let _ = capture.as_mut().map(Capture::let_go_of_side);
    // Where there is no record there is nothing to sweep.
    let sweep = match &ledger {
        Some(_) => Sweep::Later(now() + SWEEP_AFTER),
        None => Sweep::Done,
    };
    let state = State::Running { leader: Leader::Alive, clocks: Clocks::default() };
    let give_up = assigned.spec.timeout.map(|timeout| now() + timeout + patience(assigned));
    let guard = Box::new(Guard {
        assigned,
        blueprint,
        mask,
        signals,
        terminal,
        lifeline: ours,
        bell,
        keeper,
        sweep,
        ledger,
        capture,
        leader: None,
        notes,
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
        overtime: None,
    });
    guard.let_go();
    // It must be let in even to die: its death is what its keeper waits for.
    ask_for_short_turns();
    Ok(Begun::Guard(guard))
}

impl Guard<'_> {
    /// The command's descriptors are the command's alone; only stderr is kept.
    fn let_go(&self) {
        null_over(if self.assigned.launch.placement == Placement::Foreground {
            &[0, 1]
        } else {
            &[0, 1, 2]
        });
        let mut keep = vec![self.signals.as_fd().as_raw_fd(), self.bell.as_fd().as_raw_fd()];
        keep.push(self.lifeline.descriptor());
        keep.extend(self.keeper.pidfd().map(|fd| fd.as_raw_fd()));
        keep.extend(self.terminal.as_ref().map(Terminal::descriptor));
        keep.extend(self.ledger.as_ref().map(Ledger::descriptors).into_iter().flatten());
        keep.extend(self.assigned.report.as_ref().map(Sink::descriptor));
        keep.extend(self.capture.iter().flat_map(Capture::descriptors));
        close_all_but(&keep);
        // On a terminal it stands for the command: terminals open a new window where the
        // process in their foreground is.
        if self.terminal.is_none() {
            leave_callers_directory();
        }
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
        let wait = show.into_iter().chain(give_up).chain(self.sweep.patience()).min().map(timespec);
        let mut fds =
            vec![PollFd::new(&self.signals, PollFlags::IN), PollFd::new(&self.bell, PollFlags::IN)];
        if !self.unsent.is_empty() {
            fds.push(PollFd::new(&self.lifeline, PollFlags::OUT));
        }
        fds.extend(self.keeper.pidfd().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        if poll(&mut fds, wait.as_ref()).is_err_and(|error| error != Errno::INTR) {
            std::thread::sleep(BLIND_NAP);
        }
    }

    /// Returns the signal the leader was stopped by, if that is the last word.
    fn hear_keeper(&mut self) -> Option<Signal> {
        let mut stopped = None;
        self.bell.silence();
        while let Received::Message(message, fd) = self.lifeline.receive() {
            match message {
                ToGuard::Born { pid, cage } => {
                    self.notes.cage = cage;
                    self.leader = fd.and_then(|fd| PinnedProcess::newborn(pid, Some(fd)));
                    if self.assigned.verbosity == Verbosity::Verbose {
                        say!("run {} leader {pid} cage {}", self.assigned.launch.id, cage);
                    }
                }
                ToGuard::State { state, alive } => {
                    self.stopping_since.get_or_insert_with(now);
                    self.state = state;
                    self.alive = alive;
                }
                ToGuard::Step(step) => {
                    if self.assigned.verbosity == Verbosity::Verbose {
                        say!(
                            "{} ms: {}, {} alive, {} signalled",
                            step.at_ms,
                            step.step,
                            step.alive,
                            step.signalled
                        );
                    }
                    self.notes.steps.push(step);
                }
                ToGuard::Leftovers(mut some) => self.notes.leftovers.append(&mut some),
                ToGuard::LeaderStopped(signal) => stopped = Some(signal),
                ToGuard::StreamOver(stream) => {
                    if let Some(capture) = &mut self.capture {
                        capture.drop_stream(stream);
                    }
                }
                ToGuard::Hosted(host) => {
                    let _ = self.ledger.as_mut().map(|ledger| ledger.know_host(host.as_ref()));
                    self.assigned.launch.host = host;
                }
                ToGuard::Unshown(output) => {
                    let _ = self.capture.as_mut().map(|capture| capture.know_refused(&output));
                    self.notes.output = output;
                }
                ToGuard::Outcome(outcome) => {
                    // Its output may take its time, unless the end is wanted at once.
                    let exited = outcome.state.reason() == Some(Reason::Exited);
                    if outcome.state.is_over() && exited && self.asked.is_none() {
                        self.give_up = None;
                    }
                    self.outcome = Some(outcome);
                }
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
        self.sweep.service(self.assigned);
        // Asked first: a keeper that is dead by now can be waited for, unless a tracer, which
        // may be one of the tree, holds the zombie.
        let is_dead = self.keeper.is_dead();
        match wait_for(self.keeper.pid()) {
            Waited::Changed { change: Change::Exited(exit), .. } => {
                self.left_in_order = exit == Exit::Code(0);
                self.reported |= self.left_in_order;
                return true;
            }
            Waited::Nobody => return true,
            Waited::Changed { change: Change::Stopped(_), .. } => {
                let _ = self.keeper.send(Signal::CONT);
            }
            Waited::Changed { .. } | Waited::NotYet | Waited::Unknown => {}
        }
        if is_dead {
            return true;
        }
        if self.give_up.is_some_and(|at| at <= now()) && self.keeper_hangs() {
            let _ = self.keeper.send(Signal::KILL);
            self.give_up = Some(now() + KILL_AGAIN);
        }
        false
    }

    /// A keeper that is late and only waits for a processor does not hang. It is looked
    /// at again until it has had a second for itself.
    fn keeper_hangs(&mut self) -> bool {
        const OVERTIME: Duration = Duration::from_secs(1);
        const LOOK_EVERY: Duration = Duration::from_millis(100);
        let pid = self.keeper.pid();
        let (own, had) = self.overtime.get_or_insert_with(|| (OwnTime::of(pid), Duration::ZERO));
        *had += own.look();
        self.give_up = Some(now() + LOOK_EVERY);
        *had >= OVERTIME
    }

    fn show(&mut self) {
        let Some(since) = self.stopping_since else { return };
        let now = now();
        if self.assigned.verbosity == Verbosity::Quiet || now.since(since) < SHOW_AFTER {
            return;
        }
        if let Some(terminal) = &mut self.terminal {
            terminal.show(&self.state, self.alive, now);
        }
    }
}

/// How long a stop may take.
fn patience(assigned: &Assignment) -> Duration {
    let ladder = &assigned.spec.ladder;
    let last = assigned.spec.last_step();
    ladder.total().saturating_add(last)
}
