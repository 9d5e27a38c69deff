//! What the measuring program and `cargo xtask bench` say to each other: the
//! plan of a run, and its results.
#![forbid(unsafe_code)]

pub mod clock;
pub mod disk;
pub mod plan;
pub mod results;
