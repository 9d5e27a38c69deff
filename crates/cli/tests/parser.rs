//! What the parser makes of particular lines, and that no line breaks it.

use fullstop::{HostPolicy, Loudness};
use fullstop_cli::args::{
    Call, Form, GroupCall, Man, Ready, RunOptions, UsageError, Which, parse_from,
};
use fullstop_cli::grammar::{Command, FULLSTOP, Opt};
use lexopt::Parser;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::time::Duration;

fn parse(line: &str) -> Result<Call, UsageError> {
    parse_from(Parser::from_args(line.split_whitespace()))
}

fn wrong(line: &str) -> String {
    match parse(line) {
        Err(UsageError(why)) => why,
        Ok(call) => panic!("{line}: {call:?}"),
    }
}

fn run(line: &str) -> RunOptions {
    match parse(line) {
        Ok(Call::Run(options)) => *options,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn everything_behind_the_command_is_its_own() {
    for line in ["run -q ls -v --help -- x", "run -q -- ls -v --help -- x"] {
        let options = run(line);
        assert_eq!(options.command, ["ls", "-v", "--help", "--", "x"], "{line}");
        assert_eq!(options.loudness, Loudness::Quiet);
    }
    assert_eq!(run("run -- --odd").command, ["--odd"]);
}

#[test]
fn mistakes_are_told_in_one_line_each() {
    let table = [
        ("", "nothing to do (see fullstop --help)"),
        ("group", "nothing to do (see fullstop group --help)"),
        ("claude", "there is no command \"claude\"; to run it: fullstop run -- claude"),
        ("group x", "group: there is no command \"x\"; there are ls, stop, close, open"),
        ("help x", "there is no command \"x\" (see fullstop --help)"),
        ("--x", "invalid option '--x' (see fullstop --help)"),
        ("run", "no command to run (see fullstop run --help)"),
        ("run --", "no command to run (see fullstop run --help)"),
        ("run --x y", "invalid option '--x' (see fullstop run --help)"),
        ("run --json y", "invalid option '--json' (see fullstop run --help)"),
        ("start -q y", "invalid option '-q' (see fullstop start --help)"),
        ("run --cwd", "missing argument for option '--cwd' (see fullstop run --help)"),
        (
            "run --quiet=1 y",
            "unexpected argument for option '--quiet': \"1\" (see fullstop run --help)",
        ),
        ("run --timeout 0 y", "--timeout: must be more than zero"),
        (
            "run --grace 3parsecs y",
            "--grace: duration: unknown unit \"parsecs\" at column 2: 3parsecs",
        ),
        ("run --env =x y", "--env: =x is not K=V"),
        ("run --ladder kill --grace 1s y", "--grace scales the usual ladder; give it or --ladder"),
        ("start --wait-ready tcp:0 y", "--wait-ready: \"tcp:0\" has no port from 1 to 65535"),
        ("start --wait-ready file: y", "--wait-ready: file: needs a path behind it"),
        (
            "start --ready-timeout 1s y",
            "--ready-timeout: nothing to wait for without --wait-ready (see fullstop start --help)",
        ),
        ("ps x", "unexpected argument \"x\" (see fullstop ps --help)"),
        ("ps -q --json", "--quiet and --json: only one of them (see fullstop ps --help)"),
        ("tree", "which run? give its id (see fullstop tree --help)"),
        ("tree a b", "unexpected argument \"b\" (see fullstop tree --help)"),
        ("stop", "which run? give its id, --group or --all (see fullstop stop --help)"),
        ("kill a --all", "ids, --group and --all: only one of them (see fullstop kill --help)"),
        ("signal", "which signal? give its name (see fullstop signal --help)"),
        ("signal term", "which run? give its id (see fullstop signal --help)"),
        ("signal tern a", "unknown signal \"tern\" (see fullstop signal --help)"),
        ("group stop", "which group? give its name (see fullstop group stop --help)"),
        ("prune --keep x", "--keep: \"x\" is no number"),
        ("completions", "which shell? bash, zsh or fish (see fullstop completions --help)"),
        ("completions csh", "completions: \"csh\" is not one of bash, zsh, fish"),
        (
            "man run --dir x",
            "--dir writes all pages; give it or a command (see fullstop man --help)",
        ),
    ];
    for (line, why) in table {
        assert_eq!(wrong(line), why, "{line}");
    }
}

#[test]
fn start_is_meant_to_stay_and_may_wait_until_ready() {
    let start = |line: &str| match parse(line) {
        Ok(Call::Start(options)) => *options,
        other => panic!("{line}: {other:?}"),
    };
    let plain = start("start x");
    assert_eq!(plain.run.on_host_exit, HostPolicy::Ignore);
    assert!(plain.wait_ready.is_none());
    let table = [
        ("up", Ready::Line("up".to_owned())),
        ("tcp:80", Ready::Port(80)),
        ("file:/x:y", Ready::File("/x:y".into())),
    ];
    for (text, ready) in table {
        let wait = start(&format!("start --wait-ready {text} -- x -y")).wait_ready.unwrap();
        assert_eq!(wait.ready, ready);
        assert_eq!(wait.timeout, Duration::from_secs(30), "as the help says");
    }
    // Whoever starts it is gone as soon as it runs.
    assert!(parse("start --on-host-exit stop x").is_err());
}

#[test]
fn small_commands_get_what_they_were_told() {
    let ids = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    let Ok(Call::Stop(stop)) = parse("stop a --no-wait b") else { panic!() };
    assert_eq!((stop.which, stop.wait), (Which::Ids(ids(&["a", "b"])), false));
    let Ok(Call::Kill(kill)) = parse("kill --group plan/research") else { panic!() };
    assert_eq!((kill.which, kill.wait), (Which::Group("plan/research".to_owned()), true));
    let Ok(Call::Signal { signal, ids: told }) = parse("signal HUP a b") else { panic!() };
    assert_eq!((signal.number(), told), (1, ids(&["a", "b"])));
    let Ok(Call::Ps(ps)) = parse("ps -aq --group g") else { panic!() };
    assert_eq!((ps.all, ps.form, ps.group.as_deref()), (true, Form::Names, Some("g")));
    let Ok(Call::Events(events)) = parse("events -f") else { panic!() };
    assert!(events.follow && events.ids.is_empty());
    let Ok(Call::Wait(wait)) = parse("wait a --timeout 0") else { panic!() };
    assert_eq!(wait.timeout, Some(Duration::ZERO));
    let Ok(Call::Prune(prune)) = parse("prune --keep 5 --older 2h") else { panic!() };
    assert_eq!((prune.keep, prune.older), (Some(5), Some(Duration::from_hours(2))));
    let Ok(Call::Group(GroupCall::Close { name, json })) = parse("group close plan --json") else {
        panic!()
    };
    assert_eq!((name.as_str(), json), ("plan", true));
    let Ok(Call::Man(Man::Page(page))) = parse("man group stop") else { panic!() };
    assert_eq!(page.path, ["group", "stop"]);
    assert!(matches!(parse("-V"), Ok(Call::Version)));
}

/// Words of the grammar, so that lines get deep into it, and words of chance.
fn words() -> impl Strategy<Value = OsString> {
    let commands = FULLSTOP.all().into_iter().map(|command| command.name().to_owned());
    let options = FULLSTOP.all().into_iter().flat_map(Command::options);
    let known: Vec<String> = commands.chain(options.flat_map(Opt::names)).collect();
    let values: &'static [&str] =
        &["--", "-", "", "1s", "0", "K=V", "tcp:1", "file:", "kill", "-h", "-aqv", "term"];
    prop_oneof![
        4 => select(known.clone()).prop_map(OsString::from),
        2 => select(values).prop_map(OsString::from),
        1 => (select(known), any::<String>()).prop_map(|(name, value)| format!("{name}={value}").into()),
        1 => any::<String>().prop_map(OsString::from),
        1 => vec(1_u8.., 0..12).prop_map(OsString::from_vec),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn no_line_breaks_the_parser(
        command in select(FULLSTOP.all()),
        named in any::<bool>(),
        rest in vec(words(), 0..8),
    ) {
        let path = if named { command.path } else { &[] };
        let line = path.iter().map(OsString::from).chain(rest);
        if let Err(UsageError(why)) = parse_from(Parser::from_args(line)) {
            prop_assert!(!why.is_empty());
        }
    }

    #[test]
    fn the_command_of_run_arrives_untouched(rest in vec(words(), 1..8)) {
        let line = ["run", "--"].into_iter().map(OsString::from).chain(rest.clone());
        match parse_from(Parser::from_args(line)) {
            Ok(Call::Run(options)) => prop_assert_eq!(options.command, rest),
            other => prop_assert!(false, "{:?}", other),
        }
    }
}
