//! The keeper: makes the cage, starts the leader, keeps the clocks, climbs the
//! ladder, writes the report.

use crate::control::{Control, Order};
use crate::ending::FAILED;
use crate::engine::{Engine, News, timespec};
use crate::feed::Feed;
use crate::ledger::Ledger;
use crate::lifeline::{Bell, Came, Lifeline, MEMBERS_AT_ONCE, Outcome, ToGuard, ToKeeper};
use crate::notes::Notes;
use crate::spec::{Ground, HostPolicy, Loudness, Spec};
use fullstop_cage::Cage as _;
use fullstop_cage::Command;
use fullstop_cage::linux::{
    Blueprint, Held, LinuxCage, Mask, Origin, Signals, candidates, close_all_but, disguise, leave,
    now, null_over, raise_descriptor_limit,
};
use fullstop_core::machine::{Ask, Input, State};
use fullstop_core::report::CageKind;
use fullstop_core::signal::Signal;
use fullstop_core::words::{Moment, Reason};
use fullstop_store::format::{Phase, What};
use fullstop_store::{Reply, Request};
use rustix::event::{PollFd, PollFlags, poll};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

/// The name it goes by, as long as the kernel allows.
pub const NAME: &str = "fullstop-keeper";
/// How often a guard that shows a stop under way hears of it.
const PROGRESS_EVERY: Duration = Duration::from_millis(200);
/// What is over sooner than this after its birth is written down at its end, and
/// costs nobody a wake-up.
const SETTLED: Duration = Duration::from_millis(50);
/// How often the members are then written down; only a cage without a cgroup needs it.
const ROLL_EVERY: Duration = Duration::from_secs(1);
/// How often a full disk is tried again.
const WRITE_AGAIN: Duration = Duration::from_secs(1);
/// How many survivors are named on stderr; the report names them all.
const NAMED: usize = 16;

/// What the guard hands to its keeper through the fork.
pub struct Inheritance<'a> {
    pub spec: &'a mut Spec,
    pub blueprint: &'a Blueprint,
    pub mask: Mask,
    pub lifeline: Lifeline,
    pub bell: Bell,
    /// Whose death means that nobody wants the run any more.
    pub hosts: Vec<OwnedFd>,
    pub guard: Option<Held>,
    pub own_session: bool,
    /// Whether the guard shows a stop under way.
    pub watched: bool,
    pub notes: Notes,
    pub ledger: Option<Ledger>,
    /// The line to whoever asked for the run, if it stands apart.
    pub host: Option<OwnedFd>,
}

struct Keeper<'a> {
    spec: &'a mut Spec,
    engine: Engine<LinuxCage>,
    signals: Signals,
    lifeline: Option<Lifeline>,
    bell: Bell,
    hosts: Vec<OwnedFd>,
    guard: Option<Held>,
    watched: bool,
    ledger: Option<Ledger>,
    control: Control,
    /// When it is next written down how it stands.
    roll_at: Option<Moment>,
    is_settled: bool,
    /// Signals for a command that is not born yet.
    early: Vec<Signal>,
    /// The state and the steps the guard has been told of.
    told: Told,
}

#[derive(Default)]
struct Told {
    state: Option<State>,
    steps: usize,
    reported: Option<State>,
    /// When the guard last heard how many are alive.
    counted: Moment,
}

