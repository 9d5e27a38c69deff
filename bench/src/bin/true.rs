//! The smallest command there is: it succeeds.
//!
//! Without Rust's runtime, so that what is measured is the way into and out of
//! a process and not what happens in it.
#![no_main]

// SAFETY: this is the C `main` that the static start-up code looks for, with a
// signature C allows.
#[unsafe(no_mangle)]
extern "C" fn main() -> i32 {
    0
}
