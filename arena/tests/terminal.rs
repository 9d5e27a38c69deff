//! Terminals: `fullstop run` on a real pty, typed into by hand, mostly below a
//! real interactive bash.
//!
//! "All behave as they do without fullstop" is taken at its word: where a
//! behaviour belongs to the shell or to the command, the same scenario is
//! played twice with the same expectations, once without the two words in
//! front (`bare`) and once with them (`run`).

use std::process::ExitCode;

mod terminal {
    pub mod actors;
    pub mod background;
    pub mod clocks;
    pub mod directory;
    pub mod fullscreen;
    pub mod hangup;
    pub mod inner;
    pub mod interrupt;
    pub mod messages;
    pub mod pipeline;
    pub mod prefix;
    pub mod programs;
    pub mod resize;
    pub mod shell;
    pub mod signals;
    pub mod status;
    pub mod suspend;
    pub mod tty;
}

fn main() -> ExitCode {
    arena::main(|registry| {
        for register in [
            terminal::interrupt::register,
            terminal::suspend::register,
            terminal::clocks::register,
            terminal::background::register,
            terminal::pipeline::register,
            terminal::resize::register,
            terminal::inner::register,
            terminal::hangup::register,
            terminal::fullscreen::register,
            terminal::status::register,
            terminal::signals::register,
            terminal::messages::register,
            terminal::programs::register,
            terminal::directory::register,
        ] {
            register(registry);
        }
    })
}
