//! How a scenario says that it failed: in a sentence.

use std::fmt::Display;

/// `Err` carries one sentence for the person who reads the failure; the census
/// and the attached files are added by the driver.
pub type Outcome<T = ()> = Result<T, String>;

/// Adds what was being tried to an error.
pub trait Context<T> {
    fn context(self, what: impl Display) -> Outcome<T>;
}

impl<T, E: Display> Context<T> for Result<T, E> {
    fn context(self, what: impl Display) -> Outcome<T> {
        self.map_err(|error| format!("{what}: {error}"))
    }
}

impl<T> Context<T> for Option<T> {
    fn context(self, what: impl Display) -> Outcome<T> {
        self.ok_or_else(|| what.to_string())
    }
}

/// Leaves the function with a sentence unless the condition holds.
#[macro_export]
macro_rules! ensure {
    ($condition:expr, $($sentence:tt)+) => {
        if !$condition {
            return Err(format!($($sentence)+));
        }
    };
}
