//! fullstop's own errands: `cargo xtask test` and `cargo xtask bench`.
#![forbid(unsafe_code)]

mod bench;
mod cargo;
mod load;
mod needs;
mod suite;
mod test;

use std::process::ExitCode;

/// Errors here are for the person at the keyboard: one line each.
type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const USAGE: &str = "\
cargo xtask test [--only unit|arena] [--repeat N] [--load] [--suite NAME] [FILTER] [-- ARGS…]
    Sets up what the tests need, then runs them all.
    --only    unit: unit, property, model and doc tests; arena: fullstop against the zoo
    --repeat  run the arena N times
    --load    keep one core busy beside the arena
    --suite   run only this arena suite
    FILTER    only arena tests whose name contains it; ARGS go to the arena suites

cargo xtask bench [--quick] [--only PART]… [--check] [--json FILE] [--markdown FILE]
    Measures fullstop beside its peers: starting, stopping, memory, survivors, records.
    --quick   few rounds: to try it out, not to quote
    --only    measure only this part: spawn, stop, memory, survivors, records, output
    --check   fail when an acceptance figure is missed";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["test", rest @ ..] => test::Options::parse(rest).and_then(|o| test::run(&o)),
        ["bench", rest @ ..] => bench::Options::parse(rest).and_then(|o| bench::run(&o)),
        [load::SPIN] => load::spin(),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            Ok(true)
        }
        _ => Err(format!("what shall be done?\n\n{USAGE}").into()),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}
