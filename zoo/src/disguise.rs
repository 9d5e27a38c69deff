//! A process that goes by another name.

use rustix::thread::set_name;

use crate::Life;
use crate::raw::{self, fork};
use crate::roll::Roll;
use crate::stage::{Stage, live};
use crate::trouble::Doing;

/// Leader and child both pass for the machine's ssh daemon.
pub fn disguise(stage: &Stage) -> Life {
    set_name(c"sshd").doing("PR_SET_NAME")?;
    raw::rewrite_arguments("sshd: -D")?;
    let roll = Roll::call()?;
    if fork()?.is_none() {
        roll.stand();
        live();
    }
    roll.all(1)?;
    stage.announce(2)?;
    live()
}
