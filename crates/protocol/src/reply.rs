//! What a keeper answers: one JSON object a line.

use crate::spec::SpecError;
use crate::state::RunState;
use crate::timestamp::Timestamp;
use crate::tracked_member::TrackedMember;
use crate::word::Word;
use fullstop_core::id::Id;
use serde::{Deserialize, Serialize};
use std::fmt;

/// An answer to a request. What comes of an order is told by the journal and the record.
///
/// ```
/// use fullstop_protocol::{RefusalCode, Reply, ReplyKind};
///
/// let reply: Reply = serde_json::from_str(
///     r#"{"id":1,"type":"refused","code":"superseded","message":"this is generation 2"}"#,
/// )?;
/// let ReplyKind::Refused(refusal) = reply.kind else { panic!("it is refused") };
/// assert_eq!(refusal.code, RefusalCode::Superseded);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reply {
    /// That of the request; 0, where a host is told what became of its start, or where no
    /// request could be read.
    pub id: u64,
    /// What is answered.
    #[serde(flatten)]
    pub kind: ReplyKind,
}

/// What is answered.
///
/// ```
/// use fullstop_protocol::ReplyKind;
///
/// let failed: ReplyKind = serde_json::from_str(
///     r#"{"type":"failed","code":"not-found","status":127,"message":"nope: not found"}"#,
/// )?;
/// assert!(matches!(failed, ReplyKind::Failed(failure) if failure.status == 127));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum ReplyKind {
    /// The request is obeyed. To a host: the run exists, and its leader was born.
    Accepted {
        /// The run that was asked.
        run: Id,
        /// Its generation.
        generation: u32,
        /// How it stands now.
        #[serde(flatten)]
        state: RunState,
        /// Since when it stands so.
        at: Timestamp,
    },
    /// The request is not obeyed.
    Refused(Refusal),
    /// To a host: the command does not run.
    Failed(Failure),
    /// The members that are alive.
    Census(Census),
    /// The same, to a subscriber.
    Sample {
        /// The members that are alive.
        #[serde(flatten)]
        census: Census,
        /// The members that have died since the last sample.
        died: Vec<Death>,
        /// Processor time since it began, of all that are or were in it.
        cpu_ms: u64,
        /// When it last wrote something; nothing, if it has not, or is not captured.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wrote_at: Option<Timestamp>,
    },
}

/// Why a command does not run. No client decides by the message.
///
/// ```
/// use fullstop_protocol::{Failure, FailureCode};
///
/// let failure = Failure::of_status(127, "nope: not found");
/// assert_eq!(failure.code, FailureCode::NotFound);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Failure {
    /// A stable word for it.
    pub code: Word<FailureCode>,
    /// The exit status that a shell would give.
    pub status: u8,
    /// One sentence, for people.
    pub message: String,
}

impl Failure {
    /// Where the status says all that is to be known.
    pub fn of_status(status: u8, message: impl Into<String>) -> Failure {
        let code = match status {
            127 => FailureCode::NotFound,
            126 => FailureCode::NotExecutable,
            _ => FailureCode::Failed,
        };
        Failure { code: code.into(), status, message: message.into() }
    }

    /// fullstop itself cannot begin it, for this reason.
    pub fn with_code(code: FailureCode, message: impl Into<String>) -> Failure {
        const FAILED: u8 = 125;
        Failure { code: code.into(), status: FAILED, message: message.into() }
    }
}

impl From<SpecError> for Failure {
    fn from(error: SpecError) -> Failure {
        Failure::with_code(error.code(), error.to_string())
    }
}

/// A stable word for why a command does not run.
///
/// ```
/// use fullstop_protocol::FailureCode;
///
/// assert_eq!(serde_json::to_string(&FailureCode::GroupClosed)?, r#""group-closed""#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum FailureCode {
    /// The spec asks for what this version does not know, or cannot do yet.
    Unsupported,
    /// What is asked for is no spec, or does not go together.
    InvalidSpec,
    /// The keeper's executable is of another version than the host.
    UnsupportedProtocol,
    /// The process that was to be the keeper cannot be one: it has threads.
    NoKeeper,
    /// There is no such program.
    NotFound,
    /// There is, and it cannot be executed.
    NotExecutable,
    /// Its group is closed, or was since the start was asked for.
    GroupClosed,
    /// Something else, which the message tells.
    Failed,
}

