//! The entrance. Usually this process becomes the guard itself.
//!
//! A guard must own its children, because whatever is re-parented to it is ended
//! when the keeper dies. If there are children already (`sh -c 'svc & exec
//! fullstop …'`), or we are pid 1 and inherit every orphan of the machine, a fresh
//! guard is forked, and this process stays in front of it: it passes signals on,
//! reaps strangers, and ends as the guard does.

use crate::assignment::{Assignment, stops_with_parent};
use crate::directory::leave_callers_directory;
use crate::ending::{Ending, FAILED};
use crate::guard::{Post, guard};
use crate::name;
use crate::sink::Sink;
use crate::terminal::Terminal;
use fullstop_cage::cannot;
use fullstop_cage::linux::{
    Change, Fork, Heard, Origin, PinnedProcess, Signals, Waited, close_all_but, fork, has_children,
    hold, now, null_over, own_session, shield, stop_self_by, wait_any, watch_parent,
};
use fullstop_core::signal::Signal;
use fullstop_core::words::Exit;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::getpid;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

/// Runs a command to its proven end. To be called while there is one thread.
pub fn run(mut assigned: Box<Assignment>) -> Ending {
    match enter(&mut assigned) {
        Ok(ending) => ending,
        Err(why) => {
            say!("{why}");
            Ending::Code(FAILED)
        }
    }
}

/// What every way into a guard must do.
pub(crate) const HEAR_SIGNALS: &str = "hear signals (signalfd)";
pub(crate) const WATCH_HOST: &str = "watch the host (pidfd)";

fn enter(assigned: &mut Assignment) -> Result<Ending, String> {
    let terminal = Terminal::find();
    let heard = heard_signals();
    let mask = hold(&heard);
    shield();
    let parent = Origin::get().parent();
    let mut hosts = Vec::new();
    if stops_with_parent(assigned.spec.on_host_exit, terminal.is_some(), parent) {
        hosts.extend(watch_parent(parent).map_err(cannot(WATCH_HOST))?);
    }
    let own = getpid().as_raw_pid();
    if own == 1 || has_children() {
        name::take(name::FRONT, None);
        match fork(Signal::CHLD).map_err(cannot("fork the guard"))? {
            Fork::Parent(guard) => {
                drop(hosts);
                return Ok(Front {
                    guard,
                    signals: Signals::of(&heard).map_err(cannot(HEAR_SIGNALS))?,
                    terminal,
                }
                .stand(assigned));
            }
            Fork::Child => hosts.extend(watch_parent(own).map_err(cannot(WATCH_HOST))?),
        }
    }
    name::take(name::GUARD, None);
    let signals = Signals::of(&heard).map_err(cannot(HEAR_SIGNALS))?;
    let post = Post { mask, signals, terminal, hosts, host: None };
    guard(assigned, post)
}

/// Everything a sender may mean for the command, except what was ignored at the
/// start, and faults of our own.
///
/// That includes what stops a job: whether a Ctrl-Z stops it, and when, is the command's
/// business (pagers tidy up first, some ignore it). On a terminal we stop once the command
/// has. Without one we never stop: a guard that is stopped alone protects nothing, and a
/// stop that is asked of it would wait until somebody continues it.
pub fn heard_signals() -> Vec<Signal> {
    const NEVER: [Signal; 9] = [
        Signal::KILL,
        Signal::STOP,
        Signal::SEGV,
        Signal::BUS,
        Signal::FPE,
        Signal::ILL,
        Signal::TRAP,
        Signal::SYS,
        Signal::PIPE,
    ];
    let origin = Origin::get();
    let ours = [Signal::CHLD, Signal::CONT];
    let wanted = |signal: &Signal| {
        ours.contains(signal) || !(NEVER.contains(signal) || origin.ignored(*signal))
    };
    // 32 and 33 belong to the C library.
    let numbers = (1..=64).filter(|number| !(32..=33).contains(number));
    numbers.filter_map(Signal::new).filter(wanted).collect()
}

struct Front {
    guard: PinnedProcess,
    signals: Signals,
    terminal: Option<Terminal>,
}

impl Front {
    fn stand(&self, assigned: &Assignment) -> Ending {
        self.let_go(assigned);
        loop {
            let mut fds = [PollFd::new(&self.signals, PollFlags::IN)];
            let _ = poll(&mut fds, None);
            while let Some(heard) = self.signals.next() {
                match heard.signal {
                    Signal::CHLD => {}
                    // A shell continues the whole job, the guard with it.
                    Signal::CONT if !self.guard.is_stopped() => {}
                    _ if self.reached_guard(heard) => {}
                    signal => drop(self.guard.send(signal)),
                }
            }
            if let Some(ending) = self.reap() {
                return ending;
            }
        }
    }

    /// The guard writes the report and shows what is to be shown.
    fn let_go(&self, assigned: &Assignment) {
        null_over(&[0, 1, 2]);
        let mut keep = vec![self.signals.as_fd().as_raw_fd()];
        keep.extend(self.guard.pidfd().map(|fd| fd.as_raw_fd()));
        keep.extend(self.terminal.as_ref().map(Terminal::descriptor));
        keep.extend(assigned.report.as_ref().map(Sink::descriptor));
        close_all_but(&keep);
        if self.terminal.is_none() {
            leave_callers_directory();
        }
    }

    /// What the terminal sends reaches the guard by itself, except the HUP that
    /// only a session's leader gets. An alarm is sent by the kernel as well, to us alone.
    fn reached_guard(&self, heard: Heard) -> bool {
        let leads_session = own_session() == getpid().as_raw_pid();
        heard.by_kernel
            && self.terminal.is_some()
            && !(heard.signal == Signal::HUP && leads_session)
            && heard.signal != Signal::ALRM
    }

    /// Strangers are reaped, never signalled.
    fn reap(&self) -> Option<Ending> {
        loop {
            match wait_any() {
                Waited::Changed { pid, change } if pid == self.guard.pid() => match change {
                    Change::Exited(exit) => {
                        if exit == Exit::Signal(Signal::KILL) {
                            outlive_keeper();
                        }
                        return Some(Ending::of_exit(exit));
                    }
                    Change::Stopped(signal) if self.terminal.is_some() => stop_self_by(signal),
                    Change::Stopped(_) | Change::Continued => {}
                },
                Waited::Changed { .. } => {}
                Waited::NotYet | Waited::Unknown => return None,
                // Somebody took our guard away, which cannot be.
                Waited::Nobody => return Some(Ending::Code(FAILED)),
            }
        }
    }
}

/// Our guard was killed, and its keeper is ending the run. If we are pid 1 it would
/// be cut short by our own end.
fn outlive_keeper() {
    const PATIENCE: Duration = Duration::from_secs(5);
    let until = now() + PATIENCE;
    while getpid().as_raw_pid() == 1 && wait_any() != Waited::Nobody && now() < until {
        std::thread::sleep(Duration::from_millis(1));
    }
}
