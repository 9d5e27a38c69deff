//! Runs that are written down: found again, stopped from elsewhere, gone around,
//! swept, grouped, and killed at any instant. What is said is checked against the
//! kernel: `/proc`, cgroups, locks and files.

use std::process::ExitCode;

/// What the hard cases use; not all of it is needed here.
#[allow(dead_code)]
#[path = "hard/kit.rs"]
mod kit;

/// What the suite of output uses, for who follows.
#[allow(dead_code)]
#[path = "output/tools.rs"]
mod tools;

use records::desk;

mod records {
    pub mod adoption;
    pub mod again;
    pub mod around;
    pub mod chaos;
    pub mod closing;
    pub mod crowd;
    pub mod denied;
    pub mod descriptors;
    pub mod desk;
    pub mod directory;
    pub mod disk;
    pub mod following;
    pub mod groups;
    pub mod ids;
    pub mod json;
    pub mod lists;
    pub mod looking;
    pub mod members;
    pub mod misplaced;
    pub mod passing;
    pub mod ready;
    pub mod restarting;
    pub mod reuse;
    pub mod scarce;
    pub mod starting;
    pub mod statuses;
    pub mod stopping;
    pub mod stranger;
    pub mod strangers;
    pub mod suspended;
    pub mod sweeping;
    pub mod titles;
    pub mod unlisted;
    pub mod vanished;
    pub mod watching;
    pub mod wire;
    pub mod worlds;
}

fn main() -> ExitCode {
    arena::main(|registry| {
        for register in [
            records::starting::register,
            records::ready::register,
            records::lists::register,
            records::looking::register,
            records::following::register,
            records::watching::register,
            records::stopping::register,
            records::again::register,
            records::wire::register,
            records::adoption::register,
            records::stranger::register,
            records::restarting::register,
            records::around::register,
            records::sweeping::register,
            records::members::register,
            records::vanished::register,
            records::unlisted::register,
            records::denied::register,
            records::misplaced::register,
            records::passing::register,
            records::strangers::register,
            records::worlds::register,
            records::reuse::register,
            records::groups::register,
            records::closing::register,
            records::statuses::register,
            records::disk::register,
            records::scarce::register,
            records::titles::register,
            records::ids::register,
            records::directory::register,
            records::suspended::register,
            records::json::register,
            records::descriptors::register,
            records::crowd::register,
            records::chaos::register,
        ] {
            register(registry);
        }
    })
}
