//! The process that asked for the end of a run.

use crate::timestamp::Timestamp;
use serde::{Deserialize, Serialize};

/// The process that asked for the end of a run, as far as it is known.
///
/// ```
/// use fullstop_protocol::Asker;
///
/// let asker: Asker = serde_json::from_str(
///     r#"{"at":"2026-11-16T14:05:25Z","uid":1000,"pid":4711,"program":"fullstop","by":"Ada"}"#,
/// )?;
/// assert_eq!(asker.by.as_deref(), Some("Ada"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Asker {
    /// When it was asked for.
    pub at: Timestamp,
    /// Its uid, by the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// Its pid, by the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<i32>,
    /// The name of that process, which it chose itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// On whose behalf that process says that it asked. It is not verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}
