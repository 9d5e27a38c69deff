//! What `ps`, `top` and `pgrep -f` show of this process: its name (`/proc/PID/comm`) and
//! its command line (`/proc/PID/cmdline`).
//!
//! The kernel shows the memory in which it laid out the strings of argv. It is
//! overwritten in place, which needs no privilege: PR_SET_MM_ARG_START does. A title that
//! is longer than these strings reads on into the environment's, which follow them: if the
//! last byte of argv's memory is no zero, the kernel shows one string that begins where
//! argv does (`get_mm_cmdline` in fs/proc/base.c). The variables in the way are moved.

use super::groups::may_lead_session;
use super::procfs;
use std::ffi::{CString, c_char, c_int};
use std::io;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::Relaxed};

/// Where the strings of argv begin; null where that is not known.
static START: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());
/// The length of argv's strings, with the zero behind each.
static ARGV: AtomicUsize = AtomicUsize::new(0);
/// The same with the strings of the environment behind it, as far as a title may need them.
static ROOM: AtomicUsize = AtomicUsize::new(0);

/// More than the longest name and the longest tag.
const LONGEST: usize = 64;

/// Remembers where the kernel has put the strings of argv and of the environment.
///
/// # Safety
/// The arguments must be those of `main`, before anything has changed them.
pub(super) unsafe fn remember(argc: c_int, argv: *const *mut c_char, env: *const *mut c_char) {
    let Some(last) = usize::try_from(argc).ok().and_then(|argc| argc.checked_sub(1)) else {
        return;
    };
    if argv.is_null() {
        return;
    }
    // SAFETY: argv holds argc strings, which the kernel laid out one behind the other, and
    // `env` is a list of strings that ends with null.
    unsafe {
        let (start, last) = (*argv, *argv.add(last));
        if start.is_null() || last.is_null() {
            return;
        }
        let length = last.addr().saturating_sub(start.addr()) + libc::strlen(last) + 1;
        let mut room = length;
        let mut variable = env;
        while !env.is_null() && *variable == start.add(room) && room < LONGEST {
            room += libc::strlen(*variable) + 1;
            variable = variable.add(1);
        }
        ARGV.store(length, Relaxed);
        ROOM.store(room, Relaxed);
        START.store(start.cast(), Relaxed);
    }
}

/// Gives this process another name. The kernel keeps fifteen bytes of it.
pub fn set_process_name(name: &str) {
    let _ = CString::new(name).map(|name| rustix::thread::set_name(&name));
}

/// Shows these words for the command line, and nothing of what stood there. They are cut
/// where there is no room for them.
///
/// To be called while there is one thread.
pub fn set_command_line(words: &[&str]) {
    let (start, argv) = (START.load(Relaxed), ARGV.load(Relaxed));
    if start.is_null() {
        return;
    }
    let (shown, overwritten) = lay_out(words, argv, ROOM.load(Relaxed));
    // SAFETY: the strings of argv and of the environment are this process's own writable
    // memory, `lay_out` keeps within them, the command line has been parsed, and no
    // variable is looked up in what is overwritten.
    unsafe {
        move_environment(start.add(argv), start.add(overwritten));
        std::ptr::write_bytes(start, 0, argv);
        std::ptr::copy_nonoverlapping(shown.as_ptr(), start, shown.len());
    }
}

/// The processes that have founded a session and whose command line begins with this word,
/// each with the next one. Any process can show any words: they tell whom to name, and not
/// whom to signal.
///
/// One cheap call tells the founders from the many that are no further looked at.
pub fn titled_founders(name: &str) -> io::Result<Vec<(i32, String)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let pid = entry?.file_name().to_str().and_then(|pid| pid.parse().ok());
        let Some(pid) = pid.filter(|&pid| may_lead_session(pid)) else { continue };
        // It may be gone by now.
        let line = procfs::memory(&format!("/proc/{pid}/cmdline")).unwrap_or_default();
        found.extend(second_word(&line, name).map(|word| (pid, word)));
    }
    Ok(found)
}

/// The words stand for themselves, or in one string: see [`set_command_line`].
fn second_word(line: &[u8], first: &str) -> Option<String> {
    let rest = line.strip_prefix(first.as_bytes())?;
    let rest = rest.strip_prefix(b"\0").or_else(|| rest.strip_prefix(b" "))?;
    let end = rest.iter().position(|byte| b"\0 ".contains(byte)).unwrap_or(rest.len());
    String::from_utf8(rest[..end].to_vec()).ok()
}

/// Shows the first words of the command line as they are, and nothing of the others.
pub fn hide_arguments_behind(words: usize) {
    let (start, argv) = (START.load(Relaxed), ARGV.load(Relaxed));
    if start.is_null() {
        return;
    }
    // SAFETY: this is argv's own writable memory, and the command line has been parsed.
    let strings = unsafe { std::slice::from_raw_parts_mut(start, argv) };
    let mut ends = (0..argv).filter(|&at| strings[at] == 0);
    if let Some(end) = words.checked_sub(1).and_then(|last| ends.nth(last)) {
        strings[end..].fill(0);
    }
}

/// The bytes to be written, and where they end, if that is in the environment.
fn lay_out(words: &[&str], argv: usize, room: usize) -> (Vec<u8>, usize) {
    let mut shown = words.join("\0").into_bytes();
    if shown.len() < argv {
        return (shown, argv);
    }
    if shown.len() >= room {
        shown.truncate(argv - 1);
        return (shown, argv);
    }
    // One string, that is, without a zero in it.
    shown = words.join(" ").into_bytes();
    shown.push(0);
    let end = shown.len();
    (shown, end)
}

/// Moves the variables that stand between these two.
///
/// # Safety
/// No other thread may look at the environment.
unsafe fn move_environment(from: *const u8, to: *const u8) {
    if to <= from {
        return;
    }
    // SAFETY: the environment is a list of strings that ends with null, and its owner may
    // put another string in the place of one.
    unsafe {
        let mut variable = libc::environ;
        while !variable.is_null() && !(*variable).is_null() {
            let text = *variable;
            if (from..to).contains(&text.cast_const().cast()) {
                *variable = std::ffi::CStr::from_ptr(text).to_owned().into_raw();
            }
            variable = variable.add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_fit_stand_for_themselves() {
        assert_eq!(lay_out(&["guard", "tag"], 10, 10), (b"guard\0tag".to_vec(), 10));
        assert_eq!(lay_out(&["guard", "tag"], 90, 90), (b"guard\0tag".to_vec(), 90));
    }

    #[test]
    fn words_that_do_not_fit_are_one_string_in_the_environment() {
        assert_eq!(lay_out(&["guard", "tag"], 9, 10), (b"guard tag\0".to_vec(), 10));
        assert_eq!(lay_out(&["guard", "tag"], 2, 40), (b"guard tag\0".to_vec(), 10));
    }

    #[test]
    fn the_second_word_is_found_in_either_form() {
        for line in [&b"keeper\0tag\0"[..], b"keeper tag\0", b"keeper tag", b"keeper\0tag\0more\0"]
        {
            assert_eq!(second_word(line, "keeper").as_deref(), Some("tag"));
        }
        for line in [&b""[..], b"keeper", b"keepers\0tag", b"x\0keeper\0tag", b"keeper/tag"] {
            assert_eq!(second_word(line, "keeper"), None);
        }
    }

    #[test]
    fn words_without_room_are_cut() {
        assert_eq!(lay_out(&["guard", "tag"], 8, 9), (b"guard\0t".to_vec(), 8));
        assert_eq!(lay_out(&["guard", "tag"], 1, 1), (Vec::new(), 1));
    }
}
