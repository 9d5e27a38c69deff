//! System calls for a child that shares its parent's memory.
//!
//! The C library's own write errno, and that is the parent's as well: one of the
//! two would read the other's. Here an error comes back as a value.

use std::ffi::{CStr, c_char, c_long, c_void};
use std::os::fd::RawFd;

/// An errno that is nobody's but the caller's.
pub type Errno = i32;

#[cfg(target_arch = "x86_64")]
unsafe fn raw(number: c_long, [a, b, c, d]: [usize; 4]) -> c_long {
    let done: c_long;
    // SAFETY: the caller vouches for the arguments; the kernel changes nothing else
    // than rax, rcx and r11.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") number => done,
            in("rdi") a,
            in("rsi") b,
            in("rdx") c,
            in("r10") d,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    done
}

#[cfg(target_arch = "aarch64")]
unsafe fn raw(number: c_long, [a, b, c, d]: [usize; 4]) -> c_long {
    let done: c_long;
    // SAFETY: the caller vouches for the arguments; the kernel changes nothing else
    // than x0.
    unsafe {
        std::arch::asm!(
            "svc #0",
            in("x8") number,
            inlateout("x0") a => done,
            in("x1") b,
            in("x2") c,
            in("x3") d,
            options(nostack),
        );
    }
    done
}

/// Elsewhere the child is a copy, whose errno is its own.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
unsafe fn raw(number: c_long, [a, b, c, d]: [usize; 4]) -> c_long {
    // SAFETY: the caller vouches for the arguments; errno is always there.
    unsafe {
        match libc::syscall(number, a, b, c, d) {
            -1 => -c_long::from(*libc::__errno_location()),
            done => done,
        }
    }
}

/// # Safety
/// The arguments must be what this system call takes, with pointers that are valid
/// until it returns.
unsafe fn call(number: c_long, arguments: [usize; 4]) -> Result<usize, Errno> {
    // SAFETY: passed on to the caller.
    let done = unsafe { raw(number, arguments) };
    outcome(done)
}

/// None of the calls here returns an address, so below zero is an error.
fn outcome(done: c_long) -> Result<usize, Errno> {
    usize::try_from(done).map_err(|_| Errno::try_from(-done).unwrap_or(libc::EIO))
}

/// A number as the kernel takes it.
fn int(number: i32) -> usize {
    number.cast_unsigned() as usize
}

pub fn read(from: RawFd, into: &mut [u8]) -> Result<usize, Errno> {
    // SAFETY: writes no more than the slice holds.
    unsafe { call(libc::SYS_read, [int(from), into.as_mut_ptr() as usize, into.len(), 0]) }
}

pub fn write(to: RawFd, bytes: &[u8]) -> Result<usize, Errno> {
    // SAFETY: reads no more than the slice holds.
    unsafe { call(libc::SYS_write, [int(to), bytes.as_ptr() as usize, bytes.len(), 0]) }
}

pub fn setsid() -> Result<usize, Errno> {
    // SAFETY: no pointer is passed.
    unsafe { call(libc::SYS_setsid, [0; 4]) }
}

/// # Safety
/// Nobody may use this descriptor afterwards.
pub unsafe fn close(which: RawFd) -> Result<usize, Errno> {
    // SAFETY: no pointer is passed; the rest is the caller's.
    unsafe { call(libc::SYS_close, [int(which), 0, 0, 0]) }
}

/// # Safety
/// Nobody may use what was open as `onto` afterwards.
pub unsafe fn dup3(from: RawFd, onto: RawFd) -> Result<usize, Errno> {
    // SAFETY: no pointer is passed; the rest is the caller's.
    unsafe { call(libc::SYS_dup3, [int(from), int(onto), 0, 0]) }
}

/// Opens a file for reading, as the lowest number that is free. It may wait, and it
/// never becomes a controlling terminal.
pub fn open(path: &CStr) -> Result<usize, Errno> {
    let flags = int(libc::O_RDONLY | libc::O_NOCTTY | libc::O_LARGEFILE);
    let arguments = [int(libc::AT_FDCWD), path.as_ptr() as usize, flags, 0];
    // SAFETY: the path ends with a zero; a new number is nobody's.
    unsafe { call(libc::SYS_openat, arguments) }
}

/// Makes a terminal the controlling one of the session we lead.
/// See TIOCSCTTY(2const).
pub fn control_terminal(terminal: RawFd) -> Result<usize, Errno> {
    const FROM_NOBODY: usize = 0;
    // On every machine a small number, whatever type it has there.
    #[allow(clippy::cast_possible_truncation)]
    let request = libc::TIOCSCTTY as usize;
    // SAFETY: no pointer is passed.
    unsafe { call(libc::SYS_ioctl, [int(terminal), request, FROM_NOBODY, 0]) }
}

