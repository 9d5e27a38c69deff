//! What this process was given at birth, before anything changed it.
//!
//! The leader must get ignored signals and closed descriptors as they were. So
//! they are read by a constructor, before any `main` and any runtime.

use fullstop_core::signal::Signal;
use std::sync::atomic::{
    AtomicI32, AtomicPtr, AtomicU8, AtomicU64, AtomicUsize, Ordering::Relaxed,
};

static IGNORED: AtomicU64 = AtomicU64::new(0);
static PARENT: AtomicI32 = AtomicI32::new(0);
static CLOSED: AtomicU8 = AtomicU8::new(0);
static ARGV: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());
static ARGV_LENGTH: AtomicUsize = AtomicUsize::new(0);

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn(libc::c_int, *const *mut u8, *const *const u8) = remember;

/// glibc hands its constructors what `main` gets.
extern "C" fn remember(argc: libc::c_int, argv: *const *mut u8, _env: *const *const u8) {
    // Real-time signals are left out: nobody ignores them, and asking takes time.
    let ignored = (1..=31).filter(|&number| is_ignored(number));
    IGNORED.store(ignored.fold(0, |set, number| set | bit(number)), Relaxed);
    // SAFETY: only asks.
    PARENT.store(unsafe { libc::getppid() }, Relaxed);
    // SAFETY: asking for flags touches no memory.
    let closed = |fd: &i32| unsafe { libc::fcntl(*fd, libc::F_GETFD) } < 0;
    CLOSED.store((0..3).filter(closed).fold(0, |set, fd| set | 1 << fd), Relaxed);
    if !cfg!(target_env = "gnu") || argc < 1 || argv.is_null() {
        return;
    }
    // SAFETY: argv holds argc strings, which the kernel laid out one behind the other.
    unsafe {
        let first = *argv;
        let last = *argv.add(argc.cast_unsigned() as usize - 1);
        if first.is_null() || last.is_null() {
            return;
        }
        let end = last.add(libc::strlen(last.cast()));
        ARGV.store(first, Relaxed);
        ARGV_LENGTH.store(end.addr().saturating_sub(first.addr()), Relaxed);
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

/// Shows this process under another name, in `comm` and in `cmdline`, so that a
/// `pkill -f` meant for the command does not find its keeper.
pub fn disguise(name: &str) {
    let _ = std::ffi::CString::new(name).map(|name| rustix::thread::set_name(&name));
    let (start, length) = (ARGV.load(Relaxed), ARGV_LENGTH.load(Relaxed));
    if start.is_null() {
        return;
    }
    let name = &name.as_bytes()[..name.len().min(length)];
    // SAFETY: the strings of argv are this process's own writable memory, nobody
    // reads them after the command line was parsed, and `length` ends before the
    // last terminating zero.
    unsafe {
        std::ptr::write_bytes(start, 0, length);
        std::ptr::copy_nonoverlapping(name.as_ptr(), start, name.len());
    }
}
