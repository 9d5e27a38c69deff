//! The hard cases of issue 2: what is rare, and must be right all the same.
//! Each module is one idea; the members are shells and the zoo.

use std::process::ExitCode;

mod hard {
    pub mod births;
    pub mod bounded;
    pub mod cgroups;
    pub mod controls;
    pub mod disk;
    pub mod exec;
    pub mod exits;
    pub mod faults;
    pub mod freezer;
    pub mod guard;
    pub mod inherit;
    pub mod inject;
    pub mod input;
    pub mod kit;
    pub mod mapper;
    pub mod nested;
    pub mod reports;
    pub mod reuse;
    pub mod sabotage;
    pub mod stuck;
    pub mod thaw;
    pub mod traced;
}

fn main() -> ExitCode {
    if let Some(code) = hard::mapper::requested().or_else(hard::thaw::enter) {
        return code;
    }
    arena::main(|registry| {
        hard::inherit::register(registry);
        hard::exec::register(registry);
        hard::exits::register(registry);
        hard::input::register(registry);
        hard::reports::register(registry);
        hard::bounded::register(registry);
        hard::guard::register(registry);
        hard::nested::register(registry);
        hard::cgroups::register(registry);
        hard::births::register(registry);
        hard::disk::register(registry);
        hard::freezer::register(registry);
        hard::controls::register(registry);
        hard::traced::register(registry);
        hard::inject::register(registry);
        hard::reuse::register(registry);
        hard::sabotage::register(registry);
    })
}
