//! How a run stands, in one flat object: what a person wants to know.

use crate::timestamp::Timestamp;
use crate::word::Word;
use fullstop_core::words::Reason;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How a run stands.
///
/// Lengths of time count from the `at` that stands beside a state.
///
/// ```
/// use fullstop_protocol::RunState;
///
/// let json = r#"{"state":"stopping","reason":"stopped","step":"term@leader","left_ms":2100,"alive":4}"#;
/// let state: RunState = serde_json::from_str(json)?;
/// assert_eq!(state.word(), "stopping");
/// assert_eq!(serde_json::to_string(&state)?, json);
///
/// let later: RunState = serde_json::from_str(r#"{"state":"paused"}"#)?;
/// assert!(later.word() == "paused" && !later.is_over());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Flat", into = "Flat")]
pub enum RunState {
    /// Its first process is being born.
    Starting,
    /// Its first process was born, and its end has not begun.
    Running,
    /// It climbs its ladder.
    Stopping {
        /// Why it is to end.
        reason: Word<Reason>,
        /// The step that it is at, as a ladder writes it.
        step: String,
        /// How long the step is waited for.
        left: Duration,
        /// How many were alive when the step was taken.
        alive: Option<usize>,
    },
    /// The last step was taken, and there is no proof; it is tried again.
    Stuck {
        /// Why it is to end.
        reason: Word<Reason>,
        /// How many live, if they could be counted.
        alive: Option<usize>,
        /// How often the last step was taken, and when for the last time.
        tries: u32,
        /// When the last step was last taken.
        tried_at: Timestamp,
    },
    /// It is over, with a proof.
    Ended {
        /// Why it ended.
        reason: Word<Reason>,
    },
    /// The leader exited, and the rest was handed over on purpose.
    Released,
    /// What a later fullstop calls it. It is never taken for an end.
    Other(String),
}

impl RunState {
    /// The state as one word.
    pub fn word(&self) -> &str {
        match self {
            RunState::Starting => "starting",
            RunState::Running => "running",
            RunState::Stopping { .. } => "stopping",
            RunState::Stuck { .. } => "stuck",
            RunState::Ended { .. } => "ended",
            RunState::Released => "released",
            RunState::Other(word) => word,
        }
    }

    /// Why it ends, or has ended.
    pub fn reason(&self) -> Option<&Word<Reason>> {
        match self {
            RunState::Stopping { reason, .. }
            | RunState::Stuck { reason, .. }
            | RunState::Ended { reason } => Some(reason),
            RunState::Released => Some(&Word::Known(Reason::Exited)),
            RunState::Starting | RunState::Running | RunState::Other(_) => None,
        }
    }

    /// Nothing more will happen to it.
    pub fn is_over(&self) -> bool {
        matches!(self, RunState::Ended { .. } | RunState::Released)
    }

    /// Whether it could not be killed so far.
    pub fn is_stuck(&self) -> bool {
        matches!(self, RunState::Stuck { .. })
    }
}

/// The state as it is written: what a word does not need is not there.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Flat {
    state: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Word<Reason>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    left_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    alive: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tries: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tried_at: Option<Timestamp>,
}

impl From<RunState> for Flat {
    fn from(state: RunState) -> Flat {
        let flat = Flat {
            state: state.word().to_owned(),
            reason: state.reason().cloned(),
            ..Flat::default()
        };
        match state {
            RunState::Stopping { step, left, alive, .. } => {
                let left_ms = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
                Flat { step: Some(step), left_ms: Some(left_ms), alive, ..flat }
            }
            RunState::Stuck { alive, tries, tried_at, .. } => {
                Flat { alive, tries: Some(tries), tried_at: Some(tried_at), ..flat }
            }
            _ => flat,
        }
    }
}

impl TryFrom<Flat> for RunState {
    type Error = &'static str;

    fn try_from(flat: Flat) -> Result<RunState, &'static str> {
        let reason = || flat.reason.clone().ok_or("a run that ends has a reason");
        Ok(match flat.state.as_str() {
            "" => return Err("there is no state"),
            "starting" => RunState::Starting,
            "running" => RunState::Running,
            "stopping" => RunState::Stopping {
                reason: reason()?,
                step: flat.step.ok_or("a run that is stopping is at a step")?,
                left: Duration::from_millis(flat.left_ms.unwrap_or_default()),
                alive: flat.alive,
            },
            "stuck" => RunState::Stuck {
                reason: reason()?,
                alive: flat.alive,
                tries: flat.tries.unwrap_or_default(),
                tried_at: flat.tried_at.unwrap_or_default(),
            },
            "ended" => RunState::Ended { reason: reason()? },
            "released" => RunState::Released,
            _ => RunState::Other(flat.state),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_without_what_it_needs_is_none() {
        for wrong in [
            r"{}",
            r#"{"state":""}"#,
            r#"{"state":"ended"}"#,
            r#"{"state":"stuck"}"#,
            r#"{"state":"stopping","reason":"stopped"}"#,
            r#"{"state":7}"#,
        ] {
            assert!(serde_json::from_str::<RunState>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_unknown_word_is_no_end() {
        let state: RunState = serde_json::from_str(r#"{"state":"Ended"}"#).expect("a state");
        assert_eq!((state.is_over(), state.reason(), state.word()), (false, None, "Ended"));
        let state: RunState =
            serde_json::from_str(r#"{"state":"ended","reason":"bored"}"#).expect("a state");
        assert_eq!(state.reason().map(ToString::to_string), Some("bored".to_owned()));
    }
}
