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
        /// The name that was given.
        name: String,
        /// Those that have one.
        known: String,
    },
    /// A group has a path like `plan/research`.
    #[error("{0}")]
    GroupName(String),
    /// A size was given, and no terminal was asked for.
    #[error("only a terminal of its own has a size")]
    SizeWithoutTerminal,
    /// A terminal was asked for a command that takes the place of this program.
    #[error("a command in this program's place cannot have a terminal of its own")]
    TerminalInPlace,
    /// A terminal was asked for, and another stdin too.
    #[error("a command with a terminal of its own reads from that")]
    StdinAndTerminal,
    /// A run in the background was to inherit stdin.
    #[error("a run that stands apart has no stdin to inherit: null, pipe, or a file")]
    NoStdinToInherit,
    /// What reads its output is to go away with its leader.
    #[error("a command that is released loses the reader of its output")]
    ReleasedFromReader,
    /// Caps, drains and clocks over output need a keeper that stays.
    #[error("a command that may be released writes to its logs itself")]
    ReleasedWritesItself,
    /// A cap was given, and no log was asked for.
    #[error("nothing is logged, so no log can be too long")]
    NoLogToLimit,
    /// The cap is below the least that is useful.
    #[error("a log of less than 64KB says nothing")]
    LogTooShort,
    /// A drain was given, and no capture was asked for.
    #[error("nothing is captured, so nothing is drained")]
    NothingToDrain,
    /// The silence that ends the drain is longer than the drain may take.
    #[error("the drain ends before it can be quiet")]
    DrainTooShort,
    /// A clock over output was given, and no capture was asked for.
    #[error("output that is not captured is not seen")]
    OutputUnseen,
    /// A step writes or closes stdin, which the keeper does not hold.
    #[error("this ladder writes or closes stdin")]
    LadderNeedsStdin,
    /// A step writes or closes stdin, which is a terminal.
    #[error(
        "this ladder writes or closes stdin, and a terminal is not ours to close; pipe something \
         in, or use signals"
    )]
    LadderClosesTerminal,
    /// A standard stream was named as a descriptor to be kept.
    #[error("stdin, stdout and stderr are not kept")]
    StandardDescriptor {
        /// Its number.
        fd: RawFd,
    },
    /// A descriptor to be kept cannot be inherited.
    #[error("it is not open, or closes on exec")]
    NotInheritable {
        /// Its number.
        fd: RawFd,
    },
    /// The secrets cannot be told by their names.
    #[error("secret: {name:?} {}", why.text())]
    SecretName {
        /// The name that was given.
        name: String,
        /// What is wrong with it.
        why: SecretNameError,
    },
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
    /// It is no name of a variable.
    NoVariable,
    /// It is the name of a variable of fullstop.
    Reserved,
    /// Another secret has it.
    Twice,
    /// A variable of this name is set as well.
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
