//! What runs write and read: captured to the last byte, drained within a time, clocked,
//! fed, and read again while and after it was written.

use std::process::ExitCode;

/// What the other suites use; not all of it is needed here.
#[allow(dead_code)]
#[path = "hard/kit.rs"]
mod kit;

#[allow(dead_code)]
#[path = "records/desk.rs"]
mod desk;

mod output {
    pub mod caps;
    pub mod capture;
    pub mod clocks;
    pub mod deaf;
    pub mod disk;
    pub mod drain;
    pub mod follow;
    pub mod killed;
    pub mod limits;
    pub mod logs;
    pub mod long;
    pub mod owner;
    pub mod secrets;
    pub mod stdin;
    pub mod tools;
    pub mod unwritable;
}

fn main() -> ExitCode {
    arena::main(|registry| {
        for register in [
            output::capture::register,
            output::owner::register,
            output::killed::register,
            output::caps::register,
            output::disk::register,
            output::unwritable::register,
            output::drain::register,
            output::deaf::register,
            output::clocks::register,
            output::stdin::register,
            output::secrets::register,
            output::logs::register,
            output::follow::register,
            output::long::register,
            output::limits::register,
        ] {
            register(registry);
        }
    })
}
