//! fullstop's words, ladder and state machine: what decides, and nothing else.
//!
//! No clock, no I/O, no async, no unsafe. See `docs/architecture.md`.
#![forbid(unsafe_code)]

pub mod clocks;
pub mod duration;
pub mod id;
pub mod identity;
pub mod ladder;
pub mod machine;
mod mistake;
pub mod preset;
pub mod report;
pub mod signal;
pub mod words;