/// Runs the keeper's whole life, until there is nothing left to keep.
pub fn keep(inheritance: Inheritance<'_>) -> ! {
    let Inheritance {
        spec,
        blueprint,
        mask,
        lifeline,
        bell,
        hosts,
        guard,
        own_session,
        watched,
        notes,
        mut ledger,
        host,
    } = inheritance;
    let mut control = Control::default();
    let _ = host.map(|host| control.host(host));
    let made = open_early(spec, &mut ledger, &mut control)
        .and_then(|()| prepare(spec, blueprint, mask, own_session));
    let (signals, cage, command, feed) = match made {
        Ok(made) => made,
        Err(why) => {
            let _ = ledger.map(Ledger::abandon);
            control.tell_host(&Reply::Failed { status: FAILED, why: why.clone() });
            control.drain();
            let state = State::Starting { born: false, deadline: None };
            let error = Some((FAILED, why));
            let outcome = Outcome { state, error, named: Vec::new(), count: 0 };
            lifeline.send(&ToGuard::Outcome(outcome), None);
            leave(0)
        }
    };
    let state = State::new(&spec.plan, now());
    let engine = Engine::new(spec.plan.clone(), state, cage, notes).with_command(command, feed);
    let mut keeper = Keeper {
        spec,
        engine,
        signals,
        lifeline: Some(lifeline),
        bell,
        hosts,
        guard,
        watched,
        ledger,
        control,
        roll_at: None,
        is_settled: false,
        early: Vec::new(),
        told: Told::default(),
    };
    let woken = keeper.give_birth();
    keeper.live(woken);
    leave(0)
}

/// Opens the run to orders before anybody is born. A run in a group must be found
/// by whoever closes that; one in the background by whoever started it. Any other
/// is opened once the command runs.
fn open_early(
    spec: &Spec,
    ledger: &mut Option<Ledger>,
    control: &mut Control,
) -> Result<(), String> {
    let needed = spec.group.is_some() || spec.ground != Ground::Front;
    if let Some(ledger) = ledger.as_mut().filter(|_| needed) {
        control.listen(ledger.listen(spec).map_err(|error| error.to_string())?);
    }
    Ok(())
}

type Made = (Signals, LinuxCage, Command, Option<Feed>);

fn prepare(
    spec: &Spec,
    blueprint: &Blueprint,
    mask: Mask,
    own_session: bool,
) -> Result<Made, String> {
    // Without it the orphans of the tree would go past us, and there is no proof.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(|errno| format!("cannot become a subreaper: {errno}"))?;
    let heard: Vec<Signal> = [Signal::TERM, Signal::INT, Signal::HUP]
        .into_iter()
        .filter(|&signal| !Origin::get().ignored(signal))
        .chain([Signal::CHLD])
        .collect();
    let signals = Signals::of(&heard).map_err(|error| format!("signalfd: {error}"))?;
    let (feed, stdin) = if spec.plan.ladder.needs_stdin() {
        let (feed, stdin) = Feed::new().map_err(|error| format!("cannot hold stdin: {error}"))?;
        (Some(feed), Some(stdin))
    } else {
        (None, None)
    };
    let program = spec.argv.first().cloned().unwrap_or_default();
    let command = Command {
        candidates: candidates(&program, spec.path().map(AsRef::as_ref)),
        program,
        argv: spec.kernel_argv(),
        env: spec.kernel_env(),
        cwd: spec.kernel_cwd(),
        own_session,
        stdin,
    };
    let cage = LinuxCage::make(blueprint, mask)?;
    Ok((signals, cage, command, feed))
}

