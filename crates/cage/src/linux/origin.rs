//! What this process was given at birth, before anything changed it.
//!
//! The leader must get ignored signals and closed descriptors as they were. So
//! they are read by a constructor, before any `main` and any runtime.

use super::title;
use fullstop_core::signal::Signal;
use std::ffi::{c_char, c_int};
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicU64, Ordering::Relaxed};

static IGNORED: AtomicU64 = AtomicU64::new(0);
static PARENT: AtomicI32 = AtomicI32::new(0);
static CLOSED: AtomicU8 = AtomicU8::new(0);

// The number puts it before the constructors without one, among them the one in which an
// embedding program becomes a keeper.
#[used]
#[unsafe(link_section = ".init_array.00101")]
static CONSTRUCTOR: extern "C" fn(c_int, *const *mut c_char, *const *mut c_char) = remember;

/// glibc hands its constructors what `main` gets.
extern "C" fn remember(argc: c_int, argv: *const *mut c_char, env: *const *mut c_char) {
    // Real-time signals are left out: nobody ignores them, and asking takes time.
    let ignored = (1..=31).filter(|&number| is_ignored(number));
    IGNORED.store(ignored.fold(0, |set, number| set | bit(number)), Relaxed);
    // SAFETY: only asks.
    PARENT.store(unsafe { libc::getppid() }, Relaxed);
    // SAFETY: asking for flags touches no memory.
    let closed = |fd: &i32| unsafe { libc::fcntl(*fd, libc::F_GETFD) } < 0;
    CLOSED.store((0..3).filter(closed).fold(0, |set, fd| set | 1 << fd), Relaxed);
    if cfg!(target_env = "gnu") {
        // SAFETY: that is what these are.
        unsafe { title::remember(argc, argv, env) };
    }
}

fn is_ignored(number: i32) -> bool {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: only asks; `action` is writable, and zeroes are a valid action.
    unsafe {
        libc::sigaction(number, std::ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

fn bit(number: i32) -> u64 {
    1 << (number - 1)
}

/// What was ignored and closed when this process began.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    ignored: u64,
    closed: u8,
    parent: i32,
}

impl Origin {
    pub fn get() -> Origin {
        Origin {
            ignored: IGNORED.load(Relaxed),
            closed: CLOSED.load(Relaxed),
            parent: PARENT.load(Relaxed),
        }
    }

    pub fn ignored(&self, signal: Signal) -> bool {
        self.ignored & bit(signal.number()) != 0
    }

    /// Who started us; 0 if that is outside our pid namespace.
    pub fn parent(&self) -> i32 {
        self.parent
    }

    /// The standard descriptors that were not open.
    pub fn closed(&self) -> impl Iterator<Item = i32> {
        let closed = self.closed;
        (0..3).filter(move |fd| closed & (1 << fd) != 0)
    }
}
