//! Why a command cannot be begun as it was asked for.

use std::os::fd::RawFd;

/// What was asked for a command and does not go together. It is found out before anything is
/// begun.
///
/// ```
/// use fullstop::{Command, CommandError, Error};
///
/// let unknown = Command::new("true").agent(fullstop::Agent::Named("hal".into())).whole_ladder().unwrap_err();
/// assert!(matches!(unknown, Error::Command(CommandError::UnknownAgent { .. })));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// No agent of this name has a ladder of its own.
    #[error("{name:?} is not known; known: {known}")]
    UnknownAgent {
        name: String,
        /// Those that have one.
        known: String,
    },
    /// A group has a path like `plan/research`.
    #[error("{0}")]
    GroupName(String),
    #[error("only a terminal of its own has a size")]
    SizeWithoutTerminal,
    #[error("a command in this program's place cannot have a terminal of its own")]
    TerminalInPlace,
    #[error("a command with a terminal of its own reads from that")]
    StdinAndTerminal,
    #[error("a run that stands apart has no stdin to inherit: null, pipe, or a file")]
    NoStdinToInherit,
    #[error("a command that is released loses the reader of its output")]
    ReleasedFromReader,
    #[error("a command that may be released writes to its logs itself")]
    ReleasedWritesItself,
    #[error("nothing is logged, so no log can be too long")]
    NoLogToLimit,
    #[error("a log of less than 64KB says nothing")]
    LogTooShort,
    #[error("nothing is captured, so nothing is drained")]
    NothingToDrain,
    #[error("the drain ends before it can be quiet")]
    DrainTooShort,
    #[error("output that is not captured is not seen")]
    OutputUnseen,
    #[error("this ladder writes or closes stdin")]
    LadderNeedsStdin,
    #[error(
        "this ladder writes or closes stdin, and a terminal is not ours to close; pipe something \
         in, or use signals"
    )]
    LadderClosesTerminal,
    #[error("stdin, stdout and stderr are not kept")]
    StandardDescriptor { fd: RawFd },
    #[error("it is not open, or closes on exec")]
    NotInheritable { fd: RawFd },
    /// The secrets cannot be told by their names.
    #[error("secret: {name:?} {}", why.text())]
    SecretName { name: String, why: SecretNameError },
}

/// What is wrong with the name of a secret.
///
/// ```
/// assert_eq!(fullstop::SecretNameError::Twice.to_string(), "is given twice");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.text())]
#[non_exhaustive]
pub enum SecretNameError {
    NoVariable,
    Reserved,
    Twice,
    IsSet,
}

impl SecretNameError {
    fn text(self) -> &'static str {
        match self {
            SecretNameError::NoVariable => "is no name of a variable",
            SecretNameError::Reserved => "is fullstop's own variable",
            SecretNameError::Twice => "is given twice",
            SecretNameError::IsSet => "is set as a variable as well; it can be one of them",
        }
    }
}

impl CommandError {
    /// A stable word for programs.
    pub fn code(&self) -> &'static str {
        match self {
            CommandError::UnknownAgent { .. } => "unknown-agent",
            CommandError::GroupName(_) => "invalid-group",
            _ => "unfit-command",
        }
    }
}
