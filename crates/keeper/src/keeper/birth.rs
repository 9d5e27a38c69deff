//! From the fork to a command that runs on its own.

use super::output::Idling;
use super::{Keeper, Pause, ToldToGuard};
use crate::assignment::{Assignment, Verbosity};
use crate::capture::{Capture, Ends};
use crate::control::Control;
use crate::ending::FAILED;
use crate::engine::Engine;
use crate::feed::Feed;
use crate::front::HEAR_SIGNALS;
use crate::ledger::{Ledger, SETTLED};
use crate::lifeline::{Lifeline, Outcome, ToGuard};
use crate::name;
use crate::notes::Notes;
use fullstop_cage::Cage as _;
use fullstop_cage::linux::{
    Blueprint, LinuxCage, Mask, Origin, PinnedProcess, Signals, ask_for_short_turns, candidates,
    close_all_but, leave, now, null_over, raise_descriptor_limit, secret,
};
use fullstop_cage::os::Bell;
use fullstop_cage::{Command, Source, cannot, plain};
use fullstop_core::cage::CageKind;
use fullstop_core::clocks::Clocks;
use fullstop_core::machine::{Input, State};
use fullstop_core::signal::Signal;
use fullstop_protocol::{Failure, FailureCode, HostPolicy, Placement, ReplyKind, Sealed, Stdin};
use fullstop_store::StoreError;
use rustix::fs::{Mode, OFlags, open};
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;

/// What the guard hands to its keeper through the fork.
pub struct Inheritance<'a> {
    pub assigned: &'a mut Assignment,
    pub blueprint: Blueprint,
    pub mask: Mask,
    pub lifeline: Lifeline,
    pub bell: Bell,
    /// Pidfds of the hosts, by whose death the run's `on_host_exit` applies.
    pub hosts: Vec<OwnedFd>,
    pub guard: Option<PinnedProcess>,
    pub own_session: bool,
    /// Whether the guard shows a stop under way.
    pub watched: bool,
    pub notes: Notes,
    pub ledger: Option<Ledger>,
    pub capture: Option<Capture>,
    pub ends: Ends,
    /// The line to the program that asked for the run, if the run stands apart.
    pub host: Option<OwnedFd>,
}

/// Runs the keeper's whole life, until there is nothing left to keep.
pub fn keep(inheritance: Box<Inheritance<'_>>) -> ! {
    let mut keeper = prepared(inheritance);
    let woken = keeper.give_birth();
    keeper.live(woken);
    leave(0)
}

