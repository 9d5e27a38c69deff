//! What the measuring program says to `cargo xtask bench` and `cargo xtask soak`: the
//! plan of a run, and its results.
#![forbid(unsafe_code)]

pub mod clock;
pub mod disk;
pub mod plan;
pub mod results;
pub mod soak;
