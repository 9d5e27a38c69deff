//! The ladder: the steps of a stop, each with a target and a patience.
//!
//! A ladder is written `term@leader:3s,term@tree:2s,kill`. The soft steps ask; the last step kills
//! the cage. It is no element of a list but a field of its own, so that no ladder can lack it.

mod parse;
#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::duration;
use crate::signal::Signal;

pub use parse::LadderError;

/// How long a soft step waits when its text does not say.
pub const SOFT_PATIENCE: Duration = Duration::from_secs(2);

/// How long the last step waits for the proof when its text does not say. Kill and drain share the
/// five seconds that a stop may take beyond its ladder; this leaves one of them to the drain.
pub const KILL_PATIENCE: Duration = Duration::from_secs(4);

/// The steps of a stop. It always ends by killing the cage.
///
/// ```
/// use fullstop_core::ladder::Ladder;
///
/// let ladder: Ladder = "int@leader:5s, term@tree".parse()?;
/// assert_eq!(ladder.to_string(), "int@leader:5s,term@tree:2s,kill");
/// # Ok::<(), fullstop_core::ladder::LadderError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Ladder {
    soft: Vec<Step>,
    kill: Duration,
}

/// One soft step: its action, its target, and how long it waits for the end before the next step.
///
/// ```
/// use fullstop_core::ladder::{Action, Ladder, Step, Target};
/// use fullstop_core::signal::Signal;
/// use std::time::Duration;
///
/// let ladder: Ladder = "int@leader:3s,kill".parse()?;
/// let Step { action, target, patience } = &ladder.soft()[0];
/// assert_eq!((action, *target), (&Action::Signal(Signal::INT), Target::Leader));
/// assert_eq!(*patience, Duration::from_secs(3));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Step {
    /// What is done.
    pub action: Action,
    /// Which processes it reaches.
    pub target: Target,
    /// How long the end is waited for before the next step.
    pub patience: Duration,
}

/// What a soft step does.
///
/// ```
/// use fullstop_core::ladder::{Action, Ladder};
///
/// let ladder: Ladder = "input:\"/quit\\n\":2s,close-stdin:1s,kill".parse()?;
/// assert_eq!(ladder.soft()[0].action, Action::Input("/quit\n".to_owned()));
/// assert_eq!(ladder.soft()[1].action, Action::CloseStdin);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// This signal is sent.
    Signal(Signal),
    /// Stdin of the leader is closed.
    CloseStdin,
    /// This is written to stdin of the leader.
    Input(String),
}

/// The processes that a soft step reaches. Closing and writing stdin only ever reach the leader.
///
/// ```
/// use fullstop_core::ladder::Target;
///
/// assert_eq!(Target::Tree.to_string(), "tree");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// The process the command became.
    Leader,
    /// The members of the leader's process group.
    Group,
    /// Every member of the cage.
    Tree,
}

/// The short ladder for a run whose host is gone, and does not wait for it.
pub fn host_gone() -> Ladder {
    Ladder {
        soft: vec![Step::signal(Signal::TERM, Target::Tree, Duration::from_millis(500))],
        kill: KILL_PATIENCE,
    }
}

impl Default for Ladder {
    /// Politeness widens: the leader alone may need its children while it saves its work.
    fn default() -> Ladder {
        Ladder {
            soft: vec![
                Step::signal(Signal::TERM, Target::Leader, Duration::from_secs(3)),
                Step::signal(Signal::TERM, Target::Tree, Duration::from_secs(2)),
            ],
            kill: KILL_PATIENCE,
        }
    }
}

impl Ladder {
    /// The steps that ask, in order; the kill that follows them is not among them.
    pub fn soft(&self) -> &[Step] {
        &self.soft
    }

    /// How long the last step waits for the proof before the run is called stuck.
    pub fn kill_patience(&self) -> Duration {
        self.kill
    }

    /// How long all soft steps together may take.
    pub fn total(&self) -> Duration {
        self.soft.iter().fold(Duration::ZERO, |sum, step| sum.saturating_add(step.patience))
    }

    /// Whether a step closes or writes the leader's stdin, so that the keeper must hold it.
    pub fn needs_stdin(&self) -> bool {
        self.soft.iter().any(|step| !matches!(step.action, Action::Signal(_)))
    }

