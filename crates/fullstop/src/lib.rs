//! fullstop runs a command so that stopping it stops everything it started, and
//! says "stopped" only when the kernel agrees.
//!
//! ```no_run
//! # async fn example() -> fullstop::Result<()> {
//! let run = fullstop::Command::new("claude").name("research").spawn().await?;
//! let report = run.stop().await?;
//! println!("{}, proof: {:?}", report.state.word(), report.proof);
//! # Ok(())
//! # }
//! ```
//!
//! A run is kept by a process of its own. A program that links this library becomes that process
//! before its `main`, when it is started anew for it; nothing has to be called. Where this cannot
//! be, as in a library that Python has loaded, an installed `fullstop` is used, or the
//! [executable that is named](Runs::with_keeper).
//!
//! Orders are given whole, by the first poll of their future, and carried out on a thread of the
//! library's own: dropping the future takes nothing back, and any executor will do. What only
//! waits ends with its future. Each function says which it is.
//!
//! Without an async runtime, use [`blocking`].
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod adopt;
mod any_of;
pub mod attach;
mod background;
pub mod blocking;
mod command;
mod doctor;
mod error;
mod events;
mod files;
mod filter;
mod foreground;
mod group;
mod helpers;
mod host;
mod host_line;
mod hosts;
mod input;
mod keys;
mod leftover;
mod line;
mod logs;
mod many;
mod mask;
mod offload;
mod orders;
mod owner;
mod readable;
mod ready;
mod restart;
mod rounds;
mod run;
mod runs;
mod screen;
mod secret;
mod shared;
mod status;
mod stop;
mod stream;
mod tail;
mod thread;
mod unanswered;
mod unlisted;
mod watch;
mod watcher;
mod window;

pub use attach::{AttachOptions, WindowEvent};
pub use command::{Agent, CapturedOutput, Command};
pub use doctor::{Area, Doctor, Finding, Level, doctor};
pub use error::{CommandError, Error, Result, SecretNameError};
pub use events::Events;
pub use foreground::StopCause;
pub use fullstop_core::cage::{CageKind, CagePreference, Member, OutputHolder};
pub use fullstop_core::duration;
pub use fullstop_core::id::{Id, InvalidId};
pub use fullstop_core::identity::Identity;
pub use fullstop_core::ladder::{Action, Ladder, LadderError, Step, Target};
pub use fullstop_core::preset;
pub use fullstop_core::signal::{Signal, SignalError};
pub use fullstop_core::words::{Exit, Moment, OnExit, Proof, Reason, Stream};
pub use fullstop_keeper::sweep::{ForgetError, LostElsewhere, SweepFinding, Swept};
/// Every type of the wire and the disk. Those that this library deals in stand here as well.
pub use fullstop_protocol as protocol;
pub use fullstop_protocol::{
    Ancestry, AppNameError, Asker, CapturedStream, Claim, Drain, Event, EventKind, Failure,
    FailureCode, Host, HostPolicy, KernelAnswers, LabelError, Labels, Output, Record, Refusal,
    RefusalCode, Report, ResizePolicy, RunState, SecretFile, Size, Spec, SpecError, Stdin,
    StepRecord, Text, Timestamp, TrackedMember, Whereabouts, Word, World,
};
pub use fullstop_store::{Cursor, Extent, FindError, InvalidCursor, StoreError};
pub use group::{Group, GroupReport};
pub use host::init;
pub use hosts::{AppRun, HostedBy};
pub use input::Input;
pub use keys::{InvalidKey, Key};
pub use logs::{Lines, LogCursor, LogEntry, LogLine, Logs};
pub use many::{EndUpdate, Order, ask_all, end_all, end_all_with_ticks};
pub use mask::masked;
pub use ready::Ready;
pub use run::Run;
pub use runs::{Pruned, Runs, sweep};
pub use screen::{Cell, Color, CursorPosition, Screen};
pub use status::{Process, Status, Usage};
pub use stop::Progress;
pub use unlisted::Unlisted;
pub use watch::{Change, Watch};
pub use window::{Window, WindowReader, WindowWriter};
