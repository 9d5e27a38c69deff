//! The command line of `fullstop`: one static description, from which the
//! parser, the help, the completions and the man pages all follow.
//!
//! It is a library only so that tests can reach it; the binary starts at an
//! entry of its own, which a test harness cannot have.
#![forbid(unsafe_code)]

pub mod args;
pub mod begun;
pub mod completions;
pub mod detach;
pub mod format;
pub mod grammar;
pub mod help;
pub mod man;
pub mod plain;
pub mod since;
