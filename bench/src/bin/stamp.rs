//! `bench-stamp FIFO`: the monotonic clock at the command's first instruction.
//!
//! The clock is read before anything else; telling it costs nothing that counts.
#![no_main]

use std::ffi::{c_char, c_int};

// SAFETY: this is the C `main` that the static start-up code looks for.
#[unsafe(no_mangle)]
extern "C" fn main(count: c_int, words: *const *const c_char) -> c_int {
    let now = fullstop_bench::clock::now_ns();
    if count != 2 {
        return 2;
    }
    // SAFETY: `words` holds `count` valid C strings, which are two.
    let fifo = unsafe { libc::open(*words.add(1), libc::O_WRONLY | libc::O_CLOEXEC) };
    if fifo < 0 {
        return 1;
    }
    let bytes = now.to_le_bytes();
    // SAFETY: the buffer is valid for its whole length; eight bytes into a FIFO
    // are written whole or not at all.
    let written = unsafe { libc::write(fifo, bytes.as_ptr().cast(), bytes.len()) };
    c_int::from(written != 8)
}
