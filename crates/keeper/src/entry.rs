//! How a program that links fullstop becomes the guard of a run that it starts: before its
//! `main`, which may start threads in its first line, and is not to run again.
//!
//! The host executes its own program under the name of a guard, with a socket for stdin. A
//! program that was executed in any other way pays for one comparison of its name.

use crate::name;
use crate::start;
use fullstop_cage::before_main;
use fullstop_cage::linux::{
    fill_standard_descriptors, has_threads, is_executed_as, is_privileged, is_socket,
};
use std::io::stdin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

before_main!(ENTRY, become_keeper_if_asked);

/// Whether the entry was called.
static HAS_RUN: AtomicBool = AtomicBool::new(false);

/// Whether this program, when it is started anew as a keeper, becomes one.
///
/// Each start of a run asks this, so that no linker drops the entry.
pub fn is_armed() -> bool {
    ENTRY.lies_in_executable() && HAS_RUN.load(Relaxed) && !is_privileged()
}

/// Returns, unless this process was started to be a keeper.
pub fn become_keeper_if_asked() {
    HAS_RUN.store(true, Relaxed);
    if is_executed_as(name::GUARD) {
        become_keeper();
    }
}

/// Anybody can execute a program under any name. So a setuid program keeps its rights for its
/// own `main`, and a library leaves the program alone that has loaded it.
#[cold]
fn become_keeper() {
    if is_privileged() || !ENTRY.lies_in_executable() || !is_socket(stdin()) {
        return;
    }
    if has_threads() {
        start::refuse_with_threads();
    }
    fill_standard_descriptors();
    start::carry_out();
}
