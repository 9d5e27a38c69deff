//! Which cells there are, and which are not, and why.

use super::cell::{Cage, Cell};
use super::member::{Leader, MEMBERS, Member};
use super::story::Pace;
use super::trigger::{ALL, Trigger};
use super::{needs, stuck};
use crate::{Need, Registry, User};

/// Registers the whole matrix.
pub fn register(registry: &mut Registry) {
    for cell in cells() {
        add(registry, &format!("matrix::{}", cell.name()), cell);
    }
    for cell in defaults() {
        add(registry, &format!("default::{}", cell.name()), cell);
    }
    stuck::register(registry);
}

fn add(registry: &mut Registry, name: &str, cell: Cell) {
    let mut needs: Vec<Need> = Vec::new();
    if cell.cage != Cage::Tree {
        needs.push(Need::Cgroup);
    }
    needs.extend(needs::of(cell.member, cell.user));
    let scenario = registry.scenario(name, &needs, move |world| cell.play(world));
    if cell.member.heavy() {
        // It keeps others from running by itself, and is judged all the same.
        scenario.heavy().crowd();
    }
}

/// Members vary fastest, so that those that keep the machine busy are spread
/// out instead of running side by side.
fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for trigger in ALL {
        for cage in [Cage::Cgroup, Cage::Tree] {
            for user in [User::Root, User::Plain] {
                for member in MEMBERS.iter().filter(|member| member.users.contains(&user)) {
                    let pace = pace(member);
                    cells.push(Cell { member, cage, user, trigger, pace });
                }
            }
        }
    }
    cells.retain(makes_sense);
    cells
}

fn makes_sense(cell: &Cell) -> bool {
    match cell.member.leader {
        // It is over before any trigger can be pulled; what a stop that races
        // with a natural end does is decided by the model checker in core.
        Leader::LeavesNobody => cell.trigger == Trigger::Natural,
        // Without a cgroup nobody but root can end it: that is the stuck case,
        // which has expectations of its own.
        _ => cell.member.name != "setuid-root" || cell.cage == Cage::Cgroup,
    }
}

fn pace(member: &Member) -> Pace {
    if member.saves { Pace::Patient } else { Pace::Short }
}

/// Without `--ladder` and `--cage`, as people call it.
fn defaults() -> Vec<Cell> {
    let wanted = ["plain", "ignore-term", "save-on-term", "save-needs-children", "tree-on-term"];
    let members = MEMBERS.iter().filter(|member| wanted.contains(&member.name));
    let cell = |member| Cell {
        member,
        cage: Cage::Auto,
        user: User::Plain,
        trigger: Trigger::Term,
        pace: Pace::Default,
    };
    members.map(cell).collect()
}
