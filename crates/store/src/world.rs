//! Where a pid means something: one machine, one boot, one pid namespace.

use serde::{Deserialize, Serialize};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;

/// Records of another one are not ours to act upon: a home may be shared.
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
            pid_namespace: fs::metadata("/proc/self/ns/pid").map_or(0, |meta| meta.ino()),
        })
    }

    pub fn is_here(&self) -> bool {
        self == World::here()
    }

    /// This machine, before it was last started.
    pub fn is_before_reboot(&self) -> bool {
        let here = World::here();
        self.machine == here.machine && self.boot != here.boot
    }
}

/// Its id, or where there is none (containers) its name.
fn machine() -> String {
    line("/etc/machine-id")
        .unwrap_or_else(|| rustix::system::uname().nodename().to_string_lossy().into_owned())
}

fn line(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
