//! Everything that leaves a process: what a run was asked to be, and what holds for one
//! start of it. The same types go over a socket and to disk.
//!
//! - A length of time is an integer of milliseconds, and its name ends in `_ms`.
//! - A choice is a word; one that carries something is an object with that word as its only
//!   key (`"null"`, `{"file": "/etc/hosts"}`).
//! - Bytes that are not UTF-8 are `{"base64": "…"}`.
#![forbid(unsafe_code)]

mod labels;
mod launch;
mod milliseconds;
mod sealed;
mod spec;
mod streams;
mod text;
mod variables;

pub use labels::{LabelError, Labels};
pub use launch::{GroupGenerations, Host, Launch, Placement, Start};
pub use sealed::{Sealed, wipe};
pub use spec::{
    HostPolicy, IfBusy, Key, Limits, Resource, SPEC_VERSION, SecretFile, Spec, SpecError, User,
    read_around_spec,
};
pub use streams::{Drain, Fit, Output, Size, Stdin};
pub use text::Text;
