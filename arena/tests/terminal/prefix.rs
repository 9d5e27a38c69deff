//! The two words in front of a command, or nothing.

use std::fmt;

use arena::{Need, Outcome, Registry, World};

/// What every scenario here needs besides a world.
pub const NEEDS: &[Need] = &[Need::Program("bash"), Need::Program("setsid"), Need::Program("stty")];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prefix {
    Bare,
    Run,
}

/// Written in front of a command, blank included.
impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bare => "",
            Self::Run => "fullstop run -- ",
        })
    }
}

/// Registers a scenario that must go the same way with and without fullstop.
pub fn both(registry: &mut Registry, name: &str, body: fn(&mut World, Prefix) -> Outcome) {
    registry.scenario(format!("{name}::bare"), NEEDS, move |world| body(world, Prefix::Bare));
    registry.scenario(format!("{name}::run"), NEEDS, move |world| body(world, Prefix::Run));
}

/// Registers a scenario that is about fullstop itself.
pub fn run(registry: &mut Registry, name: &str, body: fn(&mut World) -> Outcome) {
    registry.scenario(format!("{name}::run"), NEEDS, body);
}
