//! The calls that neither std nor rustix offers as safe ones, behind safe wrappers.
//!
//! Each wrapper leans on one fact: no process of the zoo ever has a second thread. So a
//! forked child may go on with everything its parent could do.

use std::ffi::{c_int, c_void};
use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};

use rustix::io::fcntl_getfd;
use rustix::process::{Pid, Signal};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::trouble::{Doing, Trouble};

/// When this process and everything it forks must be gone.
static DEADLINE: OnceLock<Instant> = OnceLock::new();

/// Sets the end of the whole tree. An alarm that came through exec belongs to a
/// tree that is running already, so the earlier end counts.
pub fn start_clock(life: Duration) {
    // SAFETY: alarm touches nothing but the process's own timer.
    let inherited = unsafe { libc::alarm(0) };
    let life = match inherited {
        0 => life,
        seconds => life.min(Duration::from_secs(seconds.into())),
    };
    DEADLINE.get_or_init(|| Instant::now() + life);
    set_disposition(Signal::ALARM, libc::SIG_DFL);
    unblock(&[Signal::ALARM]);
    arm();
}

/// How long this tree may still live.
pub fn time_left() -> Duration {
    DEADLINE.get().map_or(Duration::ZERO, |end| end.saturating_duration_since(Instant::now()))
}

/// Alarms are not inherited by fork: every child arms its own, for what is left.
fn arm() {
    // SAFETY: as in `start_clock`.
    unsafe { libc::alarm(seconds_left()) };
}

/// Each child has a second at least, so those that fork for ever must not outlive the
/// deadline in their children's children.
fn end_if_overdue() {
    if time_left().is_zero() {
        std::process::exit(0);
    }
}

fn seconds_left() -> u32 {
    // Zero would mean no alarm at all.
    u32::try_from(time_left().as_secs()).unwrap_or(1).max(1)
}

/// `fork(2)`: `None` in the child.
pub fn fork() -> Result<Option<Pid>, Trouble> {
    end_if_overdue();
    // SAFETY: there is one thread, so the child has all of the process's state.
    let pid = unsafe { libc::fork() };
    born(pid.into()).doing("fork")
}

/// A fork whose child is the caller's sibling: `clone(2)` with `CLONE_PARENT`.
pub fn fork_sibling() -> Result<Option<Pid>, Trouble> {
    end_if_overdue();
    let none = ptr::null_mut::<c_void>();
    // SAFETY: without CLONE_VM and with no stack given this is a fork; the pointers are
    // only used with flags that are not set.
    let pid = unsafe {
        libc::syscall(
            libc::SYS_clone,
            libc::c_long::from(libc::CLONE_PARENT),
            none,
            none,
            none,
            none,
        )
    };
    born(pid).doing("clone with CLONE_PARENT")
}

