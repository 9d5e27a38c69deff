//! The stop of a run, as asked for by the window that it was started from.

use fullstop::blocking::Background;
use fullstop::{Drain, Report, Result, Run, StopCause};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

pub enum Stopping {
    No,
    Asked(Background<Report>),
    /// It is over. What was written may still be shown, if it is read.
    Over {
        report: Box<Report>,
        /// Until when, if nothing of it is read any more, and in any case.
        quiet: Instant,
        most: Instant,
    },
}

impl Stopping {
    /// The first asks, the others ask again: nothing that was heard is lost.
    pub fn ask(&mut self, run: &Run, cause: StopCause) -> io::Result<()> {
        let run = run.clone();
        match self {
            Stopping::No => {
                let ask = move || async move { run.stop_because(cause).await };
                *self = Stopping::Asked(Background::begin(ask)?);
            }
            Stopping::Asked(_) => {
                // Whatever the answer is, the first ask brings the report.
                Background::begin(move || async move { run.repeat_stop(cause).await })?;
            }
            Stopping::Over { .. } => {}
        }
        Ok(())
    }

    /// Looks whether the report has come.
    pub fn look(&mut self) -> Result<()> {
        let Stopping::Asked(task) = self else { return Ok(()) };
        let Some(report) = task.result() else { return Ok(()) };
        self.is_over(Box::new(report?));
        Ok(())
    }

    /// The end that was asked for has come: what was written is still shown, as long as a reader
    /// takes it soon.
    pub fn is_over(&mut self, report: Box<Report>) {
        if !matches!(self, Stopping::Over { .. }) {
            let (now, Drain { quiet, most }) = (Instant::now(), Drain::default());
            *self = Stopping::Over { report, quiet: now + quiet, most: now + most };
        }
    }

    /// The reader has taken something.
    pub fn is_read(&mut self) {
        if let Stopping::Over { quiet, .. } = self {
            *quiet = Instant::now() + Drain::default().quiet;
        }
    }

    /// When the reader is not waited for any more.
    pub fn until(&self) -> Option<Instant> {
        match self {
            Stopping::Over { quiet, most, .. } => Some(*quiet.min(most)),
            _ => None,
        }
    }

    pub fn is_asked(&self) -> bool {
        !matches!(self, Stopping::No)
    }

    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Stopping::Asked(task) => Some(task.as_fd()),
            _ => None,
        }
    }
}
