//! How a scenario says that it failed: in a sentence.

use std::fmt::Display;

use serde::{Deserialize, Serialize};

use crate::Missed;

/// `Err` carries one sentence for the person who reads the failure; the census
/// and the attached files are added by the driver.
pub type Outcome<T = ()> = Result<T, Failure>;

/// Why a scenario failed. It is no [`Display`], so that it is told from
/// other errors, and keeps its bound, when a [`Context`] is added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub text: String,
    /// The bound that did not hold, if that is why.
    pub missed: Option<Missed>,
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Self { text, missed: None }
    }
}

impl From<&str> for Failure {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

/// Adds what was being tried to an error.
pub trait Context<T> {
    fn context(self, what: impl Display) -> Outcome<T>;
}

impl<T, E: Cause> Context<T> for Result<T, E> {
    fn context(self, what: impl Display) -> Outcome<T> {
        self.map_err(|error| {
            let failure = error.into_failure();
            Failure { text: format!("{what}: {}", failure.text), ..failure }
        })
    }
}

impl<T> Context<T> for Option<T> {
    fn context(self, what: impl Display) -> Outcome<T> {
        self.ok_or_else(|| what.to_string().into())
    }
}

/// What a scenario can fail of: any error, or another failure.
pub trait Cause {
    fn into_failure(self) -> Failure;
}

impl<E: Display> Cause for E {
    fn into_failure(self) -> Failure {
        self.to_string().into()
    }
}

impl Cause for Failure {
    fn into_failure(self) -> Self {
        self
    }
}

/// Leaves the function with a sentence unless the condition holds. Where the
/// condition is about a time ([`InTime`](crate::InTime)), the failure knows.
#[macro_export]
macro_rules! ensure {
    ($condition:expr, $($sentence:tt)+) => {{
        let condition = $condition;
        if let Err(missed) = $crate::Condition::holds(condition) {
            return Err($crate::Failure { text: format!($($sentence)+), missed });
        }
    }};
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::millis;

    #[test]
    fn context_keeps_the_bound() {
        let missed = Missed { bound: millis(1), from: millis(1), to: millis(3) };
        let failure = Failure { text: "late".into(), missed: Some(missed) };
        let failure = Err::<(), _>(failure).context("waiting").unwrap_err();
        assert_eq!(failure.text, "waiting: late");
        assert_eq!(failure.missed, Some(missed));
    }
}
