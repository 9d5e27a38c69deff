//! The store against real disks.

mod claims;
mod disk;
mod events;
mod finding;
mod fixtures;
mod formats;
mod generations;
mod groups;
mod journal;
mod kit;
mod log_costs;
mod log_failures;
mod logs;
mod marks;
mod members;
mod name_index;
mod names;
mod private;
mod restoring;
mod stage;
mod standing;
mod strange;
