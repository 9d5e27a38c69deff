//! fullstop's words, ladder and state machine: what decides, and nothing else.
//!
//! No clock, no I/O, no async, no unsafe. See `docs/architecture.md`.
#![forbid(unsafe_code)]

#[deny(missing_docs)]
pub mod cage;
pub mod clocks;
#[deny(missing_docs)]
pub mod duration;
#[deny(missing_docs)]
pub mod id;
#[deny(missing_docs)]
pub mod identity;
#[deny(missing_docs)]
pub mod ladder;
pub mod machine;
mod mistake;
#[deny(missing_docs)]
pub mod preset;
#[cfg(feature = "schema")]
mod schema;
#[deny(missing_docs)]
pub mod signal;
#[deny(missing_docs)]
pub mod words;
