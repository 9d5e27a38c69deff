//! Those that are somebody else by the time a signal arrives.

use std::convert::Infallible;
use std::os::fd::OwnedFd;
use std::process::exit;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{PidfdFlags, getpid, pidfd_open, setsid};

use crate::Life;
use crate::raw::{self, fork};
use crate::roll::Roll;
use crate::stage::{Stage, bury, live, tend};
use crate::trouble::{Doing, Trouble};

/// Many more than a sane stop needs, few enough for an insane one to end.
const MOST_RESPAWNS: u32 = 2000;

/// How many hops are behind the hopper when it counts as hopping.
const HOPS_UNTIL_READY: u64 = 3;

/// The hopper comes to rest this long before its alarm.
const REST: Duration = Duration::from_secs(10);

/// Two processes, each of which starts the other anew when it dies. Only when both die
/// at nearly the same time do they stay dead.
pub fn respawn_pair(stage: &Stage) -> Life {
    if let Err(Errno::NOSYS) = pidfd_open(getpid(), PidfdFlags::empty()) {
        return Err(Trouble::Cannot("this kernel has no pidfd_open (5.3 and later do)".into()));
    }
    let respawned = &raw::shared_words(1)?[0];
    let roll = Roll::call()?;
    if fork()?.is_none() {
        setsid().doing("setsid")?;
        let twin = bear_twin()?;
        roll.stand();
        match watch(twin, respawned)? {}
    }
    roll.all(2)?;
    stage.announce(3)?;
    tend()
}

/// Forks, and gives either side a descriptor of the other. That of the parent is opened
/// before the fork, so it is the right one even if the parent dies at once.
fn bear_twin() -> Result<OwnedFd, Trouble> {
    let me = pidfd_open(getpid(), PidfdFlags::empty()).doing("pidfd_open")?;
    match fork()? {
        Some(child) => pidfd_open(child, PidfdFlags::empty()).doing("pidfd_open"),
        None => setsid().doing("setsid").map(|_| me),
    }
}

fn watch(mut twin: OwnedFd, respawned: &AtomicU32) -> Result<Infallible, Trouble> {
    loop {
        let mut death = [PollFd::new(&twin, PollFlags::IN)];
        retry_on_intr(|| poll(&mut death, None)).doing("waiting for the twin's death")?;
        bury();
        if respawned.fetch_add(1, Ordering::Relaxed) >= MOST_RESPAWNS {
            live();
        }
        twin = bear_twin()?;
    }
}

/// One process that is a new one, in a new session and with a new parent, every few
/// milliseconds.
pub fn hop(stage: &Stage) -> Life {
    let roll = Roll::call()?;
    if fork()?.is_none() {
        return hop_on(roll);
    }
    roll.all(1)?;
    stage.announce(2)?;
    tend()
}

fn hop_on(roll: Roll) -> Life {
    let mut roll = Some(roll);
    for hops in 0u64.. {
        setsid().doing("setsid")?;
        if hops == HOPS_UNTIL_READY
            && let Some(roll) = roll.take()
        {
            roll.stand();
        }
        if raw::time_left() < REST {
            break;
        }
        sleep(Duration::from_millis(2 + hops % 4));
        if fork()?.is_some() {
            exit(0);
        }
    }
    // With a short life there may be no hop at all, and still somebody waits for us.
    if let Some(roll) = roll {
        roll.stand();
    }
    live()
}
