//! What fullstop keeps on disk: run directories, locks, groups.
//!
//! ```text
//! $FULLSTOP_DIR (default: $XDG_STATE_HOME/fullstop, 0700)
//!   runs/<id>/   spec.json  record.json  record.room  events.jsonl  members  lock  control.sock
//!                while it is restarted: spec.json.old  record.json.old
//!                out.log  err.log  tty.log, and their indexes
//!   journal      a notice of every change of a run's state
//!   live/<id>    the lock of an unfinished run, by a second name
//!   names/<name>/<id>-<started_at>   which runs have that name
//!   groups/<a>/<b>/   .open or .closed   .members/<id> (the lock again)
//! ```
//!
//! A run directory has one writer: its keeper, or the guard once the keeper is
//! dead, or a sweep once both are. See `docs/records.md`.
#![forbid(unsafe_code)]

mod error;
mod files;
pub mod format;
mod generations;
mod groups;
mod hash;
mod journal;
mod log;
mod mark;
mod members;
mod name_index;
mod room;
mod rundir;
mod store;
mod tag;
pub mod world;

pub use error::{Result, StoreError};
pub use files::Dir;
pub use groups::GroupName;
pub use journal::{Cursor, InvalidCursor, JournalReader, News, Notice};
pub use log::{Extent, Log, LogReader, Piece, Took};
pub use mark::AskedGroup;
pub use members::{KnownMembers, LostMembers, MEMBERS, MemberFile};
pub use room::Reserve;
pub use rundir::{Name, RunDir, Standing};
pub use store::{FindError, Store};
pub use tag::Tag;
