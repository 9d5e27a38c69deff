//! Those that a kernel keeps in state D.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::thread::{sleep, yield_now};
use std::time::Duration;

use rustix::process::Pid;

use crate::Life;
use crate::raw::{self, fork};
use crate::roll::Roll;
use crate::stage::{Stage, live};
use crate::trouble::{Doing, Trouble};

/// Often enough to hang at once when the filesystem freezes, and kind to the disk.
const BETWEEN_WRITES: Duration = Duration::from_millis(2);

/// Keeps writing to a file. Once somebody freezes the filesystem it hangs there, and
/// nothing at all ends it before the thaw.
pub fn frozen_writer(stage: &Stage) -> Life {
    let path = stage.file()?;
    let shown = path.display().to_string();
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(false).open(path).doing(&*shown)?;
    file.write_all(b"first\n").and_then(|()| file.sync_all()).doing(&*shown)?;
    stage.announce(1)?;
    loop {
        // Always the same place, so that the file does not grow.
        file.write_all_at(b"again\n", 0).and_then(|()| file.sync_all()).doing(&*shown)?;
        sleep(BETWEEN_WRITES);
    }
}

/// A child that waits in vfork for a child of its own that never execs. It shows state D,
/// and can be killed all the same.
pub fn vfork_parent(stage: &Stage) -> Life {
    let roll = Roll::call()?;
    let Some(child) = fork()? else {
        raw::vfork_for_ever(roll.place().number())?;
        live();
    };
    // The parent in vfork cannot answer for itself.
    roll.all(1)?;
    wait_for_state_d(child)?;
    stage.announce(3)?;
    live()
}

/// The kernel starts the vforked child a moment before the parent sleeps, and tells
/// nobody when it does: looking is the only way.
fn wait_for_state_d(pid: Pid) -> Result<(), Trouble> {
    let path = format!("/proc/{pid}/stat");
    loop {
        let stat = fs::read_to_string(&path).doing(&*path)?;
        match stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next()) {
            Some('D') => return Ok(()),
            Some('Z') | None => {
                return Err(io::Error::from(io::ErrorKind::NotFound)).doing("the vfork parent");
            }
            Some(_) => yield_now(),
        }
    }
}
