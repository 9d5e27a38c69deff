//! What the parser makes of particular lines, and that no line breaks it.

use fullstop::{HostPolicy, Key, ResizePolicy, Size, Stdin, Stream};
use fullstop_cli::args::{
    Call, Form, GroupCall, LogForm, Man, Ready, RunOptions, UsageError, Which, WindowSize,
    parse_from,
};
use fullstop_cli::grammar::{Command, FULLSTOP, Opt};
use fullstop_cli::since::Since;
use fullstop_keeper::Verbosity;
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
        assert_eq!(options.verbosity, Verbosity::Quiet);
    }
    assert_eq!(run("run -- --odd").command, ["--odd"]);
}

#[test]
#[allow(clippy::too_many_lines)] // It is a table.
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
            "start --start-timeout 1s y",
            "--start-timeout: nothing to wait for without --wait-ready (see fullstop start --help)",
        ),
        (
            "start --ready-timeout 1s y",
            "invalid option '--ready-timeout' (see fullstop start --help)",
        ),
        ("run --no-output-timeout 0 y", "--no-output-timeout: must be more than zero"),
        ("start --idle-timeout 0s y", "--idle-timeout: must be more than zero"),
        (
            "run --idle-timeout 101y y",
            "--idle-timeout: duration: unknown unit \"y\" at column 4: 101y",
        ),
        ("run --drain-quiet 0 y", "--drain-quiet: must be more than zero"),
        ("run --log-max 0 y", "--log-max: must be more than zero"),
        ("run --log-max -1 y", "--log-max: \"-1\" is less than nothing"),
        ("run --log-max 9999999TB y", "--log-max: \"9999999TB\" is more than any disk holds"),
        (
            "start --log-max much y",
            "--log-max: \"much\" is no amount of bytes; write it as 65536, 64KB, 64MB or 1GB",
        ),
        ("start --log y", "invalid option '--log' (see fullstop start --help)"),
        ("run --size 24x80 y", "--size is that of a terminal of its own; it goes with --pty"),
        (
            "run --pty --size big y",
            "--size: \"big\" is no size: ROWSxCOLS, from 1x1 to 500x1000; or latest, or smallest",
        ),
        ("run --stdin= y", "--stdin: null, inherit, pipe, or a file"),
        ("run --secret-fd TOKEN y", "--secret-fd: TOKEN is not NAME=FILE"),
        ("run --secret-fd =x y", "--secret-fd: =x is not NAME=FILE"),
        ("run --secret-fd TOKEN= y", "--secret-fd: TOKEN= is not NAME=FILE"),
        ("send", "which run? give its id (see fullstop send --help)"),
        ("send a", "nothing to send: give a text, --key or --enter (see fullstop send --help)"),
        ("send a - b", "- is whatever stdin has, and stands alone (a dash is --key -)"),
        ("send a b --timeout 0", "--timeout: must be more than zero"),
        ("close-stdin a b", "unexpected argument \"b\" (see fullstop close-stdin --help)"),
        ("ps x", "unexpected argument \"x\" (see fullstop ps --help)"),
        ("ps -q --json", "--quiet and --json: only one of them (see fullstop ps --help)"),
        ("tree", "which run? give its id (see fullstop tree --help)"),
        ("tree a b", "unexpected argument \"b\" (see fullstop tree --help)"),
        ("attach", "which run? give its id (see fullstop attach --help)"),
        ("attach a b", "unexpected argument \"b\" (see fullstop attach --help)"),
        (
            "attach --detach-keys ctrl-1 a",
            "--detach-keys: \"ctrl-1\" is no key: ctrl-a to ctrl-z, ctrl-@[\\]^_, or a character",
        ),
        ("stop", "which run? give its id, --group, --label or --all (see fullstop stop --help)"),
        (
            "kill a --all",
            "ids, --group, --label and --all: only one of them (see fullstop kill --help)",
        ),
        ("signal", "which signal? give its name (see fullstop signal --help)"),
        ("signal term", "which run? give its id, or --label (see fullstop signal --help)"),
        ("signal tern a", "unknown signal \"tern\" (see fullstop signal --help)"),
        ("group stop", "which group? give its name (see fullstop group stop --help)"),
        ("logs", "which run? give its id (see fullstop logs --help)"),
        ("logs -n x a", "--lines: \"x\" is no number"),
        (
            "logs -t --raw a",
            "--raw is the bytes as they are; give it or --times (see fullstop logs --help)",
        ),
        ("logs --json --raw a", "--raw and --json: only one of them (see fullstop logs --help)"),
        (
            "logs --since 25:00 a",
            "--since: \"25:00\" is no time: 10m (ago), 11:00, 2026-11-16 or 2026-11-16T11:00:00Z",
        ),
        ("logs --stream in a", "--stream: \"in\" is not one of out, err, tty"),
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
    assert_eq!(plain.run.on_host_exit, Some(HostPolicy::Ignore));
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
fn streams_are_what_the_options_say() {
    let usual = run("run x");
    assert_eq!((usual.stdin, usual.log, usual.pty, usual.size), (None, false, false, None));
    let table = [
        ("null", Stdin::Null),
        ("inherit", Stdin::Inherit),
        ("pipe", Stdin::Pipe),
        ("./null", Stdin::File("./null".into())),
        ("Pipe", Stdin::File("Pipe".into())),
    ];
    for (word, stdin) in table {
        assert_eq!(run(&format!("run --stdin {word} x")).stdin, Some(stdin), "{word}");
    }
    let table = [
        ("latest", WindowSize::Follow(ResizePolicy::Latest)),
        ("smallest", WindowSize::Follow(ResizePolicy::Smallest)),
        ("50x120", WindowSize::Fixed(Size { rows: 50, cols: 120 })),
    ];
    for (word, size) in table {
        let options = run(&format!("run --size {word} --pty x"));
        assert_eq!((options.pty, options.size), (true, Some(size)), "{word}");
    }
    let options =
        run("run --log --log-max 1MB --drain-quiet 1s --drain-max 9s --idle-timeout 365d x");
    assert_eq!((options.log, options.log_max), (true, Some(1 << 20)));
    let seconds = |option: Option<Duration>| option.map(|time| time.as_secs());
    assert_eq!((seconds(options.drain_quiet), seconds(options.drain_max)), (Some(1), Some(9)));
    assert_eq!(seconds(options.idle_timeout), Some(365 * 24 * 3600));
    let secrets = run("run --secret-fd A=/x=y --secret-fd B=z x").secrets;
    assert_eq!(secrets, [("A".to_owned(), "/x=y".into()), ("B".to_owned(), "z".into())]);
}

