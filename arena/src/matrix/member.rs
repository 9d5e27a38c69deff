//! What each member of the zoo is known to do, as far as a stop can tell.

use crate::User;

const HUP: i32 = 1;
const INT: i32 = 2;
const TERM: i32 = 15;

/// What the leader makes of polite signals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leader {
    /// Falls to any signal, except those it ignores.
    Falls { deaf_to: &'static [i32] },
    /// Takes a polite signal as a request, and exits with status 0.
    Answers,
    /// The same, but with status 1 if its children were asked along with it.
    AnswersForItsChildren,
    /// Exits with status 0 by itself and leaves the others behind.
    Leaves,
    /// Exits with status 0 by itself, and is alone.
    LeavesNobody,
}

/// What the others make of polite signals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crowd {
    /// Falls to TERM: a ladder never has to kill.
    Polite,
    /// Does not fall to TERM: every ladder has to kill.
    Deaf,
    /// May or may not be gone after a TERM.
    Wild,
}

/// Does the census stay the same until somebody is signalled?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// The number announced is the number to be counted, and without the
    /// leader it is one less.
    Steady,
    /// One that falls takes others along.
    FallsTogether,
    /// Never the same.
    Restless,
}

#[derive(Debug)]
pub struct Member {
    pub name: &'static str,
    pub size: Option<usize>,
    pub leader: Leader,
    pub crowd: Crowd,
    pub count: Count,
    /// Writes `DIR/saved` before it exits by itself.
    pub saves: bool,
    /// Which users make it what it is.
    pub users: &'static [User],
}

const BOTH: &[User] = &[User::Root, User::Plain];
const FALLS: Leader = Leader::Falls { deaf_to: &[] };

const fn polite(name: &'static str) -> Member {
    Member {
        name,
        size: None,
        leader: FALLS,
        crowd: Crowd::Polite,
        count: Count::Steady,
        saves: false,
        users: BOTH,
    }
}

/// All members of the issue. The hard cases (frozen file systems, FUSE, vfork)
/// need preparations of their own and are tested elsewhere.
pub const MEMBERS: &[Member] = &[
    polite("plain"),
    Member {
        leader: Leader::Falls { deaf_to: &[HUP, INT, TERM] },
        crowd: Crowd::Deaf,
        ..polite("ignore-term")
    },
    polite("own-group"),
    polite("own-session"),
    polite("daemon"),
    polite("daemon-bare-env"),
    polite("daemon-no-fds"),
    Member { leader: Leader::Leaves, ..polite("hold-stdout") },
    // Stopped members get a SIGCONT after the polite signal, and fall.
    polite("stopped-child"),
    // Both may be hit within the instant it takes one to bear the other.
    Member { crowd: Crowd::Wild, count: Count::Restless, ..polite("respawn-pair") },
    Member { crowd: Crowd::Wild, count: Count::Restless, ..polite("storm") },
    Member { leader: Leader::LeavesNobody, ..polite("exit-at-once") },
    Member { size: Some(10), ..polite("wide") },
    Member { size: Some(100), crowd: Crowd::Wild, ..polite("wide") },
    Member { size: Some(1000), crowd: Crowd::Wild, ..polite("wide") },
    Member { size: Some(200), crowd: Crowd::Wild, ..polite("chain") },
    polite("flood"),
    Member { leader: Leader::Answers, saves: true, ..polite("save-on-term") },
    Member { leader: Leader::AnswersForItsChildren, saves: true, ..polite("save-needs-children") },
    // The terminal hangs up when the leader, who holds its master, is gone.
    Member { count: Count::FallsTogether, ..polite("own-pty") },
    // For anybody but root it is a plain child.
    Member { users: &[User::Root], ..polite("change-uid") },
    polite("subreaper"),
    Member { crowd: Crowd::Wild, count: Count::Restless, ..polite("hop") },
    Member { leader: Leader::Falls { deaf_to: &[HUP] }, ..polite("nohup") },
    // The init of a pid namespace does not hear a TERM it has no handler for, and
    // takes its namespace along when it is killed.
    Member { crowd: Crowd::Deaf, count: Count::FallsTogether, ..polite("namespaces") },
    // Bears a deaf tree when it is asked; without being asked it is alone.
    Member { leader: Leader::Answers, crowd: Crowd::Deaf, ..polite("tree-on-term") },
    Member { leader: Leader::Leaves, ..polite("leftovers") },
    polite("clone-parent"),
    polite("disguise"),
    // Started by root there is nothing special about a child that is root.
    Member { crowd: Crowd::Deaf, users: &[User::Plain], ..polite("setuid-root") },
];

impl Member {
    pub fn label(&self) -> String {
        match self.size {
            Some(size) => format!("{}-{size}", self.name),
            None => self.name.to_owned(),
        }
    }

    /// Does it take more of the machine than its share?
    pub fn heavy(&self) -> bool {
        self.name == "storm" || self.size.is_some_and(|size| size >= 1000)
    }

    /// Does it take a while on a busy machine until the tree stands?
    pub fn slow_to_stand(&self) -> bool {
        self.name == "storm" || self.size.is_some_and(|size| size >= 100)
    }

    /// Does the leader live on until somebody ends it?
    pub fn leader_stays(&self) -> bool {
        !matches!(self.leader, Leader::Leaves | Leader::LeavesNobody)
    }
}
