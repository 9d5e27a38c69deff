//! What could escape the cage that a run would get, said openly.

use super::finding::{Area, Finding};
use super::place::Place;
use fullstop_core::cage::CageKind;

/// Nothing holds these, on any machine.
const SERVERS: &str = "work handed to a server outside: docker, systemd-run, at, cron, a tmux that \
                       runs already. It is that server that starts it, not the run";

/// `better` says how to get a cgroup.
pub fn findings(cage: Option<CageKind>, place: &Place, better: &str) -> Vec<Finding> {
    let green = |name, what: &str| Finding::green(Area::Escape, name, what);
    let yellow = |name, what: &str| Finding::yellow(Area::Escape, name, what, better);
    let mut found = vec![green("servers", SERVERS)];
    match cage {
        Some(CageKind::Cgroup) if place.is_root() => found.push(green(
            "other-namespace",
            "a root member that leaves its cgroup and enters another pid namespace as well",
        )),
        Some(CageKind::Cgroup) | None => {}
        Some(CageKind::Tree) => {
            if place.is_root() {
                found.push(yellow(
                    "other-namespace",
                    "a root member that enters another pid namespace: its orphans go to the init \
                     there",
                ));
            } else if !place.no_new_privileges {
                found.push(yellow(
                    "setuid",
                    "a member that became root (setuid): a plain user cannot signal it. It is \
                     named as a survivor",
                ));
            }
            found.push(yellow(
                "newborn",
                "with keeper and guard killed at the same instant, a process born after the last \
                 recorded census that has also scrubbed its environment cannot be told from a \
                 stranger, and is left alone",
            ));
        }
    }
    if place.is_first {
        found.push(Finding::yellow(
            Area::Escape,
            "pid-1",
            "as pid 1 of a namespace, even our own exit waits for a member that cannot be killed",
            "put an init in front: docker run --init, podman run --init, unshare --fork sh -c …",
        ));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::place::Systemd;
    use super::*;

    fn names(cage: CageKind, uid: u32, no_new_privileges: bool) -> Vec<&'static str> {
        let place = Place {
            uid,
            container: None,
            systemd: Systemd::None,
            is_first: false,
            no_new_privileges,
        };
        let found = findings(Some(cage), &place, "better");
        found.into_iter().map(|finding| finding.name).collect()
    }

    #[test]
    fn a_tree_holds_less_than_a_cgroup() {
        assert_eq!(names(CageKind::Cgroup, 1000, false), ["servers"]);
        assert_eq!(names(CageKind::Cgroup, 0, false), ["servers", "other-namespace"]);
        assert_eq!(names(CageKind::Tree, 0, false), ["servers", "other-namespace", "newborn"]);
        assert_eq!(names(CageKind::Tree, 1000, false), ["servers", "setuid", "newborn"]);
        assert_eq!(names(CageKind::Tree, 1000, true), ["servers", "newborn"]);
    }
}
