//! The orders of steps: as they are coded, and wrong ones.

use crate::tree::Place;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    AsCoded,
    /// Looks for the close, then registers.
    ChecksFirst,
    /// Does not look at the groups above its own.
    ForgetsAncestors,
    /// Is listed as live only when it is about to be born.
    LocksLast,
    /// Lists and stops, then writes `closed`.
    ListsFirst,
    /// Is put away, then leaves its group.
    LeavesLast,
}

impl Variant {
    pub const BROKEN: [Variant; 4] =
        [Variant::ChecksFirst, Variant::ForgetsAncestors, Variant::LocksLast, Variant::ListsFirst];
}

/// What a keeper does before its command is born.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Join {
    Lock,
    List,
    Listen,
    Make(Place),
    MakeMembers,
    Register,
    Check(Place),
    Spawn,
}

pub fn joining(variant: Variant, place: Place) -> Vec<Join> {
    use Join::{Check, List, Listen, Lock, Make, MakeMembers, Register, Spawn};
    let lock = vec![Lock, List, Listen];
    let line: &[Place] =
        if place == Place::Inner { &[Place::Outer, Place::Inner] } else { &[Place::Outer] };
    let mut register: Vec<Join> = line.iter().map(|place| Make(*place)).collect();
    register.extend([MakeMembers, Register]);
    let own: &[Place] = if variant == Variant::ForgetsAncestors { &[place] } else { line };
    let check: Vec<Join> = own.iter().map(|place| Check(*place)).collect();
    let parts = match variant {
        Variant::ChecksFirst => [lock, check, register],
        Variant::LocksLast => [register, check, lock],
        _ => [lock, register, check],
    };
    parts.into_iter().flatten().chain([Spawn]).collect()
}

/// What a keeper or a sweep does when everybody is dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    Leave,
    Unlist,
    Unlock,
}

pub fn ending(variant: Variant) -> [End; 3] {
    match variant {
        Variant::LeavesLast => [End::Unlist, End::Leave, End::Unlock],
        _ => [End::Leave, End::Unlist, End::Unlock],
    }
}

/// What closes a group. From `ListNames` on it is done again until nobody is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Close {
    Make(Place),
    Write,
    /// Which groups are below it.
    ListNames,
    ListMembers(Place),
    Ask,
    Await,
}

pub fn closing(variant: Variant, group: Place) -> Vec<Close> {
    let mut write = vec![Close::Make(Place::Outer)];
    let mut list = vec![Close::ListNames];
    if group == Place::Inner {
        write.push(Close::Make(Place::Inner));
    } else {
        list.push(Close::ListMembers(Place::Outer));
    }
    write.push(Close::Write);
    list.extend([Close::ListMembers(Place::Inner), Close::Ask, Close::Await]);
    match variant {
        Variant::ListsFirst => [list, write].concat(),
        _ => [write, list].concat(),
    }
}
