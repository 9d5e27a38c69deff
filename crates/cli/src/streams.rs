//! Output, terminals, clocks, stdin and secrets: from options to a command.

use fullstop::{Command, Drain, ResizePolicy, Size};
use fullstop_cli::args::{RunOptions, WindowSize};
use std::os::fd::AsFd;
use std::time::Duration;

pub fn apply(mut command: Command, options: &RunOptions) -> Command {
    command = command.log(options.log);
    if let Some(bytes) = options.log_max {
        command = command.log_max(bytes);
    }
    if let Some(Drain { quiet, most }) = drain(options.drain_quiet, options.drain_max) {
        command = command.drain(quiet, most);
    }
    if let Some(timeout) = options.no_output_timeout {
        command = command.no_output_timeout(timeout);
    }
    if let Some(timeout) = options.idle_timeout {
        command = command.idle_timeout(timeout);
    }
    if let Some(stdin) = &options.stdin {
        command = command.stdin(stdin.clone());
    }
    for (name, file) in &options.secrets {
        command = command.secret_fd(name, file);
    }
    if !options.pty {
        return command;
    }
    match options.size {
        None => command.pty(own_size()),
        Some(WindowSize::Follow(fit)) => command.pty(own_size()).fit(fit),
        Some(WindowSize::Fixed(size)) => command.pty(size).fit(ResizePolicy::Fixed),
    }
}

/// Whoever names one of the two does not mean the other to be in its way.
fn drain(quiet: Option<Duration>, most: Option<Duration>) -> Option<Drain> {
    let usual = Drain::default();
    match (quiet, most) {
        (None, None) => None,
        (Some(quiet), Some(most)) => Some(Drain { quiet, most }),
        (Some(quiet), None) => Some(Drain { quiet, most: usual.most.max(quiet) }),
        (None, Some(most)) => Some(Drain { quiet: usual.quiet.min(most), most }),
    }
}

/// The size of the terminal we are on, until a window says otherwise.
fn own_size() -> Size {
    let of = |terminal: &dyn AsFd| {
        let size = rustix::termios::tcgetwinsize(terminal.as_fd()).ok()?;
        Some(Size { rows: size.ws_row, cols: size.ws_col }).filter(|size| size.rows > 0)
    };
    let known = of(&std::io::stdout()).or_else(|| of(&std::io::stdin()));
    known.unwrap_or_default().clamped()
}
