//! The guard and the keeper: the two small processes that run a command's life
//! and prove its end. See `docs/architecture.md` for the picture.
#![forbid(unsafe_code)]

#[macro_use]
mod say;
mod asker;
mod assignment;
mod backlog;
mod capture;
mod control;
mod directory;
mod ending;
mod engine;
pub mod entry;
mod feed;
mod fresh_id;
mod front;
mod guard;
mod keeper;
mod ledger;
mod lifeline;
mod living;
pub mod name;
mod notes;
mod roster;
mod screen;
mod sink;
mod start;
pub mod sweep;
mod terminal;
mod unshown;

pub use assignment::{Assignment, Verbosity, stops_with_parent};
pub use ending::Ending;
pub use fresh_id::fresh_id;
pub use front::run;
pub use living::name_living;
pub use sink::Sink;
pub use terminal::{LEAVE_OTHER_SCREEN, SANE};
pub use unshown::name_unshown;