/// All that is needed for a birth; where it cannot be had, there is no birth.
#[inline(never)]
fn prepared(inheritance: Box<Inheritance<'_>>) -> Box<Keeper<'_>> {
    let Inheritance {
        assigned,
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
        mut capture,
        ends,
        host,
    } = *inheritance;
    let mut control = Control::default();
    if let Some(tty) = capture.as_mut().and_then(|capture| capture.tty.as_mut())
        && assigned.launch.placement == Placement::Window
    {
        tty.await_owner();
    }
    let _ = host.map(|host| control.host(host));
    let made = open_early(assigned, &mut ledger, &mut control).and_then(|()| {
        let stdio = Stdio { own_session, ends, capture: capture.as_ref() };
        let failed = |why| Failure::with_code(FailureCode::Failed, why);
        prepare(assigned, &blueprint, mask, stdio).map_err(failed)
    });
    let (signals, cage, command, feed) = match made {
        Ok(made) => made,
        Err(failure) => {
            let why = failure.message.clone();
            let _ = ledger.map(Ledger::abandon);
            control.tell_host(&ReplyKind::Failed(failure));
            control.drain();
            let state = State::Starting { born: false, clocks: Clocks::default() };
            let error = Some((FAILED, why));
            let outcome = Outcome { state, kernel: None, error, named: Vec::new(), count: 0 };
            lifeline.send(&ToGuard::Outcome(outcome), None);
            leave(0)
        }
    };
    let state = State::new(&assigned.spec.plan(), now());
    let engine = Engine::new(assigned.spec.plan(), state, cage, notes).with_command(command, feed);
    let idling = assigned.spec.idle_timeout.map(Idling::new);
    let outlives_host =
        assigned.launch.host.is_none() || assigned.spec.on_host_exit == Some(HostPolicy::Ignore);
    let is_host_foreign = is_host_foreign(assigned, &control);
    Box::new(Keeper {
        assigned,
        outlives_host,
        is_host_foreign,
        host_has_asked: false,
        engine,
        signals,
        lifeline: Some(lifeline),
        bell,
        hosts,
        adoption: None,
        guard,
        watched,
        pause: Pause::default(),
        ledger,
        control,
        capture,
        draining: None,
        end_wanted: false,
        idling,
        roll_at: None,
        sampling: None,
        last_census: None,
        wrote_at: None,
        is_settled: false,
        early: Vec::new(),
        told_to_guard: ToldToGuard::default(),
    })
}

/// Whether the host that asked for the run has another pid here than it has written down.
fn is_host_foreign(assigned: &Assignment, control: &Control) -> bool {
    let seen = control.host_peer().map(|peer| peer.pid);
    let written = assigned.launch.host.as_ref().map(|host| host.process.pid);
    written.is_some() && written != seen
}

/// Opens the run to orders before its leader is born: if it is in a group, so that a close finds
/// it, and if it is not in the foreground, so that the program that started it does. Any other
/// run is opened once the command runs.
fn open_early(
    assigned: &Assignment,
    ledger: &mut Option<Ledger>,
    control: &mut Control,
) -> Result<(), Failure> {
    let needed =
        assigned.spec.group.is_some() || assigned.launch.placement != Placement::Foreground;
    if let Some(ledger) = ledger.as_mut().filter(|_| needed) {
        control.listen(ledger.listen(assigned).map_err(|error| {
            let code = match error {
                StoreError::GroupName(_) => FailureCode::InvalidSpec,
                _ if error.is_group_closed() => FailureCode::GroupClosed,
                _ => FailureCode::Failed,
            };
            Failure::with_code(code, error.to_string())
        })?);
    }
    Ok(())
}

type Made = (Signals, LinuxCage, Command, Option<Feed>);

/// What the command's streams and session are made from.
struct Stdio<'a> {
    own_session: bool,
    ends: Ends,
    capture: Option<&'a Capture>,
}

fn prepare(
    assigned: &Assignment,
    blueprint: &Blueprint,
    mask: Mask,
    stdio: Stdio<'_>,
) -> Result<Made, String> {
    // Without it the orphans of the tree would go past us, and there is no proof.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(|errno| cannot("become a subreaper")(errno.into()))?;
    let heard: Vec<Signal> = [Signal::TERM, Signal::INT, Signal::HUP]
        .into_iter()
        .filter(|&signal| !Origin::get().ignored(signal))
        .chain([Signal::CHLD])
        .collect();
    let signals = Signals::of(&heard).map_err(cannot(HEAR_SIGNALS))?;
    let (feed, stdin) = stdin(assigned, stdio.capture)
        .map_err(|error| format!("cannot hold stdin: {}", plain(&error)))?;
    let mut env = assigned.kernel_env();
    for (file, content) in assigned.spec.secrets.iter().zip(&assigned.launch.secrets) {
        let handed = hand_over(&file.name, content);
        let why = |error| format!("cannot hand over {}: {}", file.name, plain(&error));
        env.push(handed.map_err(why)?);
    }
    let program = assigned.spec.argv.first().cloned().unwrap_or_default().0;
    let command = Command {
        candidates: candidates(&program, assigned.spec.variable("PATH").map(AsRef::as_ref)),
        program,
        argv: assigned.kernel_argv(),
        env,
        cwd: assigned.kernel_cwd(),
        own_session: stdio.own_session,
        stdin,
        stdout: stdio.ends.stdout,
        stderr: stdio.ends.stderr,
        terminal: stdio.ends.terminal,
    };
    let cage = LinuxCage::make(blueprint, mask)?;
    Ok((signals, cage, command, feed))
}

