//! A claim: a proof that no process of a run is left, as a message or a file tells it.
//!
//! A proof is made from the kernel's answers at the moment it is said, and only the cage can
//! make one. What stands in a record, a report or a message is a claim. Before a program repeats
//! it to a person, it asks the kernel again, where that can still be done.

use crate::timestamp::Timestamp;
use crate::word::Word;
use fullstop_core::words::Proof;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Why no process of a run is left, as it was told.
///
/// ```
/// use fullstop_core::words::Proof;
/// use fullstop_protocol::Claim;
///
/// let claim: Claim = serde_json::from_str(r#""cgroup-empty""#)?;
/// assert_eq!(claim, Proof::CgroupEmpty);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Claim(Word<Proof>);

impl Claim {
    /// By what the end was proven.
    pub fn proof(&self) -> &Word<Proof> {
        &self.0
    }
}

impl From<Proof> for Claim {
    fn from(proof: Proof) -> Claim {
        Claim(Word::Known(proof))
    }
}

impl PartialEq<Proof> for Claim {
    fn eq(&self, proof: &Proof) -> bool {
        self.0 == *proof
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What the kernel answered when a proof was made. A question that was not asked has no
/// answer.
///
/// ```
/// use fullstop_protocol::KernelAnswers;
///
/// let answers: KernelAnswers = serde_json::from_str(
///     r#"{"at":"2026-11-16T14:05:30.033Z","populated":false,"has_children":false}"#,
/// )?;
/// assert_eq!(answers.populated, Some(false));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KernelAnswers {
    /// When the kernel answered.
    pub at: Timestamp,
    /// Whether a process was in the cgroup: `populated` of its `cgroup.events`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub populated: Option<bool>,
    /// Whether the process that inherits the run's orphans had a child: `wait`, or ECHILD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_children: Option<bool>,
    /// Whether the search for processes saw all that there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_census_complete: Option<bool>,
}
