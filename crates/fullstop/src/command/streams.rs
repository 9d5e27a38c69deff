//! What a command reads from and writes to: as it is asked for, and what that comes to
//! where the run stands.

use super::Command;
use crate::error::{CommandError, Error, Result};
use fullstop_cage::linux::is_inheritable;
use fullstop_core::words::OnExit;
use fullstop_protocol::{
    Drain, Output, Placement, ResizePolicy, SecretFile, Size, Spec, Stdin, Text,
};
use std::os::fd::RawFd;
use std::path::PathBuf;
use std::time::Duration;

/// Below this a log would hold less than its marks and one screen.
const LEAST_LOG: u64 = 64 << 10;

/// What the caller chose for the streams. What is not chosen is as usual where the run stands.
#[derive(Clone, Debug, Default)]
pub(super) struct StreamOptions {
    stdin: Option<Stdin>,
    log: bool,
    capture: bool,
    pty: Option<Size>,
    fit: Option<ResizePolicy>,
    log_max: Option<u64>,
    drain: Option<Drain>,
}

impl Command {
    /// Where it reads from. Otherwise a run in front has the stdin of this program, one
    /// beside it or in the background nothing.
    ///
    /// ```
    /// use fullstop::{Command, Stdin};
    ///
    /// let waits_for_orders = Command::new("cat").stdin(Stdin::Pipe);
    /// let reads_a_file = Command::new("cat").stdin(Stdin::File("/etc/hosts".into()));
    /// ```
    #[must_use]
    pub fn stdin(mut self, stdin: Stdin) -> Command {
        self.streams.stdin = Some(stdin);
        self
    }

    /// Writes its output to the run's logs as well as showing it. A run in the
    /// background, and one with a terminal of its own, is logged anyway.
    #[must_use]
    pub fn log(mut self, log: bool) -> Command {
        self.streams.log = log;
        self
    }

    /// Writes its output to the run's logs, and shows it nowhere. It is read by
    /// [`Run::logs`](crate::Run::logs), while it is written or later.
    #[must_use]
    pub fn capture(mut self) -> Command {
        self.streams.capture = true;
        self
    }

    /// How many bytes each log keeps: its head and its tail. At least 64 KB.
    #[must_use]
    pub fn log_max(mut self, bytes: u64) -> Command {
        self.streams.log_max = Some(bytes);
        self
    }

    /// When every member is dead and a process outside the run holds its output open: waits until
    /// nothing has been written for `quiet`, and no longer than `most` in all.
    #[must_use]
    pub fn drain(mut self, quiet: Duration, most: Duration) -> Command {
        self.streams.drain = Some(Drain { quiet, most });
        self
    }

    /// Gives it a terminal of its own, which others can attach to.
    ///
    /// ```
    /// use fullstop::{Command, ResizePolicy, Size};
    ///
    /// let claude = Command::new("claude").pty(Size { rows: 50, cols: 120 }).fit(ResizePolicy::Fixed);
    /// ```
    #[must_use]
    pub fn pty(mut self, size: Size) -> Command {
        self.streams.pty = Some(size.clamped());
        self
    }

    /// How the size of its terminal follows the windows that are attached.
    #[must_use]
    pub fn fit(mut self, fit: ResizePolicy) -> Command {
        self.streams.fit = Some(fit);
        self
    }

    /// Stops it when it has written nothing for so long. Its output must be captured.
    #[must_use]
    pub fn no_output_timeout(mut self, timeout: Duration) -> Command {
        self.spec.no_output_timeout = Some(timeout);
        self
    }

    /// Stops it when for so long it has written nothing and used no processor. Where
    /// its output is not captured, the processor alone tells.
    #[must_use]
    pub fn idle_timeout(mut self, timeout: Duration) -> Command {
        self.spec.idle_timeout = Some(timeout);
        self
    }

    /// Hands over what is in the file on a descriptor of the command's own, whose
    /// number is in the variable `name`. It stands in no argument, in no environment
    /// and in no record. The file is read when the run is begun, and may be a pipe.
    #[must_use]
    pub fn secret_fd(mut self, name: impl Into<String>, file: impl Into<PathBuf>) -> Command {
        let path = Text(file.into().into_os_string());
        self.spec.secrets.push(SecretFile { name: name.into(), path, fd: None });
        self
    }

