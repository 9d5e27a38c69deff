//! What every process of ours needs from the operating system, whatever it does: wake-ups.

mod bell;
mod file_changes;

pub use bell::Bell;
pub use file_changes::{FileChanges, WatchId};
