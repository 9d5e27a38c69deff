//! `fullstop attach`: a window on a run that has a terminal of its own.

use crate::fail::{Fail, complain, wait};
use crate::stop::line;
use crate::watch::status_of;
use crate::window::{Role, Window, WindowEnd, let_go, name_the_living, say_detached};
use fullstop::Runs;
use fullstop_cli::args::AttachOptions;
use fullstop_keeper::Ending;
use std::io::{self, IsTerminal as _};

pub fn attach(options: &AttachOptions) -> Result<(), Fail> {
    let role = if options.view { Role::Viewer } else { Role::Guest };
    check_terminals(role)?;
    let run = wait(async { Ok(Runs::open()?.find(&options.id).await?) })?;
    match Window::open(&run, role, &options.keys)?.run()? {
        WindowEnd::Over(report) => {
            let_go(&run, &report);
            complain(line(&report).trim_end());
            name_the_living(&report);
            match status_of(&report) {
                0 => Ok(()),
                status => Err(Fail::silent(status)),
            }
        }
        WindowEnd::Detached => {
            say_detached(&run);
            Ok(())
        }
        WindowEnd::Signal(signal) => Ending::Signal(signal).end(),
    }
}

fn check_terminals(role: Role) -> Result<(), Fail> {
    let typed = io::stdin().is_terminal() || role == Role::Viewer;
    if typed && io::stdout().is_terminal() {
        return Ok(());
    }
    Err(match role {
        Role::Viewer => "a window needs a terminal: stdout is none",
        _ => "a window needs a terminal on stdin and stdout; with --view, only on stdout",
    }
    .into())
}
