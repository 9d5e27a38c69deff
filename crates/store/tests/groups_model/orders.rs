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
    /// Lists and stops, then renames the mark.
    ListsFirst,
    /// Looks whether the groups are open, but not at their generations.
    ForgetsGenerations,
    /// Looks at the generation of its own group, but not of those above.
    ForgetsTheirGenerations,
    /// Renames the closed mark back, then gives it another generation.
    OpensFirst,
    /// Gives the closed mark another generation, then renames it back. It breaks the promise
    /// where two open the group at once.
    ChangesInPlace,
    /// A group that is made anew has the generation of every new group.
    SameWhenNew,
    /// Is put away, then leaves its group.
    LeavesLast,
}

impl Variant {
    pub const BROKEN: [Variant; 4] =
        [Variant::ChecksFirst, Variant::ForgetsAncestors, Variant::LocksLast, Variant::ListsFirst];

    /// Those that only break it once the group is opened again.
    pub const BROKEN_BY_AN_OPEN: [Variant; 4] = [
        Variant::ForgetsGenerations,
        Variant::ForgetsTheirGenerations,
        Variant::OpensFirst,
        Variant::SameWhenNew,
    ];
}

/// What the caller and then the keeper do before the command is born. The caller begins by
/// reading, and makes what is missing; that it looks for `.closed` as well only refuses earlier,
/// and is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Join {
    /// Makes the directory, and looks for its mark.
    Make(Place),
    Mark(Place),
    Read(Place),
    Lock,
    List,
    Listen,
    MakeMembers,
    Register,
    CheckGeneration(Place),
    CheckClosed(Place),
    Spawn,
}

pub fn joining(variant: Variant, place: Place) -> Vec<Join> {
    use Join::{
        CheckClosed, CheckGeneration, List, Listen, Lock, Make, MakeMembers, Mark, Read, Register,
        Spawn,
    };
    let line: &[Place] =
        if place == Place::Inner { &[Place::Outer, Place::Inner] } else { &[Place::Outer] };
    let mut ask: Vec<Join> = line.iter().flat_map(|place| [Make(*place), Mark(*place)]).collect();
    ask.extend(line.iter().map(|place| Read(*place)));
    let lock = vec![Lock, List, Listen];
    let register = vec![MakeMembers, Register];
    let own: &[Place] = if variant == Variant::ForgetsAncestors { &[place] } else { line };
    let check = own.iter().flat_map(|group| {
        let compares = match variant {
            Variant::ForgetsGenerations => false,
            Variant::ForgetsTheirGenerations => *group == place,
            _ => true,
        };
        compares.then_some(CheckGeneration(*group)).into_iter().chain([CheckClosed(*group)])
    });
    let check = check.collect();
    let parts = match variant {
        Variant::ChecksFirst => [ask, lock, check, register],
        Variant::LocksLast => [ask, register, check, lock],
        _ => [ask, lock, register, check],
    };
    parts.into_iter().flatten().chain([Spawn]).collect()
}

/// Where a start begins: it makes nothing that is there.
pub fn asking(variant: Variant, place: Place) -> usize {
    let steps = joining(variant, place);
    steps.iter().position(|step| matches!(step, Join::Read(_))).unwrap_or_default()
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
    Mark(Place),
    Rename,
    /// Which groups are below it.
    ListNames,
    ListMembers(Place),
    Ask,
    Await,
}

pub fn closing(variant: Variant, group: Place) -> Vec<Close> {
    let mut write = vec![Close::Make(Place::Outer), Close::Mark(Place::Outer)];
    let mut list = vec![Close::ListNames];
    if group == Place::Inner {
        write.extend([Close::Make(Place::Inner), Close::Mark(Place::Inner)]);
    } else {
        list.push(Close::ListMembers(Place::Outer));
    }
    write.push(Close::Rename);
    list.extend([Close::ListMembers(Place::Inner), Close::Ask, Close::Await]);
    match variant {
        Variant::ListsFirst => [list, write].concat(),
        _ => [write, list].concat(),
    }
}

/// What opens a group again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Open {
    /// An older version may have left it beside `.closed`, or one that has made it late.
    RemoveSecondMark,
    RemoveClosed,
    LookForMark,
    Mark,
    /// What is wrong: the closed mark gets another generation, and is renamed back.
    Change,
    RenameBack,
}

pub fn opening(variant: Variant) -> &'static [Open] {
    match variant {
        Variant::OpensFirst => &[Open::RenameBack, Open::Change],
        Variant::ChangesInPlace => &[Open::Change, Open::RenameBack],
        _ => &[Open::RemoveSecondMark, Open::RemoveClosed, Open::LookForMark, Open::Mark],
    }
}
