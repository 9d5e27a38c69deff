//! Those whose parents are not what one expects.

use std::fs;
use std::io;
use std::process::exit;

use rustix::io::Errno;
use rustix::process::{
    WaitOptions, getegid, geteuid, getpid, set_child_subreaper, setsid, waitpid,
};
use rustix::thread::UnshareFlags;

use crate::Life;
use crate::raw::{self, fork, fork_sibling};
use crate::roll::Roll;
use crate::stage::{Stage, live, tend};
use crate::trouble::{Doing, Trouble};

/// Collects orphans of its own, so that they never reach anybody above it.
pub fn subreaper(stage: &Stage) -> Life {
    set_child_subreaper(Some(getpid())).doing("PR_SET_CHILD_SUBREAPER")?;
    let roll = Roll::call()?;
    if let Some(parent) = fork()? {
        waitpid(Some(parent), WaitOptions::empty()).doing("waitpid")?;
    } else {
        for _ in 0..2 {
            if fork()?.is_none() {
                setsid().doing("setsid")?;
                roll.stand();
                live();
            }
        }
        exit(0);
    }
    roll.all(2)?;
    stage.announce(3)?;
    tend()
}

/// Its child is its sibling, and so is the child's child.
pub fn clone_parent(stage: &Stage) -> Life {
    let roll = Roll::call()?;
    if sibling()? {
        sibling()?;
        roll.stand();
        live();
    }
    roll.all(2)?;
    stage.announce(3)?;
    live()
}

fn sibling() -> Result<bool, Trouble> {
    match fork_sibling() {
        Ok(pid) => Ok(pid.is_none()),
        Err(Trouble::Failed { source, .. }) if source.kind() == io::ErrorKind::InvalidInput => {
            Err(Trouble::Cannot("pid 1 of a namespace cannot have siblings (CLONE_PARENT)".into()))
        }
        Err(other) => Err(other),
    }
}

/// A process that makes namespaces, their init, and one more process inside.
pub fn namespaces(stage: &Stage) -> Life {
    let roll = Roll::call()?;
    if fork()?.is_none() {
        if let Err(error) = new_namespaces() {
            let why = format!("no user and pid namespaces for this user here: {error}");
            return Err(roll.place().decline(&why));
        }
        return inside(roll);
    }
    roll.all(3)?;
    stage.announce(4)?;
    live()
}

fn inside(roll: Roll) -> Life {
    if fork()?.is_some() {
        roll.stand();
        tend();
    }
    raw::die_by_handler_on_alarm();
    if fork()?.is_some() {
        roll.stand();
        tend();
    }
    roll.stand();
    live()
}

fn new_namespaces() -> Result<(), Errno> {
    let (uid, gid) = (geteuid(), getegid());
    match raw::unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWPID) {
        Ok(()) => {
            // Without a map the members are nobody, and just as hard to stop.
            let _ = fs::write("/proc/self/setgroups", "deny");
            let _ = fs::write("/proc/self/uid_map", format!("0 {} 1", uid.as_raw()));
            let _ = fs::write("/proc/self/gid_map", format!("0 {} 1", gid.as_raw()));
            Ok(())
        }
        Err(_refused) if uid.is_root() => raw::unshare(UnshareFlags::NEWPID),
        Err(refused) => Err(refused),
    }
}
