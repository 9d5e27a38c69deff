//! A writer that knows how much it has written.

use std::fs::File;
use std::io::stdout;
use std::os::unix::fs::FileExt;

use rustix::io::{Errno, write};

use crate::Life;
use crate::stage::{Stage, live};
use crate::trouble::Doing;

/// Writes numbered lines to stdout, one call each, and after each of them its number
/// to `DIR/count`: as many as its argument says, and then ends; without one it never
/// ends. It says `ready` after the first thousand.
pub fn count(stage: &Stage) -> Life {
    const WARM: u64 = 1000;
    let last = match stage.number(0)? {
        0 => u64::MAX,
        last => last as u64,
    };
    let counter = File::create(stage.path("count")?).doing("count")?;
    let out = stdout();
    for number in 1..=last {
        let line = format!("line {number}\n");
        // Shorter than what a pipe takes as a whole.
        loop {
            match write(&out, line.as_bytes()) {
                Ok(_) => break,
                Err(Errno::INTR) => {}
                Err(_closed) => live(),
            }
        }
        counter.write_all_at(&number.to_le_bytes(), 0).doing("count")?;
        if number == WARM {
            stage.announce(1)?;
        }
    }
    std::process::exit(0)
}
