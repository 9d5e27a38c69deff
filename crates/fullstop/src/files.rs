//! What is written down of runs, read and changed in place. All of it blocks: public methods
//! hand it to helpers, and followers look from there.

mod group;
mod run;
mod state;

pub(crate) use group::GroupFiles;
pub(crate) use run::RunFiles;
pub(crate) use state::StateFiles;
