//! Where a pid means something: one machine, one boot, one pid namespace.

use fullstop_cage::linux::is_proc_usable;
use rustix::fs::{Mode, OFlags, open, stat};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::OnceLock;

/// Records of another one are not ours to act upon: a home may be shared.
///
/// ```
/// use fullstop_store::World;
///
/// assert!(World::here().is_here());
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

    /// Where this was written, as far as can be told from here.
    pub fn whereabouts(&self) -> Whereabouts {
        let here = World::here();
        // Without /proc neither the boot nor the namespace is known, and all would differ.
        if here.boot.is_empty() || here.pid_namespace == 0 {
            Whereabouts::Unseen
        } else if self == here {
            if is_proc_usable() { Whereabouts::Here } else { Whereabouts::Unseen }
        } else if self.boot == here.boot {
            Whereabouts::OtherNamespace
        } else if self.machine == here.machine && !self.boot.is_empty() {
            Whereabouts::BeforeReboot
        } else {
            Whereabouts::OtherMachine
        }
    }

    pub fn is_here(&self) -> bool {
        self.whereabouts() == Whereabouts::Here
    }
}

/// Where a record was written, as far as can be told from here.
///
/// ```
/// use fullstop_store::{Whereabouts, World};
///
/// let container = World { pid_namespace: 1, ..World::here().clone() };
/// assert_eq!(container.whereabouts(), Whereabouts::OtherNamespace);
/// assert!(container.whereabouts().is_elsewhere());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Whereabouts {
    /// Its pids mean the same here.
    Here,
    /// There is no usable `/proc`, so that a record of this place cannot be told either.
    Unseen,
    /// This machine, before it was last started.
    BeforeReboot,
    /// Under this kernel, which its boot id names: in another pid namespace, or in a
    /// container with a machine id or a host name of its own.
    OtherNamespace,
    /// Under another kernel. What a container calls its machine dies with the container,
    /// so that one of an earlier boot cannot be told from one of another machine.
    OtherMachine,
}

impl Whereabouts {
    /// Whether pids and processes that are written down there mean nothing here, and
    /// never will.
    pub fn is_elsewhere(self) -> bool {
        matches!(self, Whereabouts::OtherNamespace | Whereabouts::OtherMachine)
    }

    /// In a few words, for a list.
    pub fn brief(self) -> &'static str {
        match self {
            Whereabouts::Here => "here",
            Whereabouts::Unseen => "no /proc",
            Whereabouts::BeforeReboot => "before a reboot",
            Whereabouts::OtherNamespace => "another pid namespace",
            Whereabouts::OtherMachine => "another machine",
        }
    }
}

impl fmt::Display for Whereabouts {
    /// As a sentence about a run.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Whereabouts::Here => "it belongs here",
            Whereabouts::Unseen => "there is no usable /proc here",
            Whereabouts::BeforeReboot => "it belongs to an earlier boot of this machine",
            Whereabouts::OtherNamespace => {
                "it belongs to another pid namespace, perhaps of a container that is gone"
            }
            Whereabouts::OtherMachine => {
                "it belongs to another machine, or to a container of an earlier boot"
            }
        })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_kernel_wrote_is_of_this_machine_only_by_its_name() {
        let here = World::here();
        let with = |machine: &str, boot: &str, pid_namespace| {
            let (machine, boot) = (machine.to_owned(), boot.to_owned());
            World { machine, boot, pid_namespace }.whereabouts()
        };
        let (machine, boot) = (here.machine.as_str(), here.boot.as_str());
        assert_eq!(with(machine, boot, here.pid_namespace), Whereabouts::Here);
        assert_eq!(with(machine, boot, 1), Whereabouts::OtherNamespace);
        // A container with a host name of its own, under this kernel.
        assert_eq!(with("3f2a", boot, 1), Whereabouts::OtherNamespace);
        assert_eq!(with(machine, "another", 1), Whereabouts::BeforeReboot);
        assert_eq!(with("3f2a", "another", 1), Whereabouts::OtherMachine);
        assert_eq!(with(machine, "", 1), Whereabouts::OtherMachine);
    }
}
