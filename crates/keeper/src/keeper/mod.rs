//! The keeper: makes the cage, starts the leader, keeps the clocks, climbs the
//! ladder, writes the report.

mod adoption;
mod birth;
mod hearing;
mod output;
mod restoring;
mod sampling;
mod telling;

pub use birth::{Inheritance, keep};

use crate::assignment::Assignment;
use crate::capture::{Capture, Draining};
use crate::control::Control;
use crate::directory::leave_callers_directory;
use crate::ending::FAILED;
use crate::engine::{BLIND_NAP, Engine, timespec};
use crate::feed::Feed;
use crate::ledger::Ledger;
use crate::lifeline::Lifeline;
use adoption::Adoption;
use fullstop_cage::Cage as _;
use fullstop_cage::linux::{LinuxCage, PinnedProcess, Signals, leave, now};
use fullstop_cage::os::Bell;
use fullstop_core::cage::CageKind;
use fullstop_core::machine::{Input, State};
use fullstop_core::signal::Signal;
use fullstop_core::words::Moment;
use fullstop_protocol::{Census, Timestamp};
use output::Idling;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use sampling::Sampling;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// How often a guard that shows a stop under way hears of it.
const PROGRESS_EVERY: Duration = Duration::from_millis(200);
/// How often the members are then written down; only a cage without a cgroup needs it.
const ROLL_EVERY: Duration = Duration::from_secs(1);

#[allow(clippy::struct_excessive_bools)] // Each is a question of its own.
struct Keeper<'a> {
    assigned: &'a mut Assignment,
    /// The host's death means nothing: so it was asked for, or the host has said since.
    outlives_host: bool,
    /// The host was written down in another pid namespace than ours: it cannot be told here
    /// whether it lives.
    is_host_foreign: bool,
    /// The host has asked for the end on its own line: the end of that line is no news.
    host_has_asked: bool,
    engine: Engine<LinuxCage>,
    signals: Signals,
    lifeline: Option<Lifeline>,
    bell: Bell,
    hosts: Vec<OwnedFd>,
    /// A client is to become the host.
    adoption: Option<Adoption>,
    guard: Option<PinnedProcess>,
    watched: bool,
    pause: Pause,
    ledger: Option<Ledger>,
    control: Control,
    /// The output, if we stand between.
    capture: Option<Capture>,
    draining: Option<Draining>,
    /// The end is wanted at once: an owner that does not read is not waited for.
    end_wanted: bool,
    idling: Option<Idling>,
    /// When it is next written down how it stands.
    roll_at: Option<Moment>,
    /// What the subscribers are told, if there are any.
    sampling: Option<Sampling>,
    last_census: Option<(Moment, Census)>,
    /// When the command last wrote something, if its output is captured.
    wrote_at: Option<Timestamp>,
    is_settled: bool,
    /// Signals for a command that is not born yet.
    early: Vec<Signal>,
    told_to_guard: ToldToGuard,
}

/// A person in front of a terminal may stop the clocks with the command; a command that
/// stops itself has no such right.
#[derive(Default)]
struct Pause {
    leader_stopped: bool,
    by_hand: bool,
}

/// What the guard has been told, so that it is told once.
#[derive(Default)]
struct ToldToGuard {
    state: Option<State>,
    steps: usize,
    /// The guard knows how it ended.
    outcome: Option<State>,
    reported: Option<State>,
    /// When the guard last heard how many are alive.
    counted: Moment,
}