/// Where the command reads from, and what stands between, if anything does.
fn stdin(assigned: &Assignment, capture: Option<&Capture>) -> io::Result<(Option<Feed>, Source)> {
    if let Some(tty) = capture.and_then(|capture| capture.tty.as_ref()) {
        return Ok((Some(Feed::typing(tty.input()?)), Source::Inherit));
    }
    let file = |path: &str, flags| open(path, flags | OFlags::CLOEXEC, Mode::empty());
    let source = match &assigned.spec.stdin {
        Stdin::Pipe => None,
        // A ladder that closes or writes stdin needs the keeper in between.
        Stdin::Inherit if assigned.spec.ladder.needs_stdin() => {
            rustix::io::fcntl_dupfd_cloexec(io::stdin(), 3).ok()
        }
        Stdin::File(path) if assigned.spec.ladder.needs_stdin() => {
            Some(open(&path.0, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
        }
        Stdin::Inherit => return Ok((None, Source::Inherit)),
        Stdin::Null => {
            return Ok((None, Source::Descriptor(file("/dev/null", OFlags::RDWR)?)));
        }
        Stdin::File(path) => {
            let path = CString::new(path.0.as_bytes()).map_err(io::Error::other)?;
            return Ok((None, Source::File(path)));
        }
    };
    let (feed, end) = Feed::new(source)?;
    Ok((Some(feed), Source::Descriptor(end)))
}

/// The leader inherits the descriptor; its number is all that the environment tells.
fn hand_over(name: &str, content: &Sealed) -> io::Result<CString> {
    use std::os::fd::IntoRawFd as _;
    // Whatever of ours is not needed after the birth is closed then, and so is this.
    let fd = secret(content.bytes())?.into_raw_fd();
    CString::new(format!("{name}={fd}")).map_err(io::Error::other)
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
            if self.assigned.verbosity == Verbosity::Verbose {
                self.bell.ring();
            }
        }
        // From here on the command is on its own, and so are we.
        let _ = rustix::process::setsid();
        let woken = self.forget_the_group();
        name::take(name::KEEPER, self.assigned.tag().as_ref());
        self.let_go();
        self.assigned.launch.secrets.clear();
        raise_descriptor_limit();
        ask_for_short_turns();
        self.write_birth();
        woken
    }

    fn write_birth(&mut self) {
        let Some(ledger) = &mut self.ledger else { return };
        let cage = self.engine.cage.kind();
        ledger.born(self.engine.cage.leader().map(PinnedProcess::pid), cage);
        // A sweep finds a cgroup by the spec; anybody else only by the record. And one
        // that was started to be stopped by others may hang from its first moment on.
        if cage == CageKind::Tree || self.assigned.launch.placement != Placement::Foreground {
            self.write_identities();
        }
        self.roll_at = Some(now() + SETTLED);
    }

    pub(super) fn write_identities(&mut self) {
        let leader = self.engine.cage.leader().map(PinnedProcess::pid);
        let guard = self.guard.as_ref().map(PinnedProcess::pid);
        let cgroup = self.engine.cage.cgroup_inodes();
        if let Some(ledger) = &mut self.ledger {
            ledger.identities(leader, guard, cgroup);
        }
    }

    /// Closes whatever belongs to the command.
    fn let_go(&self) {
        null_over(&[0, 1, 2]);
        let mut keep = self.engine.cage.descriptors();
        keep.extend([self.signals.as_fd().as_raw_fd(), self.bell.as_fd().as_raw_fd()]);
        keep.extend(self.lifeline.as_ref().map(Lifeline::descriptor));
        keep.extend(self.hosts.iter().map(AsRawFd::as_raw_fd));
        keep.extend(self.guard.as_ref().and_then(PinnedProcess::pidfd).map(|fd| fd.as_raw_fd()));
        keep.extend(self.control.descriptors());
        keep.extend(self.ledger.as_ref().map(Ledger::descriptors).into_iter().flatten());
        keep.extend(self.assigned.report.as_ref().map(crate::sink::Sink::descriptor));
        keep.extend(self.engine.feed.as_ref().map(Feed::descriptors).unwrap_or_default());
        keep.extend(self.capture.iter().flat_map(Capture::descriptors));
        close_all_but(&keep);
    }

    /// What was sent to the caller's group while we were in it is the guard's to
    /// tell. It cannot be known by its sender: a signal that comes during a fork
    /// reaches the child without one. Returns whether there was any, or a SIGCHLD.
    fn forget_the_group(&self) -> bool {
        std::iter::from_fn(|| self.signals.next()).count() > 0
    }
}
