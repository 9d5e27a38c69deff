//! `members`: the members of a cage without a cgroup, in slots of one size.
//!
//! A record is replaced as a whole, which a crowd that comes and goes would make
//! expensive. Here only the slots that changed are written, in place. So a reader may find
//! a slot that is half written or damaged: each carries a checksum, and a slot that fails
//! its checksum names no process. See `docs/records.md`.

mod file;
mod read;
mod slot;

pub use file::MemberFile;
pub use read::{KnownMembers, LostMembers};

pub(crate) use read::read;

/// The name of the file in the run's directory.
pub const MEMBERS: &str = "members";
