//! `fullstop`: put it in front of a command, and nothing outlives it.
#![forbid(unsafe_code)]
#![no_main]

mod args;
mod demo;
mod help;
mod run;

use args::{Call, UsageError};
use fullstop_keeper::Ending;
use std::io::Write;
use std::process::exit;

/// fullstop itself failed, as opposed to the command.
const FAILED: i32 = 125;

fullstop_cage::entry!(start);

fn start() {
    match args::parse() {
        Ok(Call::Run(options)) => match run::run(*options) {
            Ok(ending) => Ending::end(ending),
            Err(why) => fail(&why),
        },
        Ok(Call::Demo) => match demo::demo() {
            Ok(()) => exit(0),
            Err(why) => fail(&why),
        },
        Ok(Call::Say(text)) => print!("{text}"),
        Err(UsageError(why)) => fail(&why),
    }
}

fn fail(why: &str) -> ! {
    // Whoever reads our messages may be gone.
    let _ = writeln!(std::io::stderr(), "fullstop: {why}");
    exit(FAILED)
}