impl Keeper<'_> {
    fn live(&mut self, mut woken: bool) {
        loop {
            if !std::mem::take(&mut woken) {
                self.sleep();
            }
            // Heard before looking, or a SIGCHLD that comes between would be lost;
            // the guard after looking, which alone tells that the command runs.
            self.hear_signals();
            let news = self.engine.look();
            if news.born {
                // Not before: why a program cannot be executed is seen from there.
                leave_callers_directory();
            }
            self.note_deaths();
            self.engine.press();
            self.hear_guard();
            self.keep_clocks(&news);
            self.engine.tick();
            self.tell_guard(&news);
            self.look_after_names();
            let _ = self.ledger.as_mut().map(Ledger::catch_up);
            let over = self.engine.state.is_over();
            if over && !self.is_drained() {
                self.answer_host();
                self.open_to_others();
                continue;
            }
            self.report();
            if over {
                return;
            }
            self.write_state_and_tell_host(&news);
            self.sample();
            self.settle();
        }
    }

    /// Until something happens, or there is something to do.
    fn sleep(&mut self) {
        self.tell_room();
        self.engine.let_die();
        let wait = self.patience().map(timespec);
        let hears = self.engine.feed.as_ref().is_some_and(|feed| feed.room() > 0);
        // A birth does not wake us: a failed birth ends with a SIGCHLD, and a command that
        // has just begun needs the processor more than we do.
        let mut fds = vec![PollFd::new(&self.signals, PollFlags::IN)];
        let lifeline = self.lifeline.as_ref().map(|lifeline| PollFd::new(lifeline, PollFlags::IN));
        fds.extend(lifeline);
        let hosts_at = fds.len();
        fds.extend(self.hosts.iter().map(|host| PollFd::new(host, PollFlags::IN)));
        let feed_at = fds.len();
        fds.extend(self.engine.feed.as_ref().and_then(Feed::interest));
        let output_at = fds.len();
        fds.extend(self.capture.iter().flat_map(|capture| capture.interest(hears)));
        let control_at = fds.len();
        fds.extend(self.control.interest());
        if self.control.has_host() {
            fds.extend(
                self.engine.cage.birth_news().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)),
            );
        }
        if let Err(error) = poll(&mut fds, wait.as_ref()) {
            return self.cannot_wait(error);
        }
        let ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
        let host_gone = fds[hosts_at..feed_at].iter().any(ready);
        let feed_ready = fds[feed_at..output_at].iter().any(ready);
        let output_ready = fds[output_at..control_at].iter().any(ready);
        let control_ready = fds[control_at..].iter().any(ready) || self.control.has_lines();
        drop(fds);
        // Nothing queues in front of a stop.
        if control_ready {
            self.hear_orders();
        }
        // Its end may mean nothing any more, by what was just heard.
        if host_gone && self.is_host_dead() {
            self.hosts.clear();
            self.engine.tell(Input::HostGone);
            self.hurry();
        }
        if let Some(feed) = self.engine.feed.as_mut().filter(|_| feed_ready) {
            feed.service();
        }
        if output_ready || self.capture.as_ref().is_some_and(|capture| capture.patience().is_some())
        {
            self.take_output();
        }
    }

    /// Asks again, about the hosts whose death still means something.
    fn is_host_dead(&self) -> bool {
        let mut fds: Vec<_> = self.hosts.iter().map(|it| PollFd::new(it, PollFlags::IN)).collect();
        poll(&mut fds, Some(&Timespec::default())).is_ok_and(|dead| dead > 0)
    }

    /// Our descriptors were taken away (a member may do that, by prlimit): without any we see no
    /// process and end none. Our guard still can.
    fn cannot_wait(&self, error: Errno) {
        match error {
            Errno::INTR => {}
            Errno::INVAL if self.lifeline.is_some() => leave(FAILED.into()),
            _ => std::thread::sleep(BLIND_NAP),
        }
    }

    /// How long nothing needs to be done.
    fn patience(&self) -> Option<Duration> {
        let engine = self.engine.patience();
        let progress = self.shows_progress().then_some(PROGRESS_EVERY);
        // Of a run that is only drained no member is left to be counted.
        let counts = !self.engine.state.is_killing() && !self.engine.state.is_over();
        let roll = self.roll_at.filter(|_| counts);
        let roll = roll.map(|at| at.since(now()));
        let capture = self.capture.as_ref();
        let drain = self.draining.as_ref().zip(capture);
        let drain = drain.map(|(draining, capture)| draining.patience(capture, now()));
        let all = [
            engine,
            progress,
            roll,
            self.until_sample(),
            self.ledger.as_ref().map(Ledger::patience),
            drain,
            self.control.patience(),
            capture.and_then(Capture::patience),
            self.idling.as_ref().map(Idling::patience),
        ];
        all.into_iter().flatten().min()
    }

    /// Opens a run that has settled to others, and writes down the members of a
    /// cage that only we could find.
    fn settle(&mut self) {
        // The last step needs every moment: a storm is not counted while it is fought.
        if self.engine.state.is_killing() || self.roll_at.is_none_or(|at| now() < at) {
            return;
        }
        self.open_to_others();
        let tree = self.engine.cage.kind() == CageKind::Tree;
        self.roll_at = tree.then(|| now() + ROLL_EVERY);
        if let Some(ledger) = self.ledger.as_mut().filter(|_| tree) {
            ledger.census(|known| self.engine.cage.roll(known));
        }
    }

    /// From here on others can find it, and give it orders.
    fn open_to_others(&mut self) {
        if !self.is_settled {
            self.is_settled = true;
            self.write_identities();
        }
        if let Some(ledger) = self.ledger.as_mut().filter(|_| !self.control.is_open()) {
            // Without a socket the run can still be ended, by going around us.
            let _ = ledger.listen(self.assigned).map(|socket| self.control.listen(socket));
        }
    }
}
