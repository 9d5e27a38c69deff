//! Linux: a subreaper always, a cgroup where one can be had, pidfds for signals.

mod before_main;
mod birth;
mod cage;
mod cgroup;
mod clock;
mod cpu;
mod descendants;
mod descriptors;
mod entry;
mod fork;
mod groups;
mod holders;
mod identity;
mod kill_loop;
mod latecomers;
mod lock;
mod lost_cage;
mod newborn;
mod origin;
mod own_time;
mod peer;
mod pinned_process;
mod presence;
pub mod probe;
mod procfs;
mod program;
mod scheduling;
mod secret;
mod signal_batch;
mod signals;
mod stdio;
mod syscall;
#[cfg(test)]
mod testing;
mod title;
mod view;
mod wait;

pub use before_main::{BeforeMain, has_threads, is_executed_as, is_privileged, is_socket};
pub use cage::{Blueprint, LinuxCage};
pub use clock::now;
pub use descriptors::{
    close_all_but, is_inheritable, null_over, raise_descriptor_limit, room_for_descriptors,
};
pub use entry::fill_standard_descriptors;
pub use fork::{Fork, fork};
pub use groups::{group_of, own_group, own_session};
pub use holders::holders;
pub use identity::{glance, identify};
pub use lock::{is_locked, try_lock};
pub use lost_cage::{LostCage, Marked, MemberEvidence, cgroup_of, last_born, members};
pub use origin::Origin;
pub use own_time::OwnTime;
pub use peer::{Peer, peer};
pub use pinned_process::{PinnedProcess, watch_parent, watch_process};
pub use presence::{PeerProcess, Presence, peer_process, presence};
pub use procfs::{is_usable as is_proc_usable, name as process_name};
pub use program::{candidates, check_program};
pub use scheduling::ask_for_short_turns;
pub use secret::secret;
pub use signals::{
    Heard, Mask, Signals, die_of, hold, hold_all, leave, set_ignored, shield, stop_self_by,
};
pub use title::{hide_arguments_behind, set_command_line, set_process_name, titled_founders};
pub use view::{Process, below, inside};
pub use wait::{Change, Waited, has_children, wait_any, wait_for};
