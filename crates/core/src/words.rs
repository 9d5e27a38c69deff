//! The small words of a run: how it ended, why, and why we may say so.

use crate::signal::Signal;
use serde::{Deserialize, Serialize};
use std::ops::Add;
use std::time::Duration;

/// A point on a clock that does not count suspend. Only differences mean anything.
///
/// ```
/// use fullstop_core::words::Moment;
/// use std::time::Duration;
///
/// let begin = Moment::at(Duration::from_secs(5));
/// assert_eq!((begin + Duration::from_secs(2)).since(begin), Duration::from_secs(2));
/// ```
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Moment(Duration);

impl Moment {
    /// So long after the clock began.
    pub const fn at(since_start_of_clock: Duration) -> Self {
        Self(since_start_of_clock)
    }

    /// How long ago `earlier` was; nothing if it lies ahead.
    pub fn since(self, earlier: Moment) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Moment {
    type Output = Moment;

    /// Saturates, so that a timeout of centuries is simply never reached.
    fn add(self, wait: Duration) -> Moment {
        Moment(self.0.saturating_add(wait))
    }
}

/// How the leader ended.
///
/// ```
/// use fullstop_core::words::Exit;
///
/// assert_eq!(serde_json::to_string(&Exit::Code(3))?, r#"{"code":3}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Exit {
    /// With this exit code.
    Code(i32),
    /// It died of this signal.
    Signal(Signal),
    /// The process that waited for it is dead, and the kernel is too old to tell another.
    Unknown,
}

/// Why a run came to its end. The first reason wins.
///
/// ```
/// use fullstop_core::words::Reason;
///
/// assert_eq!(Reason::GroupClosed.to_string(), "group-closed");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The leader exited by itself.
    Exited,
    /// A stop was asked for.
    Stopped,
    /// The last step was asked for, at once.
    Killed,
    /// It took longer than it was given.
    OverallTimeout,
    /// Nothing was written for too long.
    NoOutputTimeout,
    /// Nothing was written and no processor used for too long.
    IdleTimeout,
    /// It was not ready in time.
    StartTimeout,
    /// Its host is gone.
    HostGone,
    /// The group it was in was closed.
    GroupClosed,
    /// It could not be started.
    SpawnFailed,
    /// Its keeper was killed, and its guard has ended it.
    KeeperDied,
    /// The machine was started anew while the run was live.
    Rebooted,
}

/// Why we may say that nothing of a run is alive.
///
/// ```
/// use fullstop_core::words::Proof;
///
/// assert_eq!(Proof::NoChildren.to_string(), "no-children");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Proof {
    /// `wait` said ECHILD in a subreaper: the tree is extinct.
    NoChildren,
    /// The cgroup reads `populated 0`, and there is no living child either.
    CgroupEmpty,
    /// Only dead processes were seen, but `wait` could not say ECHILD: a tracer outside the run
    /// holds zombies, or they were never children of the process that looked (a sweep). Weaker,
    /// and said as such.
    ScanClean,
    /// No process outlives its kernel.
    Rebooted,
}

/// What happens to the rest when the leader exits and others live.
///
/// ```
/// use fullstop_core::words::OnExit;
///
/// assert_eq!(OnExit::default(), OnExit::Stop);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum OnExit {
    /// They are stopped.
    #[default]
    Stop,
    /// They are waited for.
    Wait,
    /// They are let go.
    Release,
}

/// Where output came from.
///
/// ```
/// use fullstop_core::words::Stream;
///
/// assert_eq!(Stream::Err.to_string(), "err");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Stream {
    /// Stdout.
    Out,
    /// Stderr.
    Err,
    /// A terminal of its own, which knows no difference.
    Tty,
}

impl Stream {
    /// Every stream, in the order in which logs are listed.
    pub const ALL: [Stream; 3] = [Stream::Out, Stream::Err, Stream::Tty];
}

impl Reason {
    /// A clock ended it.
    pub fn is_timeout(self) -> bool {
        matches!(
            self,
            Reason::OverallTimeout
                | Reason::NoOutputTimeout
                | Reason::IdleTimeout
                | Reason::StartTimeout
        )
    }
}

macro_rules! kebab_display {
    ($($name:ident),*) => {$(
        impl std::fmt::Display for $name {
            /// The same word that stands in a report.
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                serde::Serialize::serialize(self, f)
            }
        }
    )*};
}
pub(crate) use kebab_display;
kebab_display!(Reason, Proof, Stream);
