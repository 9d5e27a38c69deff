//! Terminals of a run: `--pty` on `run` and `start`, windows on them, and what is
//! typed into them. Everything is played on real ptys; what a person would see is
//! read off a model of a terminal, and the rest is asked of the kernel.
//!
//! Nothing is typed before whoever should hear it has said that it listens: a
//! command by a word on its screen, a window by putting its terminal into raw mode.

use std::process::ExitCode;

// What other suites use; not all of it is needed here.
#[allow(dead_code)]
#[path = "terminal/actors.rs"]
mod actors;
#[allow(dead_code)]
#[path = "records/desk.rs"]
mod desk;
#[allow(dead_code)]
#[path = "hard/kit.rs"]
mod kit;
#[allow(dead_code)]
#[path = "terminal/shell.rs"]
mod shell;
#[allow(dead_code)]
#[path = "terminal/tty.rs"]
mod tty;

mod pty {
    pub mod attach;
    pub mod attached;
    pub mod cast;
    pub mod detach;
    pub mod ends;
    pub mod faults;
    pub mod flood;
    pub mod leaks;
    pub mod limits;
    pub mod owner;
    pub mod prefix;
    pub mod programs;
    pub mod starting;
    pub mod unread;
    pub mod window;
}

fn main() -> ExitCode {
    arena::main(|registry| {
        for register in [
            pty::starting::register,
            pty::prefix::register,
            pty::ends::register,
            pty::owner::register,
            pty::attach::register,
            pty::attached::register,
            pty::detach::register,
            pty::faults::register,
            pty::programs::register,
            pty::flood::register,
            pty::unread::register,
            pty::limits::register,
            pty::leaks::register,
        ] {
            register(registry);
        }
    })
}
