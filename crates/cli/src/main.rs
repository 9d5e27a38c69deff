//! `fullstop`: put it in front of a command, and nothing outlives it.
#![forbid(unsafe_code)]
#![no_main]

mod demo;
mod doctor;
mod run;

use fullstop_cli::args::{self, Call, Man, UsageError};
use fullstop_cli::{completions, help, man};
use fullstop_keeper::Ending;
use std::io::Write;
use std::process::exit;

/// fullstop itself failed, as opposed to the command.
const FAILED: i32 = 125;

fullstop_cage::entry!(start);

fn start() {
    match args::parse() {
        // A run that only looked as if it were in a group would be a lie.
        Ok(Call::Run(options)) if options.group.is_some() => fail("--group: not built yet"),
        Ok(Call::Run(options)) => match run::run(*options) {
            Ok(ending) => Ending::end(ending),
            Err(why) => fail(&why),
        },
        Ok(call) => match other(call) {
            Ok(()) => exit(0),
            Err(why) => fail(&why),
        },
        Err(UsageError(why)) => fail(&why),
    }
}

/// Everything but `run`, which is in a hurry.
#[cold]
fn other(call: Call) -> Result<(), String> {
    match call {
        Call::Doctor { json } => doctor::doctor(json),
        Call::Demo => demo::demo(),
        Call::Help(command) => say(&help::text(command)),
        Call::Version => say(concat!("fullstop ", env!("CARGO_PKG_VERSION"), "\n")),
        Call::Completions(shell) => say(&completions::script(shell)),
        Call::Man(Man::Page(command)) => say(&man::page(command)),
        Call::Man(Man::Dir(dir)) => man::write_all(dir.as_ref()),
        _ => Err("not built yet".to_owned()),
    }
}

fn say(text: &str) -> Result<(), String> {
    let mut stdout = std::io::stdout().lock();
    let said = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    said.map_err(|error| format!("cannot write: {error}"))
}

fn fail(why: &str) -> ! {
    // Whoever reads our messages may be gone.
    let _ = writeln!(std::io::stderr(), "fullstop: {why}");
    exit(FAILED)
}
