//! Reads a pipe to its end, so that a flood does not block, and tells whether
//! the end has come: a pipe somebody still holds is an end that never comes.

use std::io::Read;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::{Deadline, Outcome};

/// How much of the beginning is kept.
const KEPT: usize = 4096;

pub struct Drain {
    end: Receiver<Drained>,
}

/// What came through the pipe.
#[derive(Debug, Clone)]
pub struct Drained {
    pub bytes: usize,
    pub beginning: String,
}

impl Drain {
    pub fn start(mut pipe: impl Read + Send + 'static) -> Self {
        let (said, end) = channel();
        std::thread::spawn(move || {
            let mut chunk = vec![0; 65_536];
            let mut bytes = 0;
            let mut kept = Vec::new();
            while let Ok(n) = pipe.read(&mut chunk) {
                if n == 0 {
                    break;
                }
                bytes += n;
                let room = KEPT.saturating_sub(kept.len()).min(n);
                kept.extend_from_slice(&chunk[..room]);
            }
            let beginning = String::from_utf8_lossy(&kept).into_owned();
            let _ = said.send(Drained { bytes, beginning });
        });
        Self { end }
    }

    /// Waits for the end of the pipe.
    pub fn expect_end(&self, patience: Duration) -> Outcome<Drained> {
        let deadline = Deadline::after(patience);
        self.end.recv_timeout(patience).map_err(|_| {
            deadline.missed(format!("no end of output within {patience:?}: somebody holds it"))
        })
    }
}
