//! fullstop's own tasks. `cargo xtask --help` names them.
#![forbid(unsafe_code)]

mod bench;
mod cargo;
mod deny;
mod load;
mod loc;
mod msrv;
mod needs;
mod soak;
mod suite;
mod table;
mod task;
mod test;
mod workshop;

use std::process::ExitCode;

use task::{Invocation, UsageError};

/// Errors here are for the person at the keyboard: one line each.
type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// The words were not understood, and nothing was done.
const USAGE_ERROR: u8 = 2;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    if words == [load::SPIN] {
        load::spin()
    }
    match Invocation::of(&words) {
        Invocation::Overview => println!("{}", task::overview()),
        Invocation::Help(task) => println!("{}", task.help()),
        Invocation::Unknown(word) => {
            eprintln!("xtask: there is no {word}\n\n{}", task::overview());
            return ExitCode::from(USAGE_ERROR);
        }
        Invocation::Do(task, rest) => match (task.run)(rest) {
            Ok(true) => {}
            Ok(false) => return ExitCode::FAILURE,
            Err(error) if error.is::<UsageError>() => {
                eprintln!("xtask: {error}\n\n{}", task.help());
                return ExitCode::from(USAGE_ERROR);
            }
            Err(error) => {
                eprintln!("xtask: {error}");
                return ExitCode::FAILURE;
            }
        },
    }
    ExitCode::SUCCESS
}
