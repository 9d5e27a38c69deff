//! What went wrong, as the command line tells it: the library's sentence, and what to type.

use fullstop::{CommandError, Error, FindError, ForgetError, SecretNameError, Whereabouts};

/// The sentence, and what can be done about it.
pub fn explain(error: &Error) -> String {
    match error {
        Error::Command(CommandError::UnknownAgent { .. }) => format!("--agent: {error}"),
        Error::Command(
            CommandError::StandardDescriptor { fd } | CommandError::NotInheritable { fd },
        ) => {
            format!("--keep-fd {fd}: {error}")
        }
        Error::LeftAlone(why) => format!("{}; the run is left as it is", explain(why)),
        _ => match hint(error) {
            Some(hint) => format!("{error}{hint}"),
            None => error.to_string(),
        },
    }
}

fn hint(error: &Error) -> Option<String> {
    Some(match error {
        Error::Command(why) => option_hint(why)?.to_owned(),
        Error::Find(FindError::Nobody(_)) => " (see fullstop ps -a)".to_owned(),
        Error::GroupClosed { closed, .. } => {
            format!(" (fullstop group open {})", closed.as_ref()?)
        }
        Error::LostElsewhere { id, .. } => {
            format!(" (to forget it: fullstop rm --forget {id})")
        }
        Error::NotForgotten { why, .. } => match why {
            ForgetError::Live => " (fullstop stop)".to_owned(),
            ForgetError::Over => " (fullstop rm)".to_owned(),
            ForgetError::Judgeable(Whereabouts::Unseen) => return None,
            ForgetError::Judgeable(_) => " (fullstop sweep)".to_owned(),
            _ => return None,
        },
        Error::NotRestarted { report, .. } => {
            format!(", and fullstop restart {} tries once more", report.id)
        }
        Error::NoInput { .. } => "; start it with --stdin pipe or --pty".to_owned(),
        _ => return None,
    })
}

fn option_hint(error: &CommandError) -> Option<&'static str> {
    Some(match error {
        CommandError::SizeWithoutTerminal => ": ask for one (--pty)",
        CommandError::StdinAndTerminal => ": --pty or --stdin",
        CommandError::ReleasedFromReader => ": no --pty and no --log with --on-exit release",
        CommandError::ReleasedWritesItself => {
            ": no --log-max, no --drain-… and no --no-output-timeout with --on-exit release"
        }
        CommandError::NoLogToLimit => ": --log-max goes with --log or --pty",
        CommandError::LogTooShort => ": --log-max 64KB or more",
        CommandError::NothingToDrain => ": --drain-quiet and --drain-max go with --log or --pty",
        CommandError::DrainTooShort => ": --drain-quiet is longer than --drain-max",
        CommandError::OutputUnseen => ": --no-output-timeout goes with --log or --pty",
        CommandError::LadderNeedsStdin => ": that goes with --stdin pipe or --pty",
        CommandError::SecretName { why: SecretNameError::IsSet, .. } => " (--env)",
        _ => return None,
    })
}
