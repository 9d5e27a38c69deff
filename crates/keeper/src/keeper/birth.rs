//! From the fork to a command that runs on its own.

use super::output::Idling;
use super::{Keeper, Pause, Told};
use crate::capture::{Capture, Ends};
use crate::control::Control;
use crate::ending::FAILED;
use crate::engine::Engine;
use crate::feed::Feed;
use crate::front::HEAR_SIGNALS;
use crate::ledger::{Ledger, SETTLED};
use crate::lifeline::{Bell, Lifeline, Outcome, ToGuard};
use crate::name;
use crate::notes::Notes;
use crate::spec::{Ground, Loudness, Secret, Spec};
use fullstop_cage::Cage as _;
use fullstop_cage::linux::{
    Blueprint, Held, LinuxCage, Mask, Origin, Signals, ask_for_short_turns, candidates,
    close_all_but, leave, now, null_over, raise_descriptor_limit, secret,
};
use fullstop_cage::{Command, Source, cannot, plain};
use fullstop_core::clocks::Clocks;
use fullstop_core::machine::{Input, State};
use fullstop_core::report::CageKind;
use fullstop_core::signal::Signal;
use fullstop_store::{Reply, Stdin};
use rustix::fs::{Mode, OFlags, open};
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;

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
    pub capture: Option<Capture>,
    pub ends: Ends,
    /// The line to whoever asked for the run, if it stands apart.
    pub host: Option<OwnedFd>,
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
        mut capture,
        ends,
        host,
    } = inheritance;
    let mut control = Control::default();
    if let Some(tty) = capture.as_mut().and_then(|capture| capture.tty.as_mut())
        && spec.ground == Ground::Window
    {
        tty.await_owner();
    }
    let _ = host.map(|host| control.host(host));
    let made = open_early(spec, &mut ledger, &mut control).and_then(|()| {
        let stdio = Stdio { own_session, ends, capture: capture.as_ref() };
        prepare(spec, blueprint, mask, stdio)
    });
    let (signals, cage, command, feed) = match made {
        Ok(made) => made,
        Err(why) => {
            let _ = ledger.map(Ledger::abandon);
            control.tell_host(&Reply::Failed { status: FAILED, why: why.clone() });
            control.drain();
            let state = State::Starting { born: false, clocks: Clocks::default() };
            let error = Some((FAILED, why));
            let outcome = Outcome { state, error, named: Vec::new(), count: 0 };
            lifeline.send(&ToGuard::Outcome(outcome), None);
            leave(0)
        }
    };
    let state = State::new(&spec.plan, now());
    let engine = Engine::new(spec.plan.clone(), state, cage, notes).with_command(command, feed);
    let idling = spec.plan.idle.map(Idling::new);
    let mut keeper = Keeper {
        spec,
        engine,
        signals,
        lifeline: Some(lifeline),
        bell,
        hosts,
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

/// What the command's streams and session are made from.
struct Stdio<'a> {
    own_session: bool,
    ends: Ends,
    capture: Option<&'a Capture>,
}

fn prepare(
    spec: &Spec,
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
    let (feed, stdin) = stdin(spec, stdio.capture)
        .map_err(|error| format!("cannot hold stdin: {}", plain(&error)))?;
    let mut env = spec.kernel_env();
    for given in &spec.secrets {
        env.push(hand_over(given).map_err(|error| {
            format!("cannot hand over {}: {}", given.name.0.to_string_lossy(), plain(&error))
        })?);
    }
    let program = spec.argv.first().cloned().unwrap_or_default();
    let command = Command {
        candidates: candidates(&program, spec.path().map(AsRef::as_ref)),
        program,
        argv: spec.kernel_argv(),
        env,
        cwd: spec.kernel_cwd(),
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
fn stdin(spec: &Spec, capture: Option<&Capture>) -> io::Result<(Option<Feed>, Source)> {
    if let Some(tty) = capture.and_then(|capture| capture.tty.as_ref()) {
        return Ok((Some(Feed::typing(tty.input()?)), Source::Inherit));
    }
    let file = |path: &str, flags| open(path, flags | OFlags::CLOEXEC, Mode::empty());
    let source = match &spec.streams.stdin {
        Stdin::Pipe => None,
        // A ladder that closes or writes stdin needs somebody in between.
        Stdin::Inherit if spec.plan.ladder.needs_stdin() => {
            rustix::io::fcntl_dupfd_cloexec(io::stdin(), 3).ok()
        }
        Stdin::File(path) if spec.plan.ladder.needs_stdin() => {
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
fn hand_over(given: &Secret) -> io::Result<CString> {
    use std::os::fd::IntoRawFd as _;
    // Whatever of ours is not needed after the birth is closed then, and so is this.
    let fd = secret(given.content.0.as_bytes())?.into_raw_fd();
    let text = [given.name.0.as_bytes(), format!("={fd}").as_bytes()].concat();
    CString::new(text).map_err(io::Error::other)
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
        name::take(name::KEEPER, self.spec.tag().as_ref());
        self.let_go();
        self.spec.secrets.drain(..).for_each(Secret::wipe);
        raise_descriptor_limit();
        ask_for_short_turns();
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

    pub(super) fn write_identities(&mut self) {
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
