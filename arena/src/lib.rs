//! The arena: a closed world in which fullstop is tested.
//!
//! A test of a killer must not be able to reach anything but itself, and must
//! see whatever escapes. So every scenario runs as the *first process of a
//! fresh pid namespace*, inside a throw-away cgroup, without a controlling
//! terminal. `/proc` is then the complete world: what is alive there and is
//! neither the scenario itself nor a bystander it started is a survivor. When
//! the scenario returns, the kernel ends the world, come what may.
//!
//! A test file is a list of scenarios registered by name; the test executable
//! starts itself again for each of them:
//!
//! ```no_run
//! use std::process::{Command, ExitCode};
//! use arena::{Ended, Need, Outcome, World, ensure};
//!
//! fn main() -> ExitCode {
//!     arena::main(|registry| {
//!         registry.scenario("hard::true-is-true", &[], true_is_true);
//!         registry.scenario("hard::inject", &[Need::Program("strace")], true_is_true);
//!     })
//! }
//!
//! fn true_is_true(world: &mut World) -> Outcome {
//!     let bystander = world.bystander("zoo", arena::User::Root, &[])?;
//!     let mut command = world.command(world.fullstop());
//!     command.args(["run", "--report"]).arg(world.out().join("report.json")).args(["--", "true"]);
//!     let run = world.spawn("run", &mut command)?;
//!     let ended = world.wait(&run, arena::seconds(5))?;
//!     ensure!(ended == Ended::Code(0), "run ended with {ended}");
//!     world.expect_extinct(arena::seconds(1))?;
//!     bystander.expect_untouched()
//! }
//! ```
//!
//! In `arena/Cargo.toml` such a file needs a `[[test]]` entry with
//! `harness = false`. Trials are filtered, listed and threaded like any other
//! test (`cargo test -p fullstop-arena --test hard -- pid-reuse`).
//!
//! Rules of the house: never wait by sleeping (there is [`World::wait`],
//! [`World::expect_extinct`], [`Ready`] and [`await_until`]); say with
//! [`Need`] what the machine must have, so that a missing thing is reported as
//! ignored with its reason; attach files with [`World::attach`], and a failure
//! prints them together with the census of the world.
//!
//! A time is asserted with [`ensure!`] and an [`InTime`], so that the failure
//! knows its bound: what [`await_until`] returns, [`Took::within`] for what was
//! measured, [`Deadline::stands`] in a loop, [`Deadline::missed`] where a wait is
//! given up. Beside the worlds beats a heart, a hundred times a second: if it was
//! late by more than a tenth of the bound while that was missed, the verdict is
//! void, and the scenario is played again, at most five times. Whatever is not
//! about time fails at once. The suite says at its end what was void, and fails if
//! it was more than two in a hundred. A scenario whose own crowd keeps others from
//! running says so ([`Scenario::crowd`]): it is excused only by a heartbeat at
//! real-time priority.
#![forbid(unsafe_code)]

mod base;
mod bound;
mod bystander;
mod cgroup;
mod drain;
mod driver;
mod gate;
mod heartbeat;
mod lifeline;
pub mod matrix;
mod members;
mod outcome;
mod process;
mod ready;
mod reaper;
pub mod records;
mod registry;
pub mod report;
mod slots;
mod time;
mod user;
mod verdict;
mod world;

pub use bound::{Condition, InTime, Missed, Took};
pub use bystander::Bystander;
pub use cgroup::{Cgroup, own_cgroup};
pub use drain::{Drain, Drained};
pub use members::{BLOCK, MemberSlot, MemberSlots};
pub use outcome::{Cause, Context, Failure, Outcome};
pub use process::{Process, pidfd, send_signal};
pub use ready::Ready;
pub use reaper::{Ended, Spawned};
pub use registry::{Need, Registry, Scenario};
pub use rustix::process::{Pid, Signal};
pub use time::{Deadline, await_until, millis, race_until, seconds, unix_ms_of};
pub use user::{PLAIN_UID, User};
pub use world::World;

use std::process::ExitCode;

/// Runs a test file: every registered scenario in a world of its own, or, when
/// this is the executable started again, the one scenario it was started for.
pub fn main(fill: impl FnOnce(&mut Registry)) -> ExitCode {
    if let Some(code) = bystander::requested() {
        return code;
    }
    let mut registry = Registry::default();
    fill(&mut registry);
    match gate::Ticket::from_args() {
        Some(ticket) => driver::run(&registry, &ticket),
        None => gate::run_all(registry),
    }
}
