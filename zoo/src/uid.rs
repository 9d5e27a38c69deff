//! Those that are not the user who started them.

use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::fs::{Gid, Uid};
use rustix::process::{geteuid, getuid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use crate::Life;
use crate::raw::{self, POLITE, fork};
use crate::roll::{Place, Roll};
use crate::stage::{Stage, live};
use crate::trouble::{Doing, Trouble};

/// What `setuid-root` execs `DIR/zoo-suid` as.
pub const SUID_CHILD: &str = "suid-child";

/// The user and group that own nothing.
const NOBODY: u32 = 65534;

/// A child that drops to another uid. Only root can; for anybody else it is a plain child.
pub fn change_uid(stage: &Stage) -> Life {
    let roll = Roll::call()?;
    if fork()?.is_none() {
        if geteuid().is_root() {
            become_nobody()?;
        }
        roll.stand();
        live();
    }
    roll.all(1)?;
    stage.announce(2)?;
    live()
}

fn become_nobody() -> Result<(), Trouble> {
    let (uid, gid) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
    // Inside some user namespaces groups cannot be changed, and the uid is what counts.
    let _ = set_thread_groups(&[]);
    let _ = set_thread_res_gid(gid, gid, gid);
    set_thread_res_uid(uid, uid, uid).doing("setresuid to nobody")
}

/// A child that root owns although this user started it. Whoever runs the test has put a
/// copy of this program at `DIR/zoo-suid`, owned by root and with mode 4755.
pub fn setuid_root(stage: &Stage) -> Life {
    let program = stage.path("zoo-suid")?;
    let is_setuid_root =
        program.metadata().is_ok_and(|file| file.uid() == 0 && file.mode() & 0o4000 != 0);
    if !is_setuid_root {
        let path = program.display();
        return Err(Trouble::Cannot(format!("{path} is not there, or not setuid root")));
    }
    let roll = Roll::call()?;
    if fork()?.is_none() {
        let place = roll.place().carry()?.to_string();
        let failed = Command::new(&program).args([SUID_CHILD, &place]).exec();
        return Err(failed).doing(format!("exec of {}", program.display()));
    }
    roll.all(1)?;
    stage.announce(2)?;
    live()
}

pub fn suid_child(stage: &Stage) -> Life {
    let number = i32::try_from(stage.number(0)?).unwrap_or(0);
    let place = Place::carried(number)?;
    let root = Uid::ROOT;
    if set_thread_res_uid(root, root, root).is_err() {
        return Err(place.decline("setuid has no effect here (nosuid mount or no_new_privs)"));
    }
    raw::ignore(&POLITE);
    place.stand();
    live()
}

/// A setuid-root copy must not mount or write for whoever calls it.
pub fn refuse_to_serve_strangers(name: &str) -> Result<(), Trouble> {
    if geteuid() == getuid() || name == SUID_CHILD {
        return Ok(());
    }
    Err(Trouble::Usage(format!("a setuid copy is {SUID_CHILD} and nothing else")))
}