    /// Leaves this descriptor of this program's open for a command in the background, which
    /// gets none but its stdio otherwise. It must not close on exec. Such a run
    /// cannot be restarted: its descriptors cannot be had again.
    #[must_use]
    pub fn keep_fd(mut self, fd: RawFd) -> Command {
        self.spec.keep_fds.push(fd);
        self
    }

    /// Whether the descriptors to be kept can be.
    pub(super) fn check_descriptors(&self) -> Result<(), CommandError> {
        for &fd in &self.spec.keep_fds {
            if fd < 3 {
                return Err(CommandError::StandardDescriptor { fd });
            }
            if !is_inheritable(fd) {
                return Err(CommandError::NotInheritable { fd });
            }
        }
        Ok(())
    }

    /// The spec with the streams as they come to in this placement, or why they do not.
    pub(super) fn settled(mut self, placement: Placement) -> Result<Spec> {
        self.spec.output = self.output_in(placement)?;
        self.spec.stdin = self.stdin_in(placement)?;
        self.spec.log_max = self.streams.log_max;
        self.spec.drain = self.streams.drain.unwrap_or_default();
        self.spec.ladder = self.whole_ladder()?;
        self.misfit().map_or(Ok(self.spec), |why| Err(why.into()))
    }

    fn output_in(&self, placement: Placement) -> Result<Output, CommandError> {
        let options = &self.streams;
        if options.fit.is_some() && options.pty.is_none() {
            return Err(CommandError::SizeWithoutTerminal);
        }
        match (options.pty, placement) {
            (Some(_), Placement::Foreground) => Err(CommandError::TerminalInPlace),
            (Some(size), _) => Ok(Output::Terminal { size, fit: options.fit.unwrap_or_default() }),
            (None, Placement::Background) => Ok(Output::Log),
            (None, _) if options.capture => Ok(Output::Log),
            (None, _) if options.log => Ok(Output::Show),
            (None, _) => Ok(Output::Inherit),
        }
    }

    fn stdin_in(&self, placement: Placement) -> Result<Stdin> {
        let terminal = self.spec.output.terminal().is_some();
        match &self.streams.stdin {
            Some(_) if terminal => Err(CommandError::StdinAndTerminal.into()),
            Some(Stdin::Inherit) if placement != Placement::Foreground => {
                Err(CommandError::NoStdinToInherit.into())
            }
            Some(Stdin::File(path)) => {
                // The keeper opens it, and stands elsewhere.
                let path = std::path::absolute(&path.0).map_err(Error::io("find the stdin"))?;
                Ok(Stdin::File(path.into_os_string().into()))
            }
            Some(stdin) => Ok(stdin.clone()),
            None if terminal || placement == Placement::Background => Ok(Stdin::Null),
            None => Ok(Stdin::Inherit),
        }
    }

    /// Why this does not go together.
    fn misfit(&self) -> Option<CommandError> {
        let (options, spec) = (&self.streams, &self.spec);
        let captured = spec.output.is_captured();
        let ladder_reads =
            spec.output.terminal().is_some() || matches!(spec.stdin, Stdin::Pipe | Stdin::Inherit);
        let reader_stays = matches!(spec.output, Output::Inherit | Output::Log);
        let misfits = [
            (spec.on_exit == OnExit::Release && !reader_stays, CommandError::ReleasedFromReader),
            (
                spec.on_exit == OnExit::Release
                    && captured
                    && (options.log_max.is_some()
                        || options.drain.is_some()
                        || spec.no_output_timeout.is_some()),
                CommandError::ReleasedWritesItself,
            ),
            (options.log_max.is_some() && !captured, CommandError::NoLogToLimit),
            (options.log_max.is_some_and(|most| most < LEAST_LOG), CommandError::LogTooShort),
            (options.drain.is_some() && !captured, CommandError::NothingToDrain),
            (
                options.drain.is_some_and(|drain| drain.quiet > drain.most),
                CommandError::DrainTooShort,
            ),
            (spec.no_output_timeout.is_some() && !captured, CommandError::OutputUnseen),
            (!ladder_reads && spec.ladder.needs_stdin(), CommandError::LadderNeedsStdin),
        ];
        misfits.into_iter().find_map(|(misfit, why)| misfit.then_some(why))
    }
}

#[cfg(test)]
mod tests;
