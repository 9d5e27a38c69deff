//! The way into the program, without the start-up work of Rust's runtime.
//!
//! The runtime reads /proc/self/maps, makes a stack for overflow handlers and
//! changes what the leader must inherit unchanged. Together that is a fifteenth
//! of the whole `run true`, and nothing of it is needed here.

use super::origin::Origin;
use rustix::fs::{Mode, OFlags, open};

/// Makes `$main`, a `fn()`, the program's entry. Goes with `#![no_main]`.
#[macro_export]
macro_rules! entry {
    ($main:path) => {
        #[unsafe(no_mangle)]
        extern "C" fn main(
            _: std::ffi::c_int,
            _: *const *const std::ffi::c_char,
        ) -> std::ffi::c_int {
            $crate::linux::fill_standard_descriptors();
            $main();
            0
        }
    };
}

/// Puts `/dev/null` where a standard descriptor was closed, or the next file we
/// open would take its place. The leader gets them closed again.
pub fn fill_standard_descriptors() {
    for _ in Origin::get().closed() {
        if let Ok(null) = open("/dev/null", OFlags::RDWR, Mode::empty()) {
            std::mem::forget(null);
        }
    }
}