fn born(pid: libc::c_long) -> io::Result<Option<Pid>> {
    match i32::try_from(pid) {
        Ok(0) => {
            arm();
            Ok(None)
        }
        Ok(pid) if pid > 0 => Ok(Pid::from_raw(pid)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Leaves namespaces behind for fresh ones.
pub fn unshare(flags: UnshareFlags) -> rustix::io::Result<()> {
    // SAFETY: only sharing descriptors between threads could go wrong, and there is one thread.
    unsafe { unshare_unsafe(flags) }
}

/// What the vforked child needs to know; it must not allocate.
struct Vforked {
    seconds: u32,
    place: RawFd,
}

/// A vfork whose child never execs: the caller sleeps in the kernel, in state D, until
/// the child is dead. The child answers the roll through `place`.
pub fn vfork_for_ever(place: RawFd) -> Result<(), Trouble> {
    const STACK: usize = 64 * 1024;
    let mut stack = vec![0u128; STACK / size_of::<u128>()];
    let mut given = Vforked { seconds: seconds_left(), place };
    // SAFETY: the child has a stack of its own, and the parent's frame, which holds both
    // the stack and `given`, stays put: the parent does not run before the child is dead.
    // A parent that is killed leaves the memory to the child.
    let pid = unsafe {
        let top = stack.as_mut_ptr_range().end.cast();
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        libc::clone(vforked, top, flags, ptr::from_mut(&mut given).cast())
    };
    born(pid.into()).doing("clone with CLONE_VFORK").map(drop)
}

extern "C" fn vforked(given: *mut c_void) -> c_int {
    // SAFETY: `vfork_for_ever` passes a live `Vforked`; the calls below use no memory but
    // one constant byte, so nothing of the sleeping parent's is changed.
    unsafe {
        let given = &*given.cast::<Vforked>();
        libc::alarm(given.seconds);
        libc::write(given.place, c".".as_ptr().cast(), 1);
        loop {
            libc::pause();
        }
    }
}

/// Makes the alarm end a process that is pid 1 of its namespace, which the kernel spares
/// from every signal it has no handler for.
pub fn die_by_handler_on_alarm() {
    extern "C" fn die(_signal: c_int) {
        // SAFETY: _exit may be called from a signal handler.
        unsafe { libc::_exit(0) }
    }
    set_disposition(Signal::ALARM, die as *const () as libc::sighandler_t);
}

/// Has the kernel send SIGKILL at the end: an alarm would stay pending for as long as
/// the process is stopped.
pub fn end_even_if_stopped() -> Result<(), Trouble> {
    let mut timer = MaybeUninit::uninit();
    // SAFETY: all zeroes is a valid sigevent and a valid itimerspec, and the kernel fills
    // in the timer before it is used.
    let done = unsafe {
        let mut event: libc::sigevent = MaybeUninit::zeroed().assume_init();
        event.sigev_notify = libc::SIGEV_SIGNAL;
        event.sigev_signo = libc::SIGKILL;
        let mut when: libc::itimerspec = MaybeUninit::zeroed().assume_init();
        when.it_value.tv_sec = seconds_left().into();
        match libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, timer.as_mut_ptr()) {
            0 => libc::timer_settime(timer.assume_init(), 0, &raw const when, ptr::null_mut()),
            failed => failed,
        }
    };
    check(done).doing("a timer that kills")
}

/// The polite signals that a stop begins with.
pub const POLITE: [Signal; 3] = [Signal::INT, Signal::TERM, Signal::HUP];

pub fn ignore(signals: &[Signal]) {
    for signal in signals {
        set_disposition(*signal, libc::SIG_IGN);
    }
}

fn set_disposition(signal: Signal, handler: libc::sighandler_t) {
    // SAFETY: the handler is SIG_DFL, SIG_IGN or a function that only calls _exit. The
    // call cannot fail for the signals used here.
    unsafe { libc::signal(signal.as_raw(), handler) };
}

pub fn block(signals: &[Signal]) {
    mask(libc::SIG_BLOCK, signals);
}

pub fn unblock(signals: &[Signal]) {
    mask(libc::SIG_UNBLOCK, signals);
}

fn mask(how: c_int, signals: &[Signal]) {
    let set = set_of(signals);
    // SAFETY: `set` is initialised, and a null pointer asks for no old mask.
    unsafe { libc::sigprocmask(how, &raw const set, ptr::null_mut()) };
}

/// Sleeps until one of these blocked signals comes.
pub fn await_one_of(signals: &[Signal]) {
    let set = set_of(signals);
    // SAFETY: `set` is initialised, and a null pointer asks for no details. Another
    // signal interrupts the wait without any of ours having come.
    while unsafe { libc::sigwaitinfo(&raw const set, ptr::null_mut()) } < 0 {}
}

fn set_of(signals: &[Signal]) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises the set, and the numbers are those of real signals.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in signals {
            libc::sigaddset(set.as_mut_ptr(), signal.as_raw());
        }
        set.assume_init()
    }
}

/// Zeroed words that all forks of this process share.
pub fn shared_words(count: usize) -> Result<&'static [AtomicU32], Trouble> {
    let bytes = count * size_of::<AtomicU32>();
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    // SAFETY: a new anonymous mapping overlaps nothing.
    let start = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, flags, -1, 0) };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error()).doing("shared memory");
    }
    // SAFETY: the mapping is page-aligned, zeroed, `bytes` long and never unmapped, and
    // atomics may be shared between processes.
    Ok(unsafe { std::slice::from_raw_parts(start.cast(), count) })
}

