//! Linux: a subreaper always, a cgroup where one can be had, pidfds for signals.

mod birth;
mod cage;
mod cgroup;
mod descriptors;
mod entry;
mod fork;
mod groups;
mod held;
mod identity;
mod kin;
mod last;
mod lock;
mod newborn;
mod origin;
mod procfs;
mod program;
mod remains;
mod signals;
mod syscall;
mod view;
mod wait;

pub use cage::{Blueprint, LinuxCage, now};
pub use descriptors::{close_all_but, null_over, raise_descriptor_limit};
pub use entry::fill_standard_descriptors;
pub use fork::{Fork, fork};
pub use groups::{group_of, own_group, own_session};
pub use held::{Held, watch_parent, watch_process};
pub use identity::{glance, identify};
pub use kin::{descendants, is_alive};
pub use lock::{is_locked, try_lock};
pub use origin::{Origin, disguise};
pub use program::candidates;
pub use remains::{Clues, Marked, Remains, cgroup_of, members};
pub use signals::{Heard, Mask, Signals, die_of, hold, leave, shield, stop_self_by};
pub use view::{Process, below, inside};
pub use wait::{Change, Waited, has_children, wait_any, wait_for};
