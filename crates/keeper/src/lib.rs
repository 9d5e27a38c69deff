//! The guard and the keeper: the two small processes that run a command's life
//! and prove its end. See `docs/architecture.md` for the picture.
#![forbid(unsafe_code)]

#[macro_use]
mod say;
pub mod commission;
mod control;
mod ending;
mod engine;
mod feed;
mod front;
mod guard;
mod keeper;
mod ledger;
mod lifeline;
mod notes;
mod sink;
mod spec;
pub mod sweep;
mod terminal;

pub use ending::Ending;
pub use front::run;
pub use sink::Sink;
pub use spec::{Ground, HostPolicy, Loudness, Spec};