#[test]
fn texts_and_keys_are_kept_in_their_order() {
    let send = |line: &str| match parse(line) {
        Ok(Call::Send(options)) => options,
        other => panic!("{line}: {other:?}"),
    };
    let options = send("send --key C-u a hello --enter world --key ^D -- --odd");
    assert_eq!((options.id.as_str(), options.timeout), ("a", Duration::from_secs(5)));
    assert_eq!(options.text, ["hello", "world", "--odd"]);
    let typed: Vec<_> = options.keys.iter().flat_map(Key::typed).copied().collect();
    assert_eq!(typed, b"\x15\r\x04");
    assert_eq!(send("send a -").text, ["-"]);
    assert!(send("send a --key -").text.is_empty());
    assert!(wrong("send a --key F13").starts_with("--key: \"F13\" is no key; there are Enter, "));
}

#[test]
fn runs_are_chosen_by_their_ids_or_by_their_labels() {
    let labelled = || Which::Labels("app=my-app".parse().expect("a label"));
    let Ok(Call::Wait(wait)) = parse("wait --label app=my-app --timeout 3") else { panic!() };
    assert_eq!(wait.which, labelled());
    let Ok(Call::Signal { signal, which, .. }) = parse("signal HUP --label app=my-app") else {
        panic!()
    };
    assert_eq!((signal.number(), which), (1, labelled()));
    let Ok(Call::Restart { which, json: true }) = parse("restart --json --label app=my-app") else {
        panic!()
    };
    assert_eq!(which, labelled());
    for command in ["wait", "restart", "signal HUP"] {
        let nothing = wrong(command);
        assert!(nothing.starts_with("which run? give its id, or --label (see "), "{nothing}");
        assert_eq!(wrong(&format!("{command} a --label app=my-app")), nothing);
    }
}

#[test]
fn small_commands_get_what_they_were_told() {
    let ids = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    let Ok(Call::Stop(stop)) = parse("stop a --no-wait b") else { panic!() };
    assert_eq!((stop.which, stop.wait), (Which::Ids(ids(&["a", "b"])), false));
    let Ok(Call::Stop(stop)) = parse("stop a --within 2500ms") else { panic!() };
    assert_eq!(stop.within, Some(Duration::from_millis(2500)));
    assert!(parse("kill a --within 1s").is_err(), "a kill takes no time");
    let Ok(Call::Kill(kill)) = parse("kill --group plan/research") else { panic!() };
    assert_eq!((kill.which, kill.wait), (Which::Group("plan/research".to_owned()), true));
    let Ok(Call::Signal { signal, which, json: false }) = parse("signal HUP a b") else { panic!() };
    assert_eq!((signal.number(), which), (1, Which::Ids(ids(&["a", "b"]))));
    let Ok(Call::Ps(ps)) = parse("ps -aq --group g") else { panic!() };
    assert_eq!((ps.all, ps.form, ps.group.as_deref()), (true, Form::Names, Some("g")));
    let Ok(Call::Attach(attach)) = parse("attach a") else { panic!() };
    assert_eq!((attach.id.as_str(), attach.view), ("a", false));
    assert_eq!(attach.keys.bytes(), [0x1c, 0x1c], "as the help says");
    let Ok(Call::Attach(attach)) = parse("attach --view a --detach-keys ctrl-p,q") else {
        panic!()
    };
    assert_eq!((attach.view, attach.keys.bytes()), (true, &[0x10, b'q'][..]));
    let Ok(Call::Attach(attach)) = parse("attach --detach-keys none a") else { panic!() };
    assert!(attach.keys.bytes().is_empty());
    let Ok(Call::Logs(logs)) = parse("logs -ft -n5 --since 10m --stream=err a") else { panic!() };
    assert_eq!((logs.follow, logs.form), (true, LogForm::Plain { times: true }));
    assert_eq!((logs.id.as_str(), logs.lines, logs.stream), ("a", Some(5), Some(Stream::Err)));
    assert_eq!(logs.since, Some(Since::Ago(Duration::from_mins(10))));
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
