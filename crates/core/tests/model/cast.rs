//! Who and what the world is made of, and what can happen in it.

use fullstop_core::machine::Ask;

/// Who holds the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hand {
    Keeper,
    /// The keeper is dead and the guard has not seen it yet.
    Nobody,
    Guard,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Exec {
    Pending,
    Worked { told: bool },
    Failed { told: bool },
}

/// A process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Body {
    Alive,
    /// Sleeps in the kernel and takes no signal.
    Frozen,
    /// Killed, but not gone yet.
    Doomed,
    /// Killed, and still asleep in the kernel.
    FrozenDoomed,
    Dead,
    Unborn,
}

/// What may still happen. Everything that happens uses something up, here or in the life of a
/// process, so every path comes to a world where nothing happens any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Left {
    pub asks: u8,
    pub kills: u8,
    pub hosts: u8,
    pub storms: u8,
    pub waits: u8,
    pub retries: u8,
    pub freezes: u8,
    pub thaws: u8,
    pub keepers: u8,
    /// Signs of life: something is written, or processor time used.
    pub signs: u8,
    pub pauses: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Happens {
    /// The next order is carried out.
    Done,
    CageReady,
    Exec {
        works: bool,
    },
    ExecTold,
    Fork {
        slot: usize,
        frozen: bool,
    },
    Thaw {
        slot: usize,
    },
    LeaderDies,
    MemberDies {
        slot: usize,
    },
    LeaderReaped,
    Proven,
    Asked(Ask),
    Killed,
    HostGone,
    Storm,
    Tick,
    Wrote,
    Worked,
    Paused,
    Resumed,
    /// Time passes, though not as much as the machine waits for.
    Wait,
    /// Whoever takes the last step looks again and kills who came in the meantime.
    KillAgain,
    /// The keeper tells the guard how the stop stands.
    HandsOver,
    /// Whether the leader's exit can still be learnt depends on the age of the kernel.
    KeeperDies {
        exit_lost: bool,
    },
    GuardSees,
}

impl Body {
    pub fn lives(self) -> bool {
        !matches!(self, Body::Unborn | Body::Dead)
    }

    pub fn can_die(self) -> bool {
        matches!(self, Body::Alive | Body::Doomed)
    }

    pub fn kill(&mut self) {
        *self = match *self {
            Body::Alive => Body::Doomed,
            Body::Frozen => Body::FrozenDoomed,
            other => other,
        };
    }
}