impl FailureCode {
    /// The word itself.
    pub fn as_str(self) -> &'static str {
        match self {
            FailureCode::Unsupported => "unsupported",
            FailureCode::InvalidSpec => "invalid-spec",
            FailureCode::UnsupportedProtocol => "unsupported-protocol",
            FailureCode::NoKeeper => "no-keeper",
            FailureCode::NotFound => "not-found",
            FailureCode::NotExecutable => "not-executable",
            FailureCode::GroupClosed => "group-closed",
            FailureCode::Failed => "failed",
        }
    }
}

/// Why a request is not obeyed. No client decides by the message.
///
/// ```
/// use fullstop_protocol::{Refusal, RefusalCode};
///
/// let refusal = Refusal::new(RefusalCode::NoTerminal, "it has no terminal of its own");
/// assert_eq!(refusal.to_string(), "it has no terminal of its own");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Refusal {
    /// A stable word for it.
    pub code: Word<RefusalCode>,
    /// One sentence, for people.
    pub message: String,
    /// What to do instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Refusal {
    /// Without a hint.
    pub fn new(code: RefusalCode, message: impl Into<String>) -> Refusal {
        Refusal { code: code.into(), message: message.into(), hint: None }
    }

    /// And says what to do instead.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Refusal {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, " ({hint})"))
    }
}

/// A stable word for why a request is not obeyed.
///
/// ```
/// use fullstop_protocol::RefusalCode;
///
/// assert_eq!(serde_json::to_string(&RefusalCode::InputFull)?, r#""input-full""#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RefusalCode {
    /// The first line was no hello.
    NoHello,
    /// The hello names a version of the wire that this keeper does not speak.
    UnsupportedProtocol,
    /// This keeper knows no such request.
    UnknownRequest,
    /// The line is no request, or a field of it is wrong.
    InvalidRequest,
    /// The request means an earlier generation of the run than the present one.
    Superseded,
    /// Only the host may ask for this.
    NotHost,
    /// It cannot be adopted: its host lives, or it cannot be told that it does not.
    HasHost,
    /// It cannot be adopted: it is over, or is being stopped.
    Ending,
    /// The process at the other end cannot be seen from where the keeper is, and so is no host.
    UnseenPeer,
    /// The run has no terminal of its own.
    NoTerminal,
    /// The run has as many windows as a keeper serves.
    TooManyWindows,
    /// The run's stdin is not the keeper's to write.
    NoStdin,
    /// The stdin of the run was closed before.
    StdinClosed,
    /// The command does not read what waits for it already. The request may be tried again.
    InputFull,
}

impl RefusalCode {
    /// The word itself.
    pub fn as_str(self) -> &'static str {
        match self {
            RefusalCode::NoHello => "no-hello",
            RefusalCode::UnsupportedProtocol => "unsupported-protocol",
            RefusalCode::UnknownRequest => "unknown-request",
            RefusalCode::InvalidRequest => "invalid-request",
            RefusalCode::Superseded => "superseded",
            RefusalCode::NotHost => "not-host",
            RefusalCode::HasHost => "has-host",
            RefusalCode::Ending => "ending",
            RefusalCode::UnseenPeer => "unseen-peer",
            RefusalCode::NoTerminal => "no-terminal",
            RefusalCode::TooManyWindows => "too-many-windows",
            RefusalCode::NoStdin => "no-stdin",
            RefusalCode::StdinClosed => "stdin-closed",
            RefusalCode::InputFull => "input-full",
        }
    }
}

/// The living members of a run at one instant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Census {
    /// When they were counted.
    pub at: Timestamp,
    /// How many are alive. Of more than [`Census::MOST_NAMED`] none is named.
    pub alive: usize,
    /// What they hold in memory; pages that several share are counted for each.
    pub memory_bytes: u64,
    /// The members by name, if they are few enough.
    pub members: Vec<TrackedMember>,
}

/// The death of a member that a sample has named.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Death {
    /// Its pid.
    pub pid: i32,
    /// When it was born, in ticks of the kernel since the boot: with the pid it tells the process.
    pub start_ticks: u64,
    /// What it ran.
    pub command: String,
    /// When it died; or, where that is not exact, by when.
    pub at: Timestamp,
    /// Its keeper has reaped it. The deaths of others are seen between two samples.
    pub is_exact: bool,
}

impl Census {
    /// A crowd beyond this is counted.
    pub const MOST_NAMED: usize = 1000;
}
