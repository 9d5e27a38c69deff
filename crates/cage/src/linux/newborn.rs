//! The child's way from clone to exec.
//!
//! It runs beside the keeper in the keeper's own memory. So it reads only its
//! [`Plan`], which is never changed and never freed, writes only its own stack and
//! the one cell left to it, and asks the kernel through [`syscall`] alone: there is
//! no errno, no allocator and no panic here. A signal cannot run anything either:
//! no process of ours has a handler.

use super::origin::Origin;
use super::signals::{Mask, set_ignored};
use super::stdio::Places;
use super::syscall::{self, Errno};
use crate::{Command, Source};
use fullstop_core::signal::Signal;
use std::cell::Cell;
use std::ffi::{CStr, CString, c_char, c_void};
use std::os::fd::RawFd;
use std::ptr::null;

/// Everything the child reads, laid out before it is born.
#[derive(Debug)]
pub struct Plan {
    pub command: Command,
    argv: Vec<*const c_char>,
    /// `sh FILE ARGS`, for a text without `#!`, as shells and execvp do. The child
    /// alone writes the file's place.
    script: Vec<Cell<*const c_char>>,
    env: Vec<*const c_char>,
    mask: Mask,
    places: Places,
    pub gate: Cell<Option<Gate>>,
    teller: RawFd,
}

/// A pipe at which the child waits until it is where it belongs.
#[derive(Clone, Copy, Debug)]
pub struct Gate {
    pub gate: RawFd,
    /// The keeper's end. A child that held it as well would wait for itself.
    pub key: RawFd,
}

/// Which part of the child's way failed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Its keeper died, or gave up, before it was let through.
    Gate = 1,
    Cwd = 2,
    /// No candidate was there.
    NotFound = 3,
    /// One was, and could not be executed.
    Exec = 4,
    /// The file it was to read could not be opened.
    Stdin = 5,
    Terminal = 6,
    /// A descriptor could not be put in its place.
    Stdio = 7,
}

/// What the child tells before it leaves: where it failed, why, at which candidate.
struct Failure {
    stage: Stage,
    errno: Errno,
    which: i32,
}

/// These three, four bytes each.
pub const MESSAGE: usize = 12;

const SHELL: &CStr = c"/bin/sh";

impl Plan {
    pub fn new(command: Command, mask: Mask, places: Places, teller: RawFd) -> Plan {
        let list = |texts: &[CString]| -> Vec<*const c_char> {
            texts.iter().map(|text| text.as_ptr()).chain([null()]).collect()
        };
        let (argv, env) = (list(&command.argv), list(&command.env));
        let arguments = argv.iter().skip(1).copied();
        let script = [SHELL.as_ptr(), null()].into_iter().chain(arguments).map(Cell::new).collect();
        Plan { command, argv, script, env, mask, places, gate: Cell::new(None), teller }
    }
}

/// [`become_leader`] for a child that begins here.
///
/// # Safety
/// Its argument must be a `&'static Plan`.
pub unsafe extern "C" fn enter(plan: *const c_void) -> ! {
    // SAFETY: passed on to the caller.
    become_leader(unsafe { &*plan.cast::<Plan>() })
}

/// The whole way, to the exec or to an end.
pub fn become_leader(plan: &'static Plan) -> ! {
    let Failure { stage, errno, which } = match prepare(plan) {
        Err((stage, errno)) => Failure { stage, errno, which: 0 },
        Ok(()) => execute(plan),
    };
    let message = [stage as i32, errno, which].map(i32::to_ne_bytes);
    let _ = syscall::write(plan.teller, message.as_flattened());
    syscall::exit(127)
}

fn prepare(plan: &Plan) -> Result<(), (Stage, Errno)> {
    if let Some(Gate { gate, key }) = plan.gate.get() {
        // SAFETY: the key is the keeper's; this is the child's copy of it.
        let _ = unsafe { syscall::close(key) };
        match syscall::read(gate, &mut [0]) {
            Ok(1) => {}
            read => return Err((Stage::Gate, read.err().unwrap_or_default())),
        }
    }
    if plan.command.own_session {
        let _ = syscall::setsid();
    }
    for fd in Origin::get().closed() {
        // SAFETY: it was closed when we were started, and stands for nothing.
        let _ = unsafe { syscall::close(fd) };
    }
    // Before anything is opened: that may wait for ever, and must be able to be told
    // to stop meanwhile.
    restore_signals(plan);
    take_places(plan)?;
    if let Some(cwd) = &plan.command.cwd {
        syscall::chdir(cwd).map_err(|errno| (Stage::Cwd, errno))?;
    }
    Ok(())
}

/// What a terminal sends. Whoever put us into the background of another one may have
/// had them ignored, and that was said of the other.
const BY_TERMINAL: [Signal; 6] =
    [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TSTP, Signal::TTIN, Signal::TTOU];

fn restore_signals(plan: &Plan) {
    for signal in [Signal::PIPE, Signal::CHLD, Signal::XFSZ] {
        set_ignored(signal, Origin::get().ignored(signal));
    }
    if plan.places.terminal.is_some() {
        for signal in BY_TERMINAL {
            set_ignored(signal, false);
        }
    }
    plan.mask.restore();
}

/// Puts the command's own descriptors over the inherited ones.
fn take_places(plan: &Plan) -> Result<(), (Stage, Errno)> {
    let Places { standard, terminal } = plan.places;
    if let Some(terminal) = terminal {
        syscall::control_terminal(terminal).map_err(|errno| (Stage::Terminal, errno))?;
    }
    for (onto, from) in (0..).zip(standard) {
        let Some(from) = from else { continue };
        // SAFETY: the inherited one is given up here.
        unsafe { syscall::dup3(from, onto) }.map_err(|errno| (Stage::Stdio, errno))?;
    }
    if let (Source::File(path), None) = (&plan.command.stdin, terminal) {
        // SAFETY: as above.
        let _ = unsafe { syscall::close(0) };
        // The lowest number that is free is now this one.
        syscall::open(path).map_err(|errno| (Stage::Stdin, errno))?;
    }
    Ok(())
}

/// Tries each candidate. Returns only if none could be executed.
fn execute(plan: &Plan) -> Failure {
    let mut refused = None;
    for (which, file) in (0..).zip(&plan.command.candidates) {
        let exec_failed = |errno| Failure { stage: Stage::Exec, errno, which };
        // SAFETY: the lists were made by `Plan::new`.
        let errno = unsafe { syscall::execve(file, plan.argv.as_ptr(), plan.env.as_ptr()) };
        match errno {
            libc::ENOEXEC => return exec_failed(execute_script(plan, file)),
            libc::EACCES => {
                // A file that is there; a directory of PATH we may not enter is not.
                if refused.is_none() && syscall::is_there(file) {
                    refused = Some(exec_failed(errno));
                }
            }
            libc::ENOENT | libc::ENOTDIR | libc::ENAMETOOLONG => {
                // The file is there, so it is its interpreter that is not.
                if syscall::is_there(file) {
                    return exec_failed(errno);
                }
            }
            _ => return exec_failed(errno),
        }
    }
    refused.unwrap_or(Failure { stage: Stage::NotFound, errno: libc::ENOENT, which: 0 })
}

/// Returns only why it could not be.
fn execute_script(plan: &Plan, file: &CStr) -> Errno {
    if let Some(place) = plan.script.get(1) {
        place.set(file.as_ptr());
    }
    // SAFETY: the lists were made by `Plan::new`, and a cell is what it holds.
    unsafe { syscall::execve(SHELL, plan.script.as_ptr().cast(), plan.env.as_ptr()) }
}
