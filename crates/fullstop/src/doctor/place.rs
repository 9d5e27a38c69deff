//! Where we are: which machine, in a container or not, as whom.

use super::finding::{Area, Finding};
use std::path::Path;

/// What the advice depends on.
#[derive(Clone, Debug)]
pub struct Place {
    pub uid: u32,
    pub container: Option<Container>,
    pub systemd: Systemd,
    /// This very process is pid 1 of its namespace, and so a run would be.
    pub is_first: bool,
    /// No member can become another user than it is.
    pub no_new_privileges: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Container {
    Docker,
    Podman,
    Kubernetes,
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Systemd {
    None,
    /// It runs, but no manager of this user can be seen.
    System,
    /// `systemd-run --user` would work.
    User,
}

impl Place {
    pub fn here() -> Place {
        Place {
            uid: rustix::process::geteuid().as_raw(),
            container: container(),
            systemd: systemd(),
            is_first: std::process::id() == 1,
            no_new_privileges: rustix::thread::no_new_privs().unwrap_or(false),
        }
    }

    pub fn is_root(&self) -> bool {
        self.uid == 0
    }

    /// One line on the kernel, one on the machine.
    pub fn findings(&self) -> Vec<Finding> {
        let name = rustix::system::uname();
        let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
        let kernel = [name.sysname(), name.release(), name.machine()].map(text).join(" ");
        let machine = format!(
            "{}: {}, {} of memory, {}, uid {}",
            text(name.nodename()),
            processors(),
            gibibytes(memory()),
            self.container.map_or("no container", Container::name),
            self.uid
        );
        vec![
            Finding::green(Area::Machine, "kernel", kernel),
            Finding::green(Area::Machine, "machine", machine),
        ]
    }
}

impl Container {
    fn name(self) -> &'static str {
        match self {
            Container::Docker => "in a docker container",
            Container::Podman => "in a podman container",
            Container::Kubernetes => "in a kubernetes pod",
            Container::Other => "in a container",
        }
    }
}

/// By the marks that engines leave. There is no sure way, and only advice hangs on it.
fn container() -> Option<Container> {
    let there = |path: &str| Path::new(path).exists();
    if std::env::var_os("KUBERNETES_SERVICE_HOST").is_some() {
        Some(Container::Kubernetes)
    } else if there("/run/.containerenv") {
        Some(Container::Podman)
    } else if there("/.dockerenv") {
        Some(Container::Docker)
    } else if std::env::var_os("container").is_some() || there("/run/systemd/container") {
        Some(Container::Other)
    } else {
        None
    }
}

fn systemd() -> Systemd {
    // As sd_booted(3) asks.
    if !Path::new("/run/systemd/system").exists() {
        return Systemd::None;
    }
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").filter(|dir| !dir.is_empty());
    match runtime {
        Some(dir) if Path::new(&dir).join("systemd/private").exists() => Systemd::User,
        _ => Systemd::System,
    }
}

fn processors() -> String {
    match std::thread::available_parallelism().map_or(1, usize::from) {
        1 => "1 processor".to_owned(),
        count => format!("{count} processors"),
    }
}

fn memory() -> u64 {
    let info = rustix::system::sysinfo();
    // Its width is not the same on every machine.
    #[allow(clippy::useless_conversion)]
    let total = u64::from(info.totalram);
    total.saturating_mul(u64::from(info.mem_unit))
}

fn gibibytes(bytes: u64) -> String {
    let tenths = bytes / ((1 << 30) / 10);
    format!("{}.{} GiB", tenths / 10, tenths % 10)
}
