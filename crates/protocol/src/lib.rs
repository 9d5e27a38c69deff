//! Everything that leaves a process: what a run was asked to be (spec, launch), how it stands and
//! ended (record, report, events), and what is said to its keeper (requests, replies, frames).
//! The same types go over a socket and to disk.
//!
//! - A length of time is an integer of milliseconds, and its name ends in `_ms`.
//! - A point in time is RFC 3339 in UTC.
//! - A choice is a word; one that carries something is an object with that word as its only
//!   key (`"null"`, `{"file": "/etc/hosts"}`).
//! - Bytes that are not UTF-8 are `{"base64": "…"}`.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod asker;
mod claim;
mod event;
mod frame;
mod labels;
mod launch;
mod milliseconds;
pub mod path;
mod record;
mod reply;
mod report;
mod request;
#[cfg(feature = "schema")]
mod schema;
mod sealed;
mod spec;
mod state;
mod streams;
mod text;
mod timestamp;
mod tracked_member;
mod variables;
mod word;
mod world;

pub use asker::Asker;
pub use claim::{Claim, KernelAnswers};
pub use event::{Event, EventKind};
pub use frame::{Frame, FrameDecoder, InvalidFrame};
pub use labels::{LabelError, Labels};
pub use launch::{AppNameError, GroupGenerations, Host, Launch, Placement, Start};
pub use record::{Ancestry, RECORD_VERSION, Record};
pub use reply::{Census, Death, Failure, FailureCode, Refusal, RefusalCode, Reply, ReplyKind};
pub use report::{CapturedStream, REPORT_VERSION, Report, StepRecord};
pub use request::{Hello, LONGEST_BY, PROTOCOL_VERSION, Request, RequestKind, StopReason};
pub use sealed::{Sealed, wipe};
pub use spec::{
    HostPolicy, IfBusy, Key, Limits, Resource, SPEC_VERSION, SecretFile, Spec, SpecError, User,
    read_around_spec,
};
pub use state::RunState;
pub use streams::{Drain, Output, ResizePolicy, Size, Stdin};
pub use text::Text;
pub use timestamp::{InvalidTimestamp, Timestamp};
pub use tracked_member::TrackedMember;
pub use word::Word;
pub use world::{Whereabouts, World};
