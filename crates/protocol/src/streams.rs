//! What a run's stdin, stdout and stderr are made of.

use crate::milliseconds;
use crate::text::Text;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// How long output may be silent after the tree is gone before it is closed. A process that
/// holds it open then is outside the run.
const QUIET: Duration = Duration::from_millis(500);
/// How long it is drained in all. With the last step it shares the five seconds that
/// a stop may take beyond its ladder.
const DRAIN_MOST: Duration = Duration::from_secs(4);

/// What the last step and the drain may take together, unless the drain was given more.
const TOGETHER: Duration = Duration::from_secs(5);

/// Where the command reads from.
///
/// ```
/// use fullstop_protocol::Stdin;
///
/// assert_eq!(serde_json::to_string(&Stdin::File("/etc/hosts".into()))?, r#"{"file":"/etc/hosts"}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Stdin {
    /// Whatever was given to us.
    #[default]
    Inherit,
    /// Nothing: `/dev/null`.
    Null,
    /// What others send.
    Pipe,
    /// This file.
    File(Text),
}

/// Where the command writes to.
///
/// ```
/// use fullstop_protocol::Output;
///
/// assert!(Output::Show.is_captured() && !Output::Inherit.is_captured());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Output {
    /// Whatever was given to us; nothing stands between.
    #[default]
    Inherit,
    /// The run's logs.
    Log,
    /// The run's logs, and whatever was given to us.
    Show,
    /// A terminal of its own, and the log of that.
    Terminal {
        /// How large it is at first.
        size: Size,
        /// How its size follows its windows.
        fit: ResizePolicy,
    },
}

/// How the terminal's size follows its windows.
///
/// ```
/// use fullstop_protocol::ResizePolicy;
///
/// assert_eq!(ResizePolicy::default(), ResizePolicy::Latest);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ResizePolicy {
    /// The window that was last resized, attached, or typed into.
    #[default]
    Latest,
    /// What fits into every window.
    Smallest,
    /// It stays as it was made.
    Fixed,
}

/// The drain: how long output may outlive the tree.
///
/// ```
/// use fullstop_protocol::Drain;
///
/// let Drain { quiet, most } = Drain::default();
/// assert!(quiet < most);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Drain {
    /// What is left in the pipes is read until nothing has come for so long.
    #[serde(rename = "quiet_ms", with = "milliseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub quiet: Duration,
    /// And no longer than this.
    #[serde(rename = "most_ms", with = "milliseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub most: Duration,
}

impl Default for Drain {
    fn default() -> Drain {
        Drain { quiet: QUIET, most: DRAIN_MOST }
    }
}

impl Drain {
    /// How long the last step and the drain may take together.
    pub fn together(self) -> Duration {
        self.most.max(TOGETHER)
    }
}

impl Output {
    /// Whether the keeper stands between the command and its output.
    pub fn is_captured(self) -> bool {
        self != Output::Inherit
    }

    /// The terminal of its own, if it has one.
    pub fn terminal(self) -> Option<(Size, ResizePolicy)> {
        match self {
            Output::Terminal { size, fit } => Some((size, fit)),
            _ => None,
        }
    }
}

/// A terminal's size, in characters.
///
/// ```
/// use fullstop_protocol::Size;
///
/// let size: Size = "24x80".parse().unwrap();
/// assert_eq!((size.rows, size.cols), (24, 80));
/// assert!("0x80".parse::<Size>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Size {
    /// Lines.
    pub rows: u16,
    /// Characters in a line.
    pub cols: u16,
}

impl Size {
    /// A larger screen costs more to keep than any window shows.
    pub const LARGEST: Size = Size { rows: 500, cols: 1000 };

    /// As near as it can be had.
    #[must_use]
    pub fn clamped(self) -> Size {
        Size {
            rows: self.rows.clamp(1, Size::LARGEST.rows),
            cols: self.cols.clamp(1, Size::LARGEST.cols),
        }
    }
}

impl Default for Size {
    /// As terminals have begun since there were terminals.
    fn default() -> Size {
        Size { rows: 24, cols: 80 }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.rows, self.cols)
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Size, String> {
        let Size { rows: most_rows, cols: most_cols } = Size::LARGEST;
        let parsed = text.split_once('x').and_then(|(rows, cols)| {
            Some(Size { rows: rows.parse().ok()?, cols: cols.parse().ok()? })
        });
        match parsed {
            Some(size) if size == size.clamped() => Ok(size),
            _ => {
                Err(format!("{text:?} is no size: ROWSxCOLS, from 1x1 to {most_rows}x{most_cols}"))
            }
        }
    }
}
