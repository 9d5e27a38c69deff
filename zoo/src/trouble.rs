//! What can go wrong in a member, and the exit status that says so.

use std::io;
use std::process::ExitCode;

#[derive(Debug)]
pub enum Trouble {
    /// Called wrongly: status 2.
    Usage(String),
    /// This machine or this user cannot hold such a member: status 3.
    Cannot(String),
    /// Another process of the member said already why it cannot exist: status 3.
    Declined,
    /// Anything else: status 1.
    Failed { what: String, source: io::Error },
}

impl Trouble {
    pub fn status(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Failed { .. } => 1,
            Self::Usage(_) => 2,
            Self::Cannot(_) | Self::Declined => 3,
        })
    }

    /// The one line for stderr, unless somebody has said it.
    pub fn line(&self) -> Option<String> {
        match self {
            Self::Usage(line) | Self::Cannot(line) => Some(line.clone()),
            Self::Failed { what, source } => Some(format!("{what}: {source}")),
            Self::Declined => None,
        }
    }
}

/// Names the deed in front of the error: `setsid().doing("setsid")?`.
pub trait Doing<T> {
    fn doing(self, what: impl Into<String>) -> Result<T, Trouble>;
}

impl<T, E: Into<io::Error>> Doing<T> for Result<T, E> {
    fn doing(self, what: impl Into<String>) -> Result<T, Trouble> {
        self.map_err(|error| Trouble::Failed { what: what.into(), source: error.into() })
    }
}
