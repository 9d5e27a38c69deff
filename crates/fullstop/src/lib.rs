//! fullstop runs a command so that stopping it stops everything it started, and
//! says "stopped" only when the kernel agrees.
//!
//! ```no_run
//! # async fn example() -> fullstop::Result<()> {
//! fullstop::init(); // first in main: this program may be started anew as a keeper
//!
//! let run = fullstop::Command::new("claude").name("research").spawn().await?;
//! let report = run.stop().await?;
//! println!("{}, proof: {:?}", report.state.word(), report.proof);
//! # Ok(())
//! # }
//! ```
//!
//! Orders are given whole, by the first poll of their future, and carried out on a thread of the
//! library's own: dropping the future takes nothing back, and any executor will do. What only
//! waits ends with its future. Each function says which it is.
//!
//! Without an async runtime, use [`blocking`].
#![forbid(unsafe_code)]

mod any_of;
pub mod blocking;
mod command;
mod doctor;
mod error;
mod events;
mod filter;
#[doc(hidden)]
pub mod front;
mod group;
mod helpers;
mod host;
mod host_line;
mod keys;
mod leftover;
mod line;
mod link;
mod logs;
mod many;
mod mask;
mod offload;
mod orders;
mod readable;
mod ready;
mod restart;
mod rounds;
mod run;
mod runs;
mod secret;
mod send;
mod shared;
mod status;
mod stop;
mod tail;
mod unanswered;
mod unlisted;
mod watch;
mod watcher;
mod window;

pub use command::{Agent, CapturedOutput, Command};
pub use doctor::{Area, Doctor, Finding, Level, doctor};
pub use error::{CommandError, Error, Result, SecretNameError};
pub use events::Events;
#[doc(hidden)]
pub use fullstop_cage::entry;
pub use fullstop_core::cage::{CageKind, CagePreference, Member, OutputHolder};
pub use fullstop_core::duration;
pub use fullstop_core::id::Id;
pub use fullstop_core::identity::Identity;
pub use fullstop_core::ladder::Ladder;
pub use fullstop_core::machine::Plan;
pub use fullstop_core::preset;
pub use fullstop_core::signal::Signal;
pub use fullstop_core::words::{Exit, Moment, OnExit, Proof, Reason, Stream};
pub use fullstop_keeper::sweep::{Elsewhere, ForgetError, Found, Swept};
pub use fullstop_keeper::{Ending, Loudness, Sink};
pub use fullstop_protocol::{
    Ancestry, Asker, CapturedStream, Claim, Drain, Event, EventKind, Fit, Host, HostPolicy,
    KernelAnswers, LabelError, Labels, Output, Record, Refusal, RefusalCode, Report, RunState,
    SecretFile, Size, Spec, SpecError, Stdin, StepRecord, Text, Timestamp, TrackedMember,
    Whereabouts, Word, World,
};
pub use fullstop_store::{Cursor, Extent, FindError, InvalidCursor, StoreError};
pub use group::{Group, GroupReport};
pub use host::init;
pub use keys::Key;
pub use logs::{FollowedLogs, LogCursor, LogEntry, Logs};
pub use many::{Order, Update, ask_all, end_all};
pub use mask::masked;
pub use ready::Ready;
pub use run::Run;
pub use runs::{Pruned, Runs, sweep};
pub use status::{Process, Status, Usage};
pub use stop::Progress;
pub use unlisted::Unlisted;
pub use watch::{Change, Watch};
pub use window::{AttachOptions, Shown, Window};