pub fn chdir(path: &CStr) -> Result<usize, Errno> {
    // SAFETY: the path ends with a zero.
    unsafe { call(libc::SYS_chdir, [path.as_ptr() as usize, 0, 0, 0]) }
}

pub fn is_there(path: &CStr) -> bool {
    let arguments = [int(libc::AT_FDCWD), path.as_ptr() as usize, int(libc::F_OK), 0];
    // SAFETY: the path ends with a zero.
    unsafe { call(libc::SYS_faccessat, arguments) }.is_ok()
}

/// The kernel's signal sets, unlike the C library's, are this long.
const SET: usize = 8;

/// Makes a signal ignored, or gives it back its default.
pub fn ignore(signal: i32, ignored: bool) -> Result<usize, Errno> {
    let handler = if ignored { libc::SIG_IGN } else { libc::SIG_DFL };
    // The handler comes first; flags, mask and restorer mean nothing without one.
    let action = [handler, 0, 0, 0, 0, 0, 0, 0];
    let arguments = [int(signal), action.as_ptr() as usize, 0, SET];
    // SAFETY: the action is longer than any kernel's, and none is asked back.
    unsafe { call(libc::SYS_rt_sigaction, arguments) }
}

pub fn set_mask(mask: &libc::sigset_t) -> Result<usize, Errno> {
    let arguments = [int(libc::SIG_SETMASK), &raw const *mask as usize, 0, SET];
    // SAFETY: the C library's set begins with the kernel's.
    unsafe { call(libc::SYS_rt_sigprocmask, arguments) }
}

/// Returns only why it did not happen.
///
/// # Safety
/// Both lists must end with null and hold strings that end with zero.
pub unsafe fn execve(file: &CStr, argv: *const *const c_char, env: *const *const c_char) -> Errno {
    let arguments = [file.as_ptr() as usize, argv as usize, env as usize, 0];
    // SAFETY: passed on to the caller.
    unsafe { call(libc::SYS_execve, arguments) }.err().unwrap_or_default()
}

/// Ends this process alone, though others may share its memory.
pub fn exit(status: i32) -> ! {
    loop {
        // SAFETY: no pointer is passed.
        let _ = unsafe { call(libc::SYS_exit_group, [int(status), 0, 0, 0]) };
    }
}

/// What a child that shares our memory runs: it has nowhere to return to.
pub type Entry = unsafe extern "C" fn(*const c_void) -> !;

/// clone3(2) with a stack in its arguments, on which the child calls `entry`.
/// Returns the child's pid, in the parent only.
///
/// # Safety
/// The arguments must name a stack that is the child's alone until it has executed
/// something else or is dead. `entry` and all it calls may write nothing else but
/// that stack, and read nothing that the parent writes or frees before then.
#[cfg(target_arch = "x86_64")]
pub unsafe fn clone_onto(
    arguments: &libc::clone_args,
    entry: Entry,
    given: *const c_void,
) -> Result<usize, Errno> {
    let done: c_long;
    // SAFETY: the parent goes on behind the block as after any system call. The
    // child is on a stack of its own, aligned as a call wants it, and never leaves
    // the call.
    unsafe {
        std::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, {given}",
            "call {entry}",
            "ud2",
            "2:",
            entry = in(reg) entry,
            given = in(reg) given,
            inlateout("rax") libc::SYS_clone3 => done,
            in("rdi") arguments,
            in("rsi") size_of::<libc::clone_args>(),
            out("rcx") _,
            out("r11") _,
        );
    }
    outcome(done)
}

/// # Safety
/// As above.
#[cfg(target_arch = "aarch64")]
pub unsafe fn clone_onto(
    arguments: &libc::clone_args,
    entry: Entry,
    given: *const c_void,
) -> Result<usize, Errno> {
    let done: c_long;
    // SAFETY: as above.
    unsafe {
        std::arch::asm!(
            "svc #0",
            "cbnz x0, 2f",
            "mov x29, xzr",
            "mov x30, xzr",
            "mov x0, {given}",
            "blr {entry}",
            "brk #1",
            "2:",
            entry = in(reg) entry,
            given = in(reg) given,
            in("x8") libc::SYS_clone3,
            inlateout("x0") arguments => done,
            in("x1") size_of::<libc::clone_args>(),
            out("x30") _,
        );
    }
    outcome(done)
}

/// # Safety
/// None needed: it is refused.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub unsafe fn clone_onto(_: &libc::clone_args, _: Entry, _: *const c_void) -> Result<usize, Errno> {
    Err(libc::ENOSYS)
}
