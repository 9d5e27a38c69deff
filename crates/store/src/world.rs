//! Where a pid means something: one machine, one boot, one pid namespace.

use fullstop_cage::linux::is_proc_usable;
use rustix::fs::{Mode, OFlags, open, stat};
use serde::{Deserialize, Serialize};
use std::sync::OnceLock;

/// Records of another one are not ours to act upon: a home may be shared.
///
/// ```
/// use fullstop_store::World;
///
/// assert!(World::here().is_here() && !World::here().is_before_reboot());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct World {
    pub machine: String,
    pub boot: String,
    /// The inode of the pid namespace.
    pub pid_namespace: u64,
}

impl World {
    pub fn here() -> &'static World {
        static HERE: OnceLock<World> = OnceLock::new();
        HERE.get_or_init(|| World {
            machine: machine(),
            boot: line("/proc/sys/kernel/random/boot_id").unwrap_or_default(),
            pid_namespace: stat("/proc/self/ns/pid").map_or(0, |stat| stat.st_ino),
        })
    }

    pub fn is_here(&self) -> bool {
        // What cannot be told is not the same.
        self == World::here() && !self.boot.is_empty() && is_proc_usable()
    }

    /// This machine, before it was last started.
    pub fn is_before_reboot(&self) -> bool {
        let here = World::here();
        self.machine == here.machine
            && self.boot != here.boot
            && !(self.boot.is_empty() || here.boot.is_empty())
    }
}

/// Its id, or where there is none (containers) its name.
fn machine() -> String {
    line("/etc/machine-id")
        .unwrap_or_else(|| rustix::system::uname().nodename().to_string_lossy().into_owned())
}

/// One read: these are short, and stand in the way of every run.
fn line(path: &str) -> Option<String> {
    let mut buffer = [0; 128];
    let file = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let length = rustix::io::read(&file, &mut buffer).ok()?;
    let text = std::str::from_utf8(&buffer[..length]).ok()?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
