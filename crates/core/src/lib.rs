//! fullstop's words, ladder and state machine: what decides, and nothing else.
//!
//! No clock, no I/O, no async, no unsafe. See `docs/architecture.md`.
#![forbid(unsafe_code)]

pub mod cage;
pub mod clocks;
pub mod duration;
pub mod id;
pub mod identity;
pub mod ladder;
pub mod machine;
mod mistake;
pub mod preset;
#[cfg(feature = "schema")]
mod schema;
pub mod signal;
pub mod words;
