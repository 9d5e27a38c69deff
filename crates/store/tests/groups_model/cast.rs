//! Who takes part, and how they stand.

use crate::tree::Place;

/// What may still happen to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Left {
    /// Deaths of keeper and guard at once, of a sweeper, of the closer, or of an opener.
    pub crashes: u8,
    pub prunes: u8,
    pub restarts: u8,
    /// How often the group is opened again.
    pub opens: u8,
}

/// How the groups are at the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Groups {
    Missing,
    Open,
    /// The one that is to be closed was closed before.
    Closed,
}

pub struct Plan {
    pub groups: Groups,
    /// Where each run joins.
    pub places: Vec<Place>,
    /// What is closed.
    pub close: Place,
    pub left: Left,
}

/// One run and whoever keeps it. Each flag is a thing of its own on disk, or not.
#[allow(clippy::struct_excessive_bools)]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Run {
    pub place: Place,
    pub generation: u8,
    pub keeper: Keeper,
    /// The generations of the outer and the inner group, as they were when it was asked for.
    pub saw: [Option<u8>; 2],
    /// It was asked for before the close.
    pub early: bool,
    /// Its lock has a name in `live`.
    pub listed: bool,
    pub registered: bool,
    pub listens: bool,
    /// Somebody asked it to stop.
    pub asked: bool,
    /// Its processes.
    pub alive: bool,
}

/// The caller who asks, then keeper and guard, who share the lock; this is all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Keeper {
    /// Not begun, or gone.
    Nobody,
    /// Holds the lock once it has taken it.
    Beginning {
        next: usize,
    },
    Running,
    Ending {
        next: usize,
    },
}

impl Run {
    pub fn new(place: Place, keeper: Keeper) -> Run {
        Run {
            place,
            generation: 1,
            keeper,
            saw: [None; 2],
            early: false,
            listed: false,
            registered: false,
            listens: false,
            asked: false,
            alive: false,
        }
    }

    pub fn is_lost(&self) -> bool {
        self.listed && self.keeper == Keeper::Nobody
    }

    pub fn is_over(&self) -> bool {
        !self.listed && self.keeper == Keeper::Nobody
    }
}

/// Whoever closes the group. What it has found is one bit for each run, with the
/// generation it had.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Closer {
    Working { next: usize, inner_seen: bool, found: Vec<Option<u8>> },
    Returned,
    Dead,
}

impl Closer {
    pub fn has_returned(&self) -> bool {
        *self == Closer::Returned
    }

    pub fn is_dead(&self) -> bool {
        *self == Closer::Dead
    }
}

/// A sweep or a prune under way: of whom, and which step comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Errand<T> {
    pub of: T,
    pub next: usize,
}

/// Which races were met on the way here.
#[allow(clippy::struct_excessive_bools)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Seen {
    pub refused: bool,
    pub stopped: bool,
    pub swept: bool,
    pub made_anew: bool,
    pub restarted_late: bool,
    /// Refused by a group that is open again.
    pub refused_when_open: bool,
}