impl Keeper<'_> {
    /// Returns whether there is something to look at already.
    fn give_birth(&mut self) -> bool {
        // A stop that came while the cage was made is obeyed before anybody is born.
        self.hear_guard();
        self.engine.tell(Input::CageReady);
        for signal in std::mem::take(&mut self.early) {
            self.engine.tell(Input::Forward(signal));
        }
        if let (Some(lifeline), Some(leader)) = (&self.lifeline, self.engine.cage.leader()) {
            let born = ToGuard::Born { pid: leader.pid(), cage: self.engine.cage.kind() };
            lifeline.send(&born, leader.pidfd());
            if self.spec.loudness == Loudness::Verbose {
                self.bell.ring();
            }
        }
        // From here on the command is on its own, and so are we.
        let _ = rustix::process::setsid();
        let woken = self.forget_the_group();
        disguise(NAME);
        self.let_go();
        raise_descriptor_limit();
        self.write_birth();
        woken
    }

    fn write_birth(&mut self) {
        let Some(ledger) = &mut self.ledger else { return };
        let cage = self.engine.cage.kind();
        ledger.born(self.engine.cage.leader().map(Held::pid), cage);
        // A sweep finds a cgroup by the spec; anybody else only by the record. And one
        // that was started to be stopped by others may hang from its first moment on.
        if cage == CageKind::Tree || self.spec.ground != Ground::Front {
            self.write_identities();
        }
        self.roll_at = Some(now() + SETTLED);
    }

    fn write_identities(&mut self) {
        let leader = self.engine.cage.leader().map(Held::pid);
        let guard = self.guard.as_ref().map(Held::pid);
        if let Some(ledger) = &mut self.ledger {
            ledger.identities(leader, guard);
        }
    }

    /// Closes whatever belongs to the command.
    fn let_go(&self) {
        null_over(&[0, 1, 2]);
        let mut keep = self.engine.cage.descriptors();
        keep.extend([self.signals.as_fd().as_raw_fd(), self.bell.as_fd().as_raw_fd()]);
        keep.extend(self.lifeline.as_ref().map(Lifeline::descriptor));
        keep.extend(self.hosts.iter().map(AsRawFd::as_raw_fd));
        keep.extend(self.guard.as_ref().and_then(Held::pidfd).map(|fd| fd.as_raw_fd()));
        keep.extend(self.control.descriptors());
        keep.extend(self.ledger.as_ref().map(Ledger::descriptors).into_iter().flatten());
        keep.extend(self.spec.report.as_ref().map(crate::sink::Sink::descriptor));
        keep.extend(self.engine.feed.as_ref().map(Feed::descriptors).unwrap_or_default());
        close_all_but(&keep);
    }

    /// What was sent to the caller's group while we were in it is the guard's to
    /// tell. It cannot be known by its sender: a signal that comes during a fork
    /// reaches the child without one. Returns whether there was any, or a SIGCHLD.
    fn forget_the_group(&self) -> bool {
        std::iter::from_fn(|| self.signals.next()).count() > 0
    }

    fn live(&mut self, mut woken: bool) {
        loop {
            if !std::mem::take(&mut woken) {
                self.sleep();
            }
            // Heard before looking, or a SIGCHLD that comes between would be lost;
            // the guard after looking, which alone tells that the command runs.
            self.hear_signals();
            let news = self.engine.look();
            self.hear_guard();
            self.engine.tick();
            self.tell_guard(&news);
            if self.engine.state.is_over() {
                return;
            }
            self.tell_watchers(&news);
            self.settle();
            self.engine.press();
        }
    }

    /// Until something happens, or the engine has something to do.
    fn sleep(&mut self) {
        let mut wait = self.engine.patience();
        if self.shows_progress() {
            wait = Some(wait.map_or(PROGRESS_EVERY, |wait| wait.min(PROGRESS_EVERY)));
        }
        let roll = self.roll_at.filter(|_| !self.engine.state.is_killing());
        let roll = roll.map(|at| at.since(now()));
        let behind = self.ledger.as_ref().filter(|ledger| ledger.is_behind()).map(|_| WRITE_AGAIN);
        let control = self.control.patience();
        let wait = wait.into_iter().chain(roll).chain(behind).chain(control).min();
        // A birth wakes nobody: a failed one ends with a SIGCHLD, and a command that
        // has just begun needs the processor more than we do.
        let mut fds = vec![PollFd::new(&self.signals, PollFlags::IN)];
        let lifeline = self.lifeline.as_ref().map(|lifeline| PollFd::new(lifeline, PollFlags::IN));
        fds.extend(lifeline);
        let hosts_at = fds.len();
        fds.extend(self.hosts.iter().map(|host| PollFd::new(host, PollFlags::IN)));
        let feed_at = fds.len();
        fds.extend(self.engine.feed.as_ref().and_then(Feed::interest));
        let control_at = fds.len();
        fds.extend(self.control.interest());
        if self.control.has_host() {
            fds.extend(
                self.engine.cage.birth_news().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)),
            );
        }
        let wait = wait.map(timespec);
        if poll(&mut fds, wait.as_ref()).is_err() {
            return;
        }
        let ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
        let host_gone = fds[hosts_at..feed_at].iter().any(ready);
        let feed_ready = fds[feed_at..control_at].iter().any(ready);
        let control_ready = fds[control_at..].iter().any(ready);
        drop(fds);
        if host_gone {
            self.hosts.clear();
            self.engine.tell(Input::HostGone);
        }
        if let Some(feed) = self.engine.feed.as_mut().filter(|_| feed_ready) {
            feed.turn();
        }
        if control_ready {
            self.hear_orders();
        }
    }

    fn hear_orders(&mut self) {
        let (orders, host_left) = self.control.turn();
        for Order { from, request } in orders {
            let reply = match request {
                Ok(request) => self.obey(&request),
                Err(why) => Reply::Refused { why },
            };
            self.control.answer(from, &reply);
        }
        self.control.tidy();
        if host_left && self.spec.on_host_exit != HostPolicy::Ignore {
            self.engine.tell(Input::HostGone);
        }
    }

    fn obey(&mut self, request: &Request) -> Reply {
        let own = self.spec.generation;
        if let Some(other) = request.generation().filter(|&generation| generation != own) {
            let why = format!("generation {other} is gone; this is generation {own}");
            return Reply::Refused { why };
        }
        match *request {
            Request::Stop { reason, .. } => self.engine.tell(Input::Ask(Ask::Order(reason))),
            Request::Kill { .. } => self.engine.tell(Input::Kill),
            Request::Signal { signal, .. } if self.engine.is_unborn() => self.early.push(signal),
            Request::Signal { signal, .. } => self.engine.tell(Input::Forward(signal)),
            Request::Watch { .. } => {}
        }
        self.accepted()
    }

    fn accepted(&mut self) -> Reply {
        Reply::Accepted {
            id: self.spec.id.clone(),
            generation: self.spec.generation,
            phase: Phase::of(&self.engine.state),
        }
    }

    /// A keeper takes these as a request, not as an order to die.
    fn hear_signals(&mut self) {
        while let Some(heard) = self.signals.next() {
            if heard.signal != Signal::CHLD {
                self.engine.tell(Input::Ask(Ask::Plain));
            }
        }
    }

    fn hear_guard(&mut self) {
        while let Some(lifeline) = &self.lifeline {
            match lifeline.receive() {
                Came::Nothing => return,
                Came::Message(ToKeeper::Ask(ask), _) => self.engine.tell(Input::Ask(ask)),
                Came::Message(ToKeeper::Forward(signal), _) if self.engine.is_unborn() => {
                    self.early.push(signal);
                }
                Came::Message(ToKeeper::Forward(signal), _) => {
                    self.engine.tell(Input::Forward(signal));
                }
                Came::Closed => {
                    self.lifeline = None;
                    self.guard = None;
                    self.engine.tell(Input::HostGone);
                }
            }
        }
    }

    fn shows_progress(&self) -> bool {
        let watched = (self.watched && self.lifeline.is_some()) || self.control.is_watched();
        watched && matches!(self.engine.state, State::Stopping(_))
    }

    fn tell_guard(&mut self, news: &News) {
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
            for step in &self.engine.notes.steps[self.told.steps..] {
                if !lifeline.send_surely(&ToGuard::Step(step.clone()), &self.bell) {
                    break;
                }
            }
        }
        if let Some(ledger) = &mut self.ledger {
            // The end itself tells of a leader that was the last.
            if let Some(exit) = news.exit.filter(|_| !self.engine.state.is_over()) {
                ledger.event(What::LeaderExited { exit });
            }
            let reason = self.engine.state.reason().unwrap_or(Reason::Exited);
            for step in &self.engine.notes.steps[self.told.steps..] {
                ledger.step(step, reason);
            }
        }
        self.told.steps = self.engine.notes.steps.len();
        self.tell_state();
        self.report();
    }

    /// Writes the state down and tells it to whoever watches.
    fn tell_watchers(&mut self, news: &News) {
        if let Some(ledger) = &mut self.ledger {
            ledger.state(&self.engine.state);
            ledger.catch_up();
        }
        if news.born && self.control.has_host() {
            let reply = self.accepted();
            self.control.tell_host(&reply);
        }
    }

    /// Opens a run that has settled to others, and writes down the members of a
    /// cage that only we could find.
    fn settle(&mut self) {
        // The last step needs every moment: a storm is not counted while it is fought.
        if self.engine.state.is_killing() || self.roll_at.is_none_or(|at| now() < at) {
            return;
        }
        if !self.is_settled {
            self.is_settled = true;
            self.write_identities();
        }
        if let Some(ledger) = self.ledger.as_mut().filter(|_| !self.control.is_open()) {
            // Without a socket the run can still be ended, by going around us.
            let _ = ledger.listen(self.spec).map(|socket| self.control.listen(socket));
        }
        let tree = self.engine.cage.kind() == CageKind::Tree;
        self.roll_at = tree.then(|| now() + ROLL_EVERY);
        if let Some(ledger) = self.ledger.as_mut().filter(|_| tree) {
            ledger.census(|known| self.engine.cage.roll(known));
        }
    }

    /// The guard needs the state only from the moment it carries a reason.
    fn tell_state(&mut self) {
        let state = &self.engine.state;
        if !matches!(state, State::Stopping(_)) {
            return;
        }
        let count_due = self.shows_progress() && now().since(self.told.counted) >= PROGRESS_EVERY;
        if self.told.state.as_ref() == Some(state) && !count_due {
            return;
        }
        let alive = if self.shows_progress() { self.engine.cage.census().len() } else { 0 };
        let state = &self.engine.state;
        if let Some(lifeline) = &self.lifeline {
            lifeline.send(&ToGuard::State { state: state.clone(), alive }, None);
            if self.watched || self.spec.loudness == Loudness::Verbose {
                self.bell.ring();
            }
        }
        self.control.tell_all(&Reply::Now { phase: Phase::of(state), alive });
        self.told.state = Some(state.clone());
        self.told.counted = now();
    }

    /// Writes the report and lets the guard go, when it ended or got stuck.
    fn report(&mut self) {
        let state = &self.engine.state;
        let stuck = matches!(state, State::Stuck { .. });
        let said = self
            .told
            .reported
            .as_ref()
            .is_some_and(|said| matches!(said, State::Stuck { .. }) == stuck);
        if said || !(stuck || state.is_over()) {
            return;
        }
        let report = self.engine.notes.report(self.spec, state);
        let named = if stuck { &report.survivors } else { &report.released };
        let outcome = Outcome {
            state: state.clone(),
            error: self.engine.failure.clone(),
            named: named.iter().take(NAMED).cloned().collect(),
            count: named.len(),
        };
        if let Some(lifeline) = &self.lifeline {
            lifeline.send_surely(&ToGuard::Outcome(outcome), &self.bell);
        }
        let unwritten = self.ledger.as_mut().and_then(|ledger| ledger.report(&report));
        let warning = unwritten.or(self.spec.write_report(&report));
        // That a keeper leaves in order says as much.
        if let Some(lifeline) = self.lifeline.as_ref().filter(|_| stuck || warning.is_some()) {
            lifeline.send_surely(&ToGuard::Reported { warning }, &self.bell);
        }
        self.told.reported = Some(state.clone());
        // Whatever ended before it could be said that it began.
        if self.control.has_host() {
            let answer = match &self.engine.failure {
                Some((status, why)) => Reply::Failed { status: *status, why: why.clone() },
                None => self.accepted(),
            };
            self.control.tell_host(&answer);
        }
        self.control.tell_all(&Reply::Report { report: Box::new(report) });
        self.control.drain();
        if stuck {
            self.bell.ring();
            // The guard leaves now; what it leaves open must not be held by us.
            self.engine.feed = None;
            self.spec.report.take_if(|sink| !sink.is_replaceable());
        }
    }
}
