//! Who runs fullstop in a scenario.

use std::fmt;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// A user id nobody else has; it needs no entry in any database.
pub const PLAIN_UID: u32 = 54_321;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum User {
    Root,
    /// Without any privilege, but able to gain some through setuid programs,
    /// as people are.
    Plain,
}

impl User {
    pub fn uid(self) -> u32 {
        match self {
            Self::Root => 0,
            Self::Plain => PLAIN_UID,
        }
    }

    /// Makes a command run as this user, without supplementary groups.
    pub fn apply(self, command: &mut Command) {
        if self == Self::Plain {
            command.uid(PLAIN_UID).gid(PLAIN_UID);
        }
    }
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Root => "root",
            Self::Plain => "user",
        })
    }
}
