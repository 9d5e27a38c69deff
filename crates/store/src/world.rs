//! Where this process is, and whether a record was written there.

use fullstop_cage::linux::is_proc_usable;
use fullstop_protocol::{Whereabouts, World};
use rustix::fs::{Mode, OFlags, open, stat};
use std::sync::OnceLock;

/// Where this process is.
///
/// ```
/// use fullstop_store::world;
///
/// assert!(world::is_here(world::here()));
/// ```
pub fn here() -> &'static World {
    static HERE: OnceLock<World> = OnceLock::new();
    let namespace = |name: &str| stat(format!("/proc/self/ns/{name}")).map(|stat| stat.st_ino).ok();
    HERE.get_or_init(|| World {
        machine: machine(),
        boot: line("/proc/sys/kernel/random/boot_id").unwrap_or_default(),
        pid_namespace: namespace("pid").unwrap_or_default(),
        time_namespace: namespace("time"),
    })
}

pub fn is_here(world: &World) -> bool {
    whereabouts(world) == Whereabouts::Here
}

/// Where this was written, as far as can be told from here.
pub fn whereabouts(world: &World) -> Whereabouts {
    let here = here();
    // Without /proc neither the boot nor the namespace is known, and all would differ.
    if here.boot.is_empty() || here.pid_namespace == 0 {
        Whereabouts::Unseen
    } else if (&world.machine, &world.boot, world.pid_namespace)
        == (&here.machine, &here.boot, here.pid_namespace)
    {
        if is_proc_usable() { Whereabouts::Here } else { Whereabouts::Unseen }
    } else if world.boot == here.boot {
        Whereabouts::OtherNamespace
    } else if world.machine == here.machine && !world.boot.is_empty() {
        Whereabouts::BeforeReboot
    } else {
        Whereabouts::OtherMachine
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
        let here = here();
        let with = |machine: &str, boot: &str, pid_namespace| {
            let (machine, boot) = (machine.to_owned(), boot.to_owned());
            whereabouts(&World { machine, boot, pid_namespace, time_namespace: None })
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
