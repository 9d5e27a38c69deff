//! Which cage a run would get, and how to get a better one.

use super::finding::{Area, Finding};
use super::place::{Container, Place, Systemd};
use fullstop_cage::linux::probe::{self, NoCgroup, Tried};
use fullstop_cage::plain;
use fullstop_core::cage::CageKind;
use std::io;
use std::path::Path;

/// What there is to be had.
pub struct Had {
    pub cgroup: Result<Tried, NoCgroup>,
    /// /proc shows our own pid namespace.
    pub proc_is_ours: bool,
}

impl Had {
    pub fn here() -> Had {
        Had { cgroup: probe::cgroup(), proc_is_ours: probe::proc_is_ours() }
    }

    /// What `--cage auto` would choose; nothing, if there is nothing to choose.
    pub fn kind(&self) -> Option<CageKind> {
        match &self.cgroup {
            Ok(tried) if tried.holds() => Some(CageKind::Cgroup),
            // A tree is walked through /proc.
            _ => self.proc_is_ours.then_some(CageKind::Tree),
        }
    }

    pub fn finding(&self, place: &Place) -> Finding {
        let uid = place.uid;
        let why = self.why_not(uid);
        let next = self.way_out(place);
        let (area, name) = (Area::Cage, "cage");
        match (self.kind(), &self.cgroup) {
            (Some(CageKind::Cgroup), Ok(tried)) => {
                let dir = tried.place.display();
                let what = format!("cgroup: a run of uid {uid} gets one beneath {dir}");
                Finding::green(area, name, what)
            }
            (Some(_), _) => {
                let what = format!("tree: a run of uid {uid} gets no cgroup: {why}");
                Finding::yellow(area, name, what, next)
            }
            (None, _) => {
                let what =
                    format!("none: /proc does not show this pid namespace, and no cgroup: {why}");
                let next = "mount -t proc proc /proc in this pid namespace \
                            (unshare --mount-proc does)";
                Finding::red(area, name, what, next)
            }
        }
    }

    fn why_not(&self, uid: u32) -> String {
        match &self.cgroup {
            Err(NoCgroup::NoPlace(why)) => why.clone(),
            Err(NoCgroup::Closed { place, source }) => {
                let dir = place.display();
                format!("uid {uid} cannot make one beneath {dir}: {}", plain(source))
            }
            Ok(Tried { place, moved: Err(error), .. }) => {
                format!("{} lets nobody in: {}", place.display(), plain(error))
            }
            Ok(_) => String::new(),
        }
    }

    /// How to get a cgroup where there is none.
    pub fn way_out(&self, place: &Place) -> String {
        match &self.cgroup {
            Err(NoCgroup::NoPlace(_)) => not_mounted(place),
            Err(NoCgroup::Closed { place: dir, source }) => closed(place, dir, source),
            Ok(tried) => match &tried.moved {
                Err(error) => closed(place, &tried.place, error),
                Ok(()) => String::new(),
            },
        }
    }
}

fn not_mounted(place: &Place) -> String {
    if let Some(container) = place.container {
        return container_flags(container);
    }
    let ask = if place.is_root() { "" } else { "ask root for: " };
    format!(
        "{ask}mount -t cgroup2 cgroup2 /sys/fs/cgroup \
         (where cgroup v1 is mounted there: /sys/fs/cgroup/unified)"
    )
}

fn closed(place: &Place, dir: &Path, error: &io::Error) -> String {
    let shown = dir.display();
    // EAGAIN is how the kernel says that there are too many of them.
    if error.kind() == io::ErrorKind::WouldBlock {
        return format!("raise cgroup.max.descendants and cgroup.max.depth above {shown}");
    }
    // A read-only mount is what container engines give; permissions do not matter yet.
    if error.kind() == io::ErrorKind::ReadOnlyFilesystem {
        return match place.container {
            Some(container) => container_flags(container) + &for_own_use(place, dir),
            None if place.is_root() => format!("mount -o remount,rw {shown}"),
            None => format!("ask root for: mount -o remount,rw {shown}"),
        };
    }
    if place.is_root() {
        return format!("find out who refuses root: mkdir {shown}/try (a security module?)");
    }
    delegated(place, dir)
}

/// What a plain user needs besides a writable mount.
fn for_own_use(place: &Place, dir: &Path) -> String {
    if place.is_root() {
        return String::new();
    }
    let (uid, dir) = (place.uid, dir.display());
    format!(", and inside, as root: chown {uid} {dir} {dir}/cgroup.procs")
}

