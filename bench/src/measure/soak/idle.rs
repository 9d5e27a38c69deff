//! Runs that say nothing until they are asked to, and then say when that was.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use crate::Outcome;
use crate::client::{Client, side_by_side};
use crate::fifo::Fifo;

/// Tells that it is there on its own stdout and to whoever has started it. Then each byte in
/// the FIFO has one of them say the time.
const SCRIPT: &str = "\
echo up
exec 3<>\"$2\"
echo $$ > \"$1\"
while read -r _ <&3; do date +%s%N; done";

pub struct Idle {
    /// What is written here, one of them reads.
    ask: File,
}

impl Idle {
    /// Starts so many, and waits until they are silent.
    pub fn start(client: &Client, dir: &Path, runs: usize) -> Outcome<(Self, usize)> {
        std::fs::create_dir_all(dir)?;
        let mut up = Fifo::make(&dir.join("up"))?;
        let asked = Fifo::make(&dir.join("asked"))?;
        let ask = File::options().write(true).open(asked.path())?;
        let words = ["start", "--", "sh", "-c", SCRIPT, "idle", up.path(), asked.path()];
        let started = side_by_side(runs, |_| client.output(&words))?;
        let started =
            started.into_iter().filter(|it| it.as_ref().is_ok_and(|it| it.status.success()));
        let started = started.count();
        for _ in 0..started {
            up.read_line(super::agents::PATIENCE)?;
        }
        Ok((Self { ask }, started))
    }

    /// Has one of them say the time.
    pub fn ask_one(&mut self) -> io::Result<()> {
        self.ask.write_all(b"\n")
    }
}
