//! Closed world.
#![forbid(unsafe_code)]
