//! Processes that look like ours and are not. The program is this test
//! executable under another name: it does nothing but live, and dies by
//! default of any signal, so life is proof that it was left alone.

use std::process::{Command, ExitCode};

use crate::{Outcome, Process, seconds};

/// The word by which the executable knows that it is to stand by.
const WORD: &str = "--arena-bystander";

pub(crate) fn requested() -> Option<ExitCode> {
    if std::env::args().nth(1)? != WORD {
        return None;
    }
    // Longer than any scenario may take; the end of the world comes first.
    std::thread::sleep(seconds(600));
    Some(ExitCode::SUCCESS)
}

/// Completes the command line of a bystander.
pub(crate) fn arm(command: &mut Command) {
    command.arg(WORD);
}

/// A process outside the run, that must see nothing of it.
#[derive(Debug, Clone)]
pub struct Bystander {
    pub label: String,
    pub process: Process,
}

impl Bystander {
    pub fn expect_untouched(&self) -> Outcome {
        let Some(now) = self.process.still_there().filter(Process::alive) else {
            return Err(format!("bystander {} is gone; it was {}", self.label, self.process).into());
        };
        if matches!(now.state, 'T' | 't') {
            return Err(format!("bystander {} was stopped: {now}", self.label).into());
        }
        for (line, pending) in pending(now.pid) {
            if pending != 0 {
                return Err(format!(
                    "bystander {} has a signal pending ({line}): {now}",
                    self.label
                )
                .into());
            }
        }
        Ok(())
    }
}

/// The two sets of pending signals in `/proc/PID/status`.
fn pending(pid: i32) -> Vec<(String, u64)> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let is_set = |line: &&str| line.starts_with("SigPnd:") || line.starts_with("ShdPnd:");
    let value = |line: &str| {
        u64::from_str_radix(line.split_whitespace().nth(1).unwrap_or("0"), 16).unwrap_or(0)
    };
    status.lines().filter(is_set).map(|line| (line.to_owned(), value(line))).collect()
}