    /// The same steps with patiences in the same proportions, summing up to `total`.
    ///
    /// A total of zero leaves no soft step: there is no time to ask. Steps that all have no
    /// patience share the total evenly.
    #[must_use]
    pub fn scaled(&self, total: Duration) -> Ladder {
        if total.is_zero() {
            return Ladder { soft: Vec::new(), kill: self.kill };
        }
        let weights: Vec<u128> = match self.total() {
            Duration::ZERO => vec![1; self.soft.len()],
            _ => self.soft.iter().map(|step| step.patience.as_nanos()).collect(),
        };
        let soft = self.soft.iter().zip(split(total, &weights));
        let soft = soft.map(|(step, patience)| Step { patience, ..step.clone() }).collect();
        Ladder { soft, kill: self.kill }
    }

    /// The ladder of a run that was itself asked by `signal`: it takes the place of the first
    /// step's signal. A ladder that does not begin with a signal is left as it is.
    #[must_use]
    pub fn starting_with(&self, signal: Signal) -> Ladder {
        let mut ladder = self.clone();
        if let Some(Step { action: Action::Signal(first), .. }) = ladder.soft.first_mut() {
            *first = signal;
        }
        ladder
    }

    /// The ladder for what lives on after the leader: from the first `term`, where there is one,
    /// and without the steps that need a leader's stdin.
    #[must_use]
    pub fn after_leader(&self) -> Ladder {
        let is_term = |step: &Step| step.action == Action::Signal(Signal::TERM);
        let first = self.soft.iter().position(is_term).unwrap_or(0);
        let signals = self.soft[first..].iter();
        let signals = signals.filter(|step| matches!(step.action, Action::Signal(_)));
        Ladder { soft: signals.cloned().collect(), kill: self.kill }
    }
}

/// Splits `total` by `weights`, exactly: what rounding takes from one share goes to the next.
fn split(total: Duration, weights: &[u128]) -> Vec<Duration> {
    let sum: u128 = weights.iter().sum();
    let mut passed = 0;
    let mut given = Duration::ZERO;
    let share = |weight: &u128| {
        passed += weight;
        let until = portion(total, passed, sum);
        let share = until.saturating_sub(given);
        given = until;
        share
    };
    weights.iter().map(share).collect()
}

/// `total * part / sum`, rounded down to a nanosecond.
fn portion(total: Duration, part: u128, sum: u128) -> Duration {
    const NANOS: u128 = 1_000_000_000;
    if part == sum {
        return total;
    }
    // Both factors can be a century in nanoseconds, about 2^62, so the product fits; were there
    // ever more, the shares would be uneven and still sum up.
    let nanos = total.as_nanos().saturating_mul(part) / sum;
    let seconds = u64::try_from(nanos / NANOS).unwrap_or(u64::MAX);
    let rest = Duration::from_nanos(u64::try_from(nanos % NANOS).unwrap_or(0));
    Duration::from_secs(seconds).saturating_add(rest)
}

impl Step {
    fn signal(signal: Signal, target: Target, patience: Duration) -> Step {
        Step { action: Action::Signal(signal), target, patience }
    }

    /// The step without its patience, as reports name it: `term@leader`, `close-stdin`.
    pub fn label(&self) -> String {
        match &self.action {
            Action::Signal(signal) => format!("{signal}@{}", self.target),
            Action::CloseStdin => "close-stdin".to_owned(),
            Action::Input(text) => format!("input:{}", parse::quoted(text)),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.label(), duration::format(self.patience))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Target::Leader => "leader",
            Target::Group => "group",
            Target::Tree => "tree",
        })
    }
}

impl fmt::Display for Ladder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.soft {
            write!(f, "{step},")?;
        }
        if self.kill == KILL_PATIENCE {
            return f.write_str("kill");
        }
        write!(f, "kill:{}", duration::format(self.kill))
    }
}

impl TryFrom<String> for Ladder {
    type Error = LadderError;

    fn try_from(text: String) -> Result<Ladder, LadderError> {
        text.parse()
    }
}

impl From<Ladder> for String {
    fn from(ladder: Ladder) -> String {
        ladder.to_string()
    }
}