/// For a plain user, where root could make one.
fn delegated(place: &Place, dir: &Path) -> String {
    const SCOPE: &str = "systemd-run --user --scope -p Delegate=yes fullstop run -- …";
    const UNIT: &str = "in a user unit: Delegate=yes";
    let (uid, dir) = (place.uid, dir.display());
    match place.systemd {
        Systemd::User => format!("{SCOPE} ({UNIT})"),
        Systemd::System => {
            format!("loginctl enable-linger {uid}, log in anew, then {SCOPE} ({UNIT})")
        }
        Systemd::None => format!(
            "as root: mkdir {dir}/user-{uid}, chown -R {uid} it, and write the pid of your shell \
             to its cgroup.procs (with systemd: {SCOPE}; {UNIT})"
        ),
    }
}

/// A mount of the container's own part of the hierarchy, and writable. Binding the
/// host's /sys/fs/cgroup instead would show it all of the host's.
fn container_flags(container: Container) -> String {
    const DOCKER: &str =
        "docker run --cgroupns=private --security-opt writable-cgroups=true … (Docker 28 or later)";
    const PODMAN: &str = "podman run --cgroupns=private --security-opt unmask=/sys/fs/cgroup …";
    match container {
        Container::Docker => DOCKER.to_owned(),
        Container::Podman => PODMAN.to_owned(),
        Container::Kubernetes => "give the pod a writable cgroup: cgroup_writable = true for its \
                                  containerd runtime, or a privileged container"
            .to_owned(),
        Container::Other => {
            format!("start the container with a writable cgroup: {DOCKER}; {PODMAN}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn place(uid: u32, container: Option<Container>, systemd: Systemd) -> Place {
        Place { uid, container, systemd, is_first: false, no_new_privileges: false }
    }

    fn had(cgroup: Result<Tried, NoCgroup>, proc_is_ours: bool) -> Had {
        Had { cgroup, proc_is_ours }
    }

    fn closed_by(kind: io::ErrorKind) -> Result<Tried, NoCgroup> {
        Err(NoCgroup::Closed { place: PathBuf::from("/sys/fs/cgroup/a"), source: kind.into() })
    }

    fn tried(holds: bool) -> Tried {
        let moved = if holds { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) };
        Tried {
            place: PathBuf::from("/sys/fs/cgroup/a"),
            born: Err(io::ErrorKind::Unsupported.into()),
            moved,
            kill: Ok(()),
            removed: true,
        }
    }

    #[test]
    fn the_strongest_that_holds() {
        assert_eq!(had(Ok(tried(true)), false).kind(), Some(CageKind::Cgroup));
        assert_eq!(had(Ok(tried(false)), true).kind(), Some(CageKind::Tree));
        assert_eq!(
            had(closed_by(io::ErrorKind::PermissionDenied), true).kind(),
            Some(CageKind::Tree)
        );
        assert_eq!(had(Ok(tried(false)), false).kind(), None);
    }

    #[test]
    fn a_user_is_told_the_directory_and_the_way_out() {
        let had = had(closed_by(io::ErrorKind::PermissionDenied), true);
        for systemd in [Systemd::None, Systemd::System, Systemd::User] {
            let finding = had.finding(&place(1000, None, systemd));
            assert!(finding.what.contains("/sys/fs/cgroup/a"), "{finding:?}");
            let next = finding.next.expect("a way out");
            let wanted = "systemd-run --user --scope -p Delegate=yes";
            assert!(next.contains(wanted) && next.contains("user unit"), "{next}");
        }
    }

    #[test]
    fn a_container_is_told_its_flags() {
        let had = had(closed_by(io::ErrorKind::ReadOnlyFilesystem), true);
        let next = |uid, container| had.way_out(&place(uid, Some(container), Systemd::None));
        assert!(next(0, Container::Docker).contains("docker run --cgroupns=private"));
        assert!(next(0, Container::Podman).contains("podman run --cgroupns=private"));
        assert!(!next(0, Container::Podman).contains("chown"));
        assert!(next(7, Container::Podman).contains("chown 7 /sys/fs/cgroup/a"));
    }

    #[test]
    fn flags_are_no_cure_for_permissions() {
        let had = had(closed_by(io::ErrorKind::PermissionDenied), true);
        let next = had.way_out(&place(7, Some(Container::Docker), Systemd::None));
        assert!(next.contains("chown -R 7") && !next.contains("docker run"), "{next}");
    }

    #[test]
    fn what_is_missing_is_to_be_mounted() {
        let had = had(Err(NoCgroup::NoPlace("no cgroup v2 is mounted".to_owned())), true);
        let finding = had.finding(&place(1000, None, Systemd::None));
        assert!(finding.what.contains("no cgroup v2 is mounted"));
        assert!(
            finding.next.is_some_and(|next| next.starts_with("ask root for: mount -t cgroup2"))
        );
    }
}
