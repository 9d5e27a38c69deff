//! Code that runs before `main`, and what it must know before it does anything: under which
//! name this process was executed, with whose rights, and whether it is the program itself
//! that the code belongs to.

use super::procfs::counted_threads;
use rustix::fs::{FileType, fstat};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::hint::black_box;
use std::os::fd::AsFd;

/// Has the start-up code call `$function`, a `fn()`, before `main`, through the static `$name`
/// of the type [`BeforeMain`](crate::linux::BeforeMain).
///
/// In a library that a program loads later, it is called while that is loaded.
#[macro_export]
macro_rules! before_main {
    ($name:ident, $function:path) => {
        #[used]
        #[unsafe(link_section = ".init_array")]
        static $name: $crate::linux::BeforeMain = {
            extern "C" fn call() {
                $function();
            }
            $crate::linux::BeforeMain::new(call)
        };
    };
}

/// An entry of the list of functions that are called before `main`; [`before_main!`] makes it.
///
/// The start-up code reads it as the address that it is.
///
/// [`before_main!`]: crate::before_main
#[derive(Debug)]
#[repr(transparent)]
pub struct BeforeMain(extern "C" fn());

impl BeforeMain {
    pub const fn new(call: extern "C" fn()) -> BeforeMain {
        BeforeMain(call)
    }

    /// Whether it belongs to the program that this process executes: not to a library that
    /// was loaded into another program, and not to a program that was started by naming the
    /// dynamic linker (`ld.so PROGRAM`), where `/proc/self/exe` is the linker.
    ///
    /// A program that calls this keeps the linker from dropping the entry.
    pub fn lies_in_executable(&self) -> bool {
        let address = std::ptr::from_ref(black_box(self)).addr();
        let mut question = Question { address, found: None };
        // SAFETY: `ask_first` is given the question, which lives until this returns.
        unsafe { libc::dl_iterate_phdr(Some(ask_first), (&raw mut question).cast()) };
        let loaded_by_name = |has_interpreter| has_interpreter && auxiliary(libc::AT_BASE) == 0;
        question.found.is_some_and(|has_interpreter| !loaded_by_name(has_interpreter))
    }
}

struct Question {
    address: usize,
    /// Where it lies in the first object: whether that asks for a dynamic linker.
    found: Option<bool>,
}

/// Looks at the first object, which is the program itself. See dl_iterate_phdr(3).
extern "C" fn ask_first(
    object: *mut libc::dl_phdr_info,
    _: libc::size_t,
    question: *mut c_void,
) -> c_int {
    /// Ends the iteration.
    const DONE: c_int = 1;
    // SAFETY: the C library gives an object with as many program headers as it says, and the
    // question that the caller has given.
    let (base, headers, question) = unsafe {
        let object = &*object;
        let headers = std::slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum.into());
        (object.dlpi_addr, headers, &mut *question.cast::<Question>())
    };
    let address = question.address as u64;
    // Their width is not the same on every machine.
    #[allow(clippy::useless_conversion)]
    let mut holds = headers.iter().map(|header| {
        let start = u64::from(base).wrapping_add(u64::from(header.p_vaddr));
        let offset = address.wrapping_sub(start);
        header.p_type == libc::PT_LOAD && offset < u64::from(header.p_memsz)
    });
    if holds.any(|holds| holds) {
        question.found = Some(headers.iter().any(|header| header.p_type == libc::PT_INTERP));
    }
    DONE
}

/// Whether this is the name under which the process was executed: its `argv[0]`.
pub fn is_executed_as(name: &str) -> bool {
    unsafe extern "C" {
        /// What glibc and musl have noted before any constructor runs.
        static mut program_invocation_name: *const c_char;
    }
    // SAFETY: it is null or a string that stays, and nobody changes it but a `main` that has
    // just begun.
    unsafe {
        let executed_as = program_invocation_name;
        !executed_as.is_null() && CStr::from_ptr(executed_as).to_bytes() == name.as_bytes()
    }
}

/// Whether this process has rights that its caller has not: a setuid or setgid program, or one
/// with capabilities of its own. See AT_SECURE in getauxval(3).
pub fn is_privileged() -> bool {
    auxiliary(libc::AT_SECURE) != 0
}

fn auxiliary(kind: libc::c_ulong) -> libc::c_ulong {
    // SAFETY: only asks.
    unsafe { libc::getauxval(kind) }
}

pub fn is_socket(file: impl AsFd) -> bool {
    fstat(file).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Socket)
}

/// Whether this process has more threads than one. Without /proc that is not known.
pub fn has_threads() -> bool {
    counted_threads("/proc/self").is_some_and(|threads| threads > 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    crate::before_main!(COUNT, count);
    static CALLS: AtomicU32 = AtomicU32::new(0);

    fn count() {
        CALLS.fetch_add(1, Relaxed);
    }

    #[test]
    fn it_is_called_once_before_main() {
        assert_eq!(CALLS.load(Relaxed), 1);
    }

    #[test]
    fn what_the_linker_has_put_into_the_program_lies_in_it() {
        assert!(COUNT.lies_in_executable());
        let on_the_stack = BeforeMain::new(COUNT.0);
        assert!(!on_the_stack.lies_in_executable());
    }

    #[test]
    fn a_process_is_executed_as_its_first_argument() {
        let name = std::env::args().next().expect("argv[0]");
        assert!(is_executed_as(&name));
        assert!(!is_executed_as(&name[1..]) && !is_executed_as(""));
    }
}
