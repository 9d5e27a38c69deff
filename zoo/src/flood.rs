//! Output without end.

use std::io::stdout;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, write};

use crate::Life;
use crate::raw::fork;
use crate::roll::Roll;
use crate::stage::{Stage, live};

/// As much as a pipe holds.
const GULP: usize = 64 * 1024;

/// Two processes that write to stdout as fast as it takes it, and live on without it.
pub fn flood(stage: &Stage) -> Life {
    let roll = Roll::call()?;
    if fork()?.is_none() {
        roll.stand();
        pour(b"child: the water rises, and rises, and rises\n");
    }
    roll.all(1)?;
    stage.announce(2)?;
    pour(b"leader: the water rises, and rises, and rises\n")
}

fn pour(line: &[u8]) -> ! {
    let water = line.repeat(GULP / line.len());
    let out = stdout();
    loop {
        match write(&out, &water) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let _ = poll(&mut [PollFd::new(&out, PollFlags::OUT)], None);
            }
            Err(_closed) => live(),
        }
    }
}
