use super::*;
use fullstop_core::ladder::Ladder;

const SIZE: Size = Size { rows: 30, cols: 100 };

fn command() -> Command {
    Command::new("true")
}

fn ladder(text: &str) -> Ladder {
    text.parse().expect(text)
}

#[test]
fn streams_are_what_is_usual_where_the_run_stands() {
    let table = [
        (Placement::Foreground, Stdin::Inherit, Output::Inherit),
        (Placement::Beside, Stdin::Inherit, Output::Inherit),
        (Placement::Background, Stdin::Null, Output::Log),
    ];
    for (placement, stdin, output) in table {
        let usual = command().settled(placement).expect("fits");
        assert_eq!((usual.stdin, usual.output), (stdin, output), "{placement:?}");
        assert_eq!((usual.log_max, usual.drain), (None, Drain::default()));
    }
}

#[test]
fn streams_are_what_was_asked_for() {
    let shown = command().log(true).log_max(1 << 20).settled(Placement::Foreground).expect("fits");
    assert_eq!((shown.output, shown.log_max), (Output::Show, Some(1 << 20)));
    let own =
        command().pty(SIZE).fit(ResizePolicy::Smallest).log(true).settled(Placement::Background);
    let own = own.expect("a terminal is always logged");
    assert_eq!(own.output.terminal(), Some((SIZE, ResizePolicy::Smallest)));
    let quiet = Duration::from_millis(10);
    let drained = command().drain(quiet, quiet).settled(Placement::Background).expect("fits");
    assert_eq!(drained.drain, Drain { quiet, most: quiet });
    let huge =
        command().pty(Size { rows: 9999, cols: 0 }).settled(Placement::Beside).expect("fits");
    assert_eq!(huge.output.terminal().map(|(size, _)| size), Some(Size { rows: 500, cols: 1 }));
}

#[test]
fn a_file_is_found_from_elsewhere() {
    let file =
        command().stdin(Stdin::File("null".into())).settled(Placement::Background).expect("fits");
    let here = std::env::current_dir().expect("here").join("null");
    assert_eq!(file.stdin, Stdin::File(here.into_os_string().into()));
}

#[test]
fn what_does_not_go_together_gets_one_line() {
    use Placement::{Background as Back, Beside as Aside, Foreground as Front};
    let closes = || command().ladder(ladder("close-stdin:1s,kill"));
    let second = Duration::from_secs(1);
    let table = vec![
        (command().pty(SIZE), Front, CommandError::TerminalInPlace),
        (command().pty(SIZE).stdin(Stdin::Pipe), Back, CommandError::StdinAndTerminal),
        (command().pty(SIZE).stdin(Stdin::Null), Aside, CommandError::StdinAndTerminal),
        (command().fit(ResizePolicy::Fixed), Back, CommandError::SizeWithoutTerminal),
        (command().stdin(Stdin::Inherit), Back, CommandError::NoStdinToInherit),
        (command().stdin(Stdin::Inherit), Aside, CommandError::NoStdinToInherit),
        (command().pty(SIZE).on_exit(OnExit::Release), Back, CommandError::ReleasedFromReader),
        (command().log(true).on_exit(OnExit::Release), Front, CommandError::ReleasedFromReader),
        (
            command().log_max(1 << 20).on_exit(OnExit::Release),
            Back,
            CommandError::ReleasedWritesItself,
        ),
        (
            command().drain(second, second).on_exit(OnExit::Release),
            Back,
            CommandError::ReleasedWritesItself,
        ),
        (
            command().no_output_timeout(second).on_exit(OnExit::Release),
            Back,
            CommandError::ReleasedWritesItself,
        ),
        (command().log_max(1 << 20), Front, CommandError::NoLogToLimit),
        (command().log_max((64 << 10) - 1), Back, CommandError::LogTooShort),
        (command().drain(second, second), Front, CommandError::NothingToDrain),
        (command().drain(second * 2, second), Back, CommandError::DrainTooShort),
        (command().no_output_timeout(second), Front, CommandError::OutputUnseen),
        (closes(), Back, CommandError::LadderNeedsStdin),
        (closes().stdin(Stdin::Null), Front, CommandError::LadderNeedsStdin),
        (closes().stdin(Stdin::File("x".into())), Back, CommandError::LadderNeedsStdin),
    ];
    for (command, placement, expected) in table {
        let asked = format!("{command:?}");
        let why = command.settled(placement).expect_err(&asked);
        assert!(!why.to_string().contains('\n'), "{why}");
        assert!(matches!(&why, Error::Command(why) if *why == expected), "{expected}: {why}");
    }
}

#[test]
fn what_goes_together_is_left_in_peace() {
    use Placement::{Background as Back, Beside as Aside, Foreground as Front};
    let closes = || command().ladder(ladder("input:\"/exit\\r\":1s,kill"));
    let second = Duration::from_secs(1);
    let table = [
        (command().on_exit(OnExit::Release), Front),
        (command().on_exit(OnExit::Release), Back),
        (command().log_max(64 << 10), Back),
        (command().log(true).no_output_timeout(second), Front),
        (command().no_output_timeout(second), Back),
        (command().idle_timeout(second), Front),
        (command().stdin(Stdin::Inherit), Front),
        (closes(), Front),
        (closes(), Aside),
        (closes().stdin(Stdin::Pipe), Back),
        (closes().pty(SIZE), Back),
    ];
    for (command, placement) in table {
        let asked = format!("{command:?}");
        command.settled(placement).unwrap_or_else(|why| panic!("{why}: {asked}"));
    }
}
