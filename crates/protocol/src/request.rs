//! What is said to a keeper: one JSON object a line.

use crate::milliseconds;
use crate::spec::HostPolicy;
use crate::streams::Size;
use crate::text::Text;
use fullstop_core::signal::Signal;
use fullstop_core::words::Reason;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The version of the wire. A keeper refuses a hello of a later one; new requests and new
/// fields do not raise it.
pub const PROTOCOL_VERSION: u32 = 2;

/// How many bytes [`Request::by`] has at most: it stands in every record and report.
pub const LONGEST_BY: usize = 256;

/// The first line on a connection, from either side.
///
/// ```
/// use fullstop_protocol::{Hello, PROTOCOL_VERSION};
///
/// let hello: Hello = serde_json::from_str(r#"{"type":"hello","protocol":2,"program":"my-app 1"}"#)?;
/// assert_eq!(hello.protocol, PROTOCOL_VERSION);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(title = "Hello", transform = crate::schema::name_hello))]
#[serde(tag = "type", rename = "hello")]
pub struct Hello {
    /// The version of the protocol that this side speaks.
    pub protocol: u32,
    /// The name and version of the program that speaks, for people.
    #[serde(default)]
    pub program: String,
    /// What the speaker can do: a keeper names the types of the requests that it knows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub can: Vec<String>,
}

impl Hello {
    /// Reads a line that is a hello; nothing, if it is another message.
    pub fn from_json(line: &[u8]) -> Option<Hello> {
        #[derive(Deserialize)]
        struct Beginning {
            r#type: String,
        }
        let Beginning { r#type } = serde_json::from_slice(line).ok()?;
        if r#type == "hello" { serde_json::from_slice(line).ok() } else { None }
    }

    /// The hello of a client of this version.
    pub fn of_client() -> Hello {
        Hello {
            protocol: PROTOCOL_VERSION,
            program: concat!("fullstop ", env!("CARGO_PKG_VERSION")).to_owned(),
            can: Vec::new(),
        }
    }

    /// The hello of a keeper of this version.
    pub fn of_keeper() -> Hello {
        let can = RequestKind::TYPES.map(str::to_owned).to_vec();
        Hello { can, ..Hello::of_client() }
    }
}

/// A request to a keeper.
///
/// ```
/// use fullstop_protocol::{Request, RequestKind};
///
/// let request: Request = serde_json::from_str(r#"{"id":1,"type":"kill","generation":2}"#)?;
/// assert_eq!((request.kind, request.generation), (RequestKind::Kill, Some(2)));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Request {
    /// Chosen by the client; every answer repeats it.
    pub id: u64,
    /// The generation that is meant; a later one refuses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u32>,
    /// On whose behalf it comes. It is shown, and not verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// What is asked for.
    #[serde(flatten)]
    pub kind: RequestKind,
}

impl Request {
    /// Whether the connection becomes a window, if this is accepted.
    pub fn attaches(&self) -> bool {
        matches!(self.kind, RequestKind::Attach { .. })
    }
}

/// What is asked.
///
/// ```
/// use fullstop_protocol::{RequestKind, StopReason};
///
/// let stop: RequestKind = serde_json::from_str(r#"{"type":"stop"}"#)?;
/// assert_eq!(stop, RequestKind::Stop { reason: StopReason::Stopped, signal: None, within: None });
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum RequestKind {
    /// A stop, by the ladder of the run.
    Stop {
        /// Why the run is to end.
        #[serde(default)]
        reason: StopReason,
        /// The signal that the process in front of the run has heard.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signal: Option<Signal>,
        /// How long the soft steps may take, counted from when this is accepted. It shortens a stop
        /// that is under way, and prolongs none; zero is the last step, now.
        #[serde(
            default,
            rename = "within_ms",
            with = "milliseconds::optional",
            skip_serializing_if = "Option::is_none"
        )]
        #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
        within: Option<Duration>,
    },
    /// The last step, now.
    Kill,
    /// A signal for the leader; it is no part of a stop.
    Signal {
        /// Which one.
        signal: Signal,
    },
    /// Input for the command.
    Input {
        /// What it is to read.
        text: Text,
    },
    /// To be accepted once so much input has room, however long that takes: answers to later
    /// requests may come before. Another one on the same connection replaces it.
    AwaitRoom {
        /// How much.
        bytes: usize,
    },
    /// The end of its input.
    CloseStdin,
    /// The size of the run's terminal, for a client that is no window.
    Resize {
        /// What it is to be.
        size: Size,
    },
    /// From now on this connection is a window on the run's terminal: once accepted,
    /// [`Frame`](crate::Frame)s both ways.
    Attach {
        /// The size of the window.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        size: Option<Size>,
        /// Only to look at it.
        #[serde(default)]
        view: bool,
        /// The window the run was started from: it gets every byte from the first on, as long as
        /// it is there, and no screen.
        #[serde(default)]
        owner: bool,
        /// The window is told the size of the terminal: by a [`Frame::Resize`](crate::Frame::Resize)
        /// before each screen, and whenever it changes.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        sizes: bool,
    },
    /// The host may leave, and the run stays. Only the host may say so.
    Stay,
    /// The host lets go of the run, and lives on itself: the run is stopped by its own ladder,
    /// unless it is to outlive its host. Only the host may say so.
    Leave,
    /// The process at the other end becomes the host of a run whose own host is gone, and this
    /// connection its line. It holds from the next request on this connection on: if the
    /// connection ends before, the run stays as it was.
    Adopt {
        /// What the program calls itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        app: Option<String>,
        /// What the death of this host means, whatever the spec says of the first one.
        on_host_exit: HostPolicy,
    },
    /// The members that are alive now.
    Census,
    /// The same, and what it uses, now and once a second from now on. Another subscription on
    /// the same connection replaces it.
    Subscribe,
}

impl RequestKind {
    /// The types of all requests, as they are written.
    pub const TYPES: [&str; 13] = [
        "stop",
        "kill",
        "signal",
        "input",
        "await-room",
        "close-stdin",
        "resize",
        "attach",
        "stay",
        "adopt",
        "leave",
        "census",
        "subscribe",
    ];
}

/// Why a client may ask for a stop. Every other [`Reason`] is for the keeper to find out.
///
/// ```
/// use fullstop_core::words::Reason;
/// use fullstop_protocol::StopReason;
///
/// assert_eq!(Reason::from(StopReason::default()), Reason::Stopped);
/// assert!(serde_json::from_str::<StopReason>(r#""rebooted""#).is_err());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum StopReason {
    /// A stop was asked for.
    #[default]
    Stopped,
    /// It was not ready in time.
    StartTimeout,
    /// The group it is in is being closed.
    GroupClosed,
    /// The program that it belongs to is leaving.
    HostGone,
}

impl From<StopReason> for Reason {
    fn from(reason: StopReason) -> Reason {
        match reason {
            StopReason::Stopped => Reason::Stopped,
            StopReason::StartTimeout => Reason::StartTimeout,
            StopReason::GroupClosed => Reason::GroupClosed,
            StopReason::HostGone => Reason::HostGone,
        }
    }
}
