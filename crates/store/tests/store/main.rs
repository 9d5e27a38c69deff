//! The store against real disks.

mod claims;
mod disk;
mod events;
mod finding;
mod fixtures;
mod formats;
mod groups;
mod kit;
mod names;
mod private;
mod stage;
mod standing;
