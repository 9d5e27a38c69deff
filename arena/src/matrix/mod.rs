//! The matrix: every zoo member, in every cage, as every user, with every way
//! to end a run.

mod axes;
mod bystanders;
mod cell;
mod clean;
mod expect;
mod member;
mod needs;
mod parts;
mod story;
mod stuck;
mod trigger;

pub use axes::register;