/// Takes over a descriptor that was opened for us before exec.
pub fn inherited(number: RawFd) -> io::Result<OwnedFd> {
    if number <= 2 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: nothing in this program has opened descriptors above 2 yet, so nobody else
    // owns it; whether it is open at all is asked before it is given away.
    let fd = unsafe { OwnedFd::from_raw_fd(number) };
    match fcntl_getfd(&fd) {
        Ok(_open) => Ok(fd),
        Err(error) => {
            std::mem::forget(fd);
            Err(error.into())
        }
    }
}

/// Closes every descriptor but one, stdin, stdout and stderr included.
pub fn close_all_but(spared: RawFd) -> Result<(), Trouble> {
    let spared = spared.cast_unsigned();
    if spared > 0 {
        close_range(0, spared - 1)?;
    }
    close_range(spared + 1, u32::MAX)
}

fn close_range(first: u32, last: u32) -> Result<(), Trouble> {
    // SAFETY: the caller lives on without the descriptors; std's handles of 0, 1 and 2
    // survive their loss.
    check(unsafe { libc::close_range(first, last, 0) }).doing("close_range")
}

/// Overwrites what `ps` shows of this process's arguments.
pub fn rewrite_arguments(text: &str) -> Result<(), Trouble> {
    let status = fs::read_to_string("/proc/self/stat").doing("/proc/self/stat")?;
    let (start, length) = argument_area(&status)
        .ok_or(io::Error::from(io::ErrorKind::InvalidData))
        .doing("finding the arguments in /proc/self/stat")?;
    let shown = text.len().min(length - 1);
    // SAFETY: the kernel says that the arguments lie there, on our own writable stack;
    // the last byte stays NUL, so std still finds proper strings.
    unsafe {
        let area = ptr::with_exposed_provenance_mut::<u8>(start);
        ptr::write_bytes(area, 0, length);
        ptr::copy_nonoverlapping(text.as_ptr(), area, shown);
    }
    Ok(())
}

/// Fields 48 and 49 of `proc_pid_stat(5)`: where the arguments start and end.
fn argument_area(status: &str) -> Option<(usize, usize)> {
    const FIRST_AFTER_NAME: usize = 3;
    let (_, fields) = status.rsplit_once(") ")?;
    let mut fields = fields.split(' ').skip(48 - FIRST_AFTER_NAME);
    let start: usize = fields.next()?.parse().ok()?;
    let end: usize = fields.next()?.parse().ok()?;
    (start != 0 && end > start).then(|| (start, end - start))
}

fn check(returned: c_int) -> io::Result<()> {
    match returned {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Lets no thread be made from here on: `clone` with CLONE_THREAD fails as if there were
/// too many, and `clone3`, whose flags a filter cannot see, is not there.
pub fn refuse_threads() -> io::Result<()> {
    // Offsets into struct seccomp_data: the call's number, the low word of its first argument.
    const NUMBER: u32 = 0;
    const FLAGS: u32 = if cfg!(target_endian = "big") { 20 } else { 16 };
    let number = |call| u32::try_from(call).map_err(io::Error::other);
    let load = |offset| step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, offset);
    let equal = |value, yes, no| step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, yes, no, value);
    let bits = |value, yes, no| step(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, yes, no, value);
    let end = |value| step(libc::BPF_RET | libc::BPF_K, 0, 0, value);
    let fail = |errno: c_int| end(libc::SECCOMP_RET_ERRNO | errno.cast_unsigned());
    let mut filter = [
        load(NUMBER),
        equal(number(libc::SYS_clone3)?, 4, 0),
        equal(number(libc::SYS_clone)?, 0, 2),
        load(FLAGS),
        bits(libc::CLONE_THREAD.cast_unsigned(), 2, 0),
        end(libc::SECCOMP_RET_ALLOW),
        fail(libc::ENOSYS),
        fail(libc::EAGAIN),
    ];
    let len = u16::try_from(filter.len()).map_err(io::Error::other)?;
    let program = libc::sock_fprog { len, filter: filter.as_mut_ptr() };
    // SAFETY: the program and the filter it points to live until the call returns.
    let set = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
    };
    if set { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn step(code: u32, yes: u8, no: u8, value: u32) -> libc::sock_filter {
    libc::sock_filter { code: u16::try_from(code).unwrap_or_default(), jt: yes, jf: no, k: value }
}
