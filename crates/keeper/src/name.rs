//! What our own processes are called.
//!
//! An agent that runs `pkill -f WORD` means what its own command line says. So the words
//! of a command stand in no process of ours: each shows its name and its run's [`Tag`], by
//! which it can be told from others even when the run's record is gone.

use fullstop_cage::linux::{set_command_line, set_process_name};
use fullstop_store::Tag;

/// Also the name under which a program is started anew to be the guard of a run that
/// stands apart.
pub const GUARD: &str = "fullstop-guard";
/// As long as the kernel allows.
pub const KEEPER: &str = "fullstop-keeper";
/// The process that stays in front of a guard.
pub const FRONT: &str = "fullstop-front";
/// A guard's child that ends lost runs.
pub const SWEEP: &str = "fullstop-sweep";

/// Takes the name, in `comm` and on the command line.
pub(crate) fn take(name: &str, run: Option<&Tag>) {
    set_process_name(name);
    show(name, run);
}

/// Shows the name on the command line: `NAME\0TAG\0`, or, where there was little room
/// (`fullstop run x`), `NAME TAG\0`.
pub(crate) fn show(name: &str, run: Option<&Tag>) {
    let tag = run.map(ToString::to_string);
    let words: Vec<&str> = [name].into_iter().chain(tag.as_deref()).collect();
    set_command_line(&words);
}
