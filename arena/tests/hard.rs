//! The hard cases of issue 2: what is rare, and must be right all the same.
//! Each module is one idea; the members are shells and the zoo.

use std::process::ExitCode;

mod hard {
    pub mod births;
    pub mod exec;
    pub mod frozen;
    pub mod guard;
    pub mod inherit;
    pub mod kit;
    pub mod options;
    pub mod thaw;
}

fn main() -> ExitCode {
    if let Some(code) = hard::thaw::enter() {
        return code;
    }
    arena::main(|registry| {
        hard::inherit::register(registry);
        hard::exec::register(registry);
        hard::options::register(registry);
        hard::guard::register(registry);
        hard::births::register(registry);
        hard::frozen::register(registry);
    })
}
