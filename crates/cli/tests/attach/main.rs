//! `fullstop attach` on a real terminal, against somebody who speaks like a keeper.

#[path = "../../../fullstop/tests/window/keeper.rs"]
mod keeper;
mod tty;

use fullstop::{Exit, Reason, Signal, Size};
use fullstop_protocol::{Frame, Refusal, RefusalCode, ReplyKind, Request, RequestKind};
use keeper::{Client, Keeper};
use std::process::{Command, Stdio};
use tty::{Started, Tty};

fn screen(text: &str) -> Frame {
    Frame::Screen { offset: 0, bytes: text.as_bytes().to_vec() }
}

/// A window that shows its first screen.
fn attached(keeper: &Keeper, options: &[&str]) -> (Tty, Started, Client, Request) {
    let mut tty = Tty::new();
    let id = keeper.id().to_string();
    let words = [&["attach"], options, &[&id]].concat();
    let started = tty.start(keeper.dir(), &words);
    let (mut client, request) = keeper.window();
    client.say(&screen("ready"));
    tty.expect("ready");
    (tty, started, client, request)
}

const FOUND: &str = "the terminal is as it was found";

#[test]
fn keys_go_in_bytes_come_out_and_the_keys_to_leave_leave() {
    let keeper = Keeper::new();
    let before = Tty::new().modes();
    let (mut tty, mut started, mut client, request) = attached(&keeper, &[]);
    let size = Some(Size { rows: 24, cols: 80 });
    assert_eq!(request.kind, RequestKind::Attach { size, view: false, owner: false, sizes: true });
    assert_eq!(request.generation, Some(1));
    assert!(tty.is_raw());
    tty.type_bytes(b"ls\r\x03\x1c");
    assert_eq!(client.typed(4), b"ls\r\x03", "Ctrl-C is a key like any other");
    tty.type_bytes(b"x");
    assert_eq!(client.typed(2), b"\x1cx");
    client.say(&Frame::Bytes(b"one\r\ntwo".to_vec()));
    tty.expect("one\r\ntwo");
    tty.resize(30, 100);
    started.send(Signal::WINCH);
    assert_eq!(client.next(), Some(Frame::Resize(Size { rows: 30, cols: 100 })));
    tty.type_bytes(b"bye\x1c\x1cnot this");
    assert_eq!(client.typed(3), b"bye");
    assert_eq!(client.next(), None, "the window is gone");
    assert_eq!(started.code(), Some(0));
    tty.expect(&format!("detached; fullstop attach {}", keeper.id()));
    assert_eq!(tty.modes().local_modes, before.local_modes, "{FOUND}");
    assert_eq!(tty.modes().output_modes, before.output_modes, "{FOUND}");
}

#[test]
fn a_full_screen_is_left_and_nothing_else_is() {
    for (shown, full) in [("\x1b[?1049hthere", true), ("\x1b[?1049h\x1b[?1049lthere", false)] {
        let keeper = Keeper::new();
        let (mut tty, mut started, mut client, _) = attached(&keeper, &[]);
        client.say(&Frame::Bytes(shown.into()));
        tty.expect(shown);
        tty.type_bytes(b"\x1c\x1c");
        assert_eq!(started.code(), Some(0));
        let last = tty.expect(&format!("detached; fullstop attach {}", keeper.id()));
        let left = last.windows(8).any(|part| part == b"\x1b[?1049l");
        assert_eq!(left, full, "{:?}", last.escape_ascii().to_string());
    }
}

#[test]
fn a_key_held_back_is_passed_on_after_a_while() {
    let keeper = Keeper::new();
    let (tty, _started, mut client, _) = attached(&keeper, &["--detach-keys", "ctrl-p,ctrl-q"]);
    tty.type_bytes(b"\x1c\x1c\x10");
    assert_eq!(client.typed(3), b"\x1c\x1c\x10");
}

#[test]
fn it_ends_with_the_status_of_the_run() {
    for (reason, exit, status) in [
        (Reason::Exited, Exit::Code(3), 3),
        (Reason::Stopped, Exit::Signal(Signal::TERM), 143),
        (Reason::OverallTimeout, Exit::Signal(Signal::TERM), 124),
    ] {
        let mut keeper = Keeper::new();
        let (mut tty, mut started, mut client, _) = attached(&keeper, &[]);
        client.say(&Frame::Bytes(b"last words".to_vec()));
        let report = keeper.report(reason, exit);
        client.report(&report);
        keeper.end(&report);
        tty.expect("last words");
        assert_eq!(started.code(), Some(status), "{reason}");
        assert!(!tty.is_raw(), "{FOUND}");
    }
}

#[test]
fn after_the_keepers_death_the_rest_of_the_log_is_shown() {
    let mut keeper = Keeper::new();
    let (mut tty, mut started, mut client, _) = attached(&keeper, &[]);
    client.say(&Frame::Bytes(b"abc".to_vec()));
    tty.expect("abc");
    keeper.log(b"abcdef");
    keeper.die();
    drop(client);
    keeper.end(&keeper.report(Reason::KeeperDied, Exit::Code(9)));
    let rest = tty.expect("keeper-died");
    assert!(rest.starts_with(b"def"), "{}", String::from_utf8_lossy(&rest));
    assert_eq!(started.code(), Some(9));
    assert!(!tty.is_raw(), "{FOUND}");
}

#[test]
fn a_signal_ends_the_window_and_not_the_terminal() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT] {
        let keeper = Keeper::new();
        let (tty, mut started, mut client, _) = attached(&keeper, &[]);
        started.send(signal);
        assert_eq!(client.next(), None, "nothing is said to the run");
        assert_eq!(started.signal(), Some(signal.number()));
        assert!(!tty.is_raw(), "{FOUND}: {signal}");
    }
}

#[test]
fn a_stop_gives_the_terminal_back_and_a_continue_takes_it_again() {
    let keeper = Keeper::new();
    let (mut tty, started, mut client, _) = attached(&keeper, &[]);
    started.send(Signal::TSTP);
    started.stopped();
    assert!(!tty.is_raw(), "{FOUND}");
    tty.resize(40, 90);
    started.send(Signal::CONT);
    let (mut again, request) = keeper.window();
    assert_eq!(client.next(), None, "the first one is gone");
    let size = Some(Size { rows: 40, cols: 90 });
    assert!(matches!(request.kind, RequestKind::Attach { size: asked, .. } if asked == size));
    again.say(&screen("drawn anew"));
    tty.expect("drawn anew");
    assert!(tty.is_raw());
    tty.type_bytes(b"x");
    while let Some(frame) = again.next() {
        if frame == Frame::Bytes(b"x".to_vec()) {
            return;
        }
    }
    panic!("what is typed arrives");
}

#[test]
fn a_stop_that_nobody_hears_is_noticed_at_the_continue() {
    let keeper = Keeper::new();
    let found = Tty::new().modes();
    let (mut tty, started, client, _) = attached(&keeper, &[]);
    started.send(Signal::STOP);
    started.stopped();
    // As a shell does that has its terminal back.
    tty.set(&found);
    started.send(Signal::CONT);
    let (mut again, _) = keeper.window();
    drop(client);
    again.say(&screen("drawn anew"));
    tty.expect("drawn anew");
    assert!(tty.is_raw());
}

#[test]
fn who_only_looks_types_nothing_and_leaves_with_ctrl_c() {
    let keeper = Keeper::new();
    let (tty, mut started, mut client, request) = attached(&keeper, &["--view"]);
    assert!(matches!(request.kind, RequestKind::Attach { view: true, size: None, .. }));
    tty.type_bytes(b"rm -rf\r");
    tty.resize(10, 10);
    started.send(Signal::WINCH);
    tty.type_bytes(b"\x03");
    assert_eq!(client.next(), None, "nothing was said before it left");
    assert_eq!(started.code(), Some(0));
}

#[test]
fn a_slow_screen_does_not_hold_up_the_keys() {
    let keeper = Keeper::new();
    let (mut tty, _started, mut client, _) = attached(&keeper, &[]);
    // More than the window takes before some of it was shown, and nobody looks.
    let flood = Frame::Bytes(vec![b'.'; 300 * 1024]);
    client.say(&flood);
    tty.type_bytes(b"stop");
    assert_eq!(client.typed(4), b"stop");
    client.say(&Frame::Bytes(b"flooded".to_vec()));
    let shown = tty.expect("flooded");
    assert_eq!(shown.split(|byte| *byte == b'.').count() - 1, 300 * 1024, "all of it");
}

#[test]
fn without_a_terminal_it_says_so() {
    let keeper = Keeper::new();
    let id = keeper.id().to_string();
    for words in [&["attach", &id][..], &["attach", "--view", &id]] {
        let output = Command::new(env!("CARGO_BIN_EXE_fullstop"))
            .args(words)
            .env("FULLSTOP_DIR", keeper.dir())
            .stdin(Stdio::null())
            .output()
            .expect("fullstop");
        assert_eq!(output.status.code(), Some(125));
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(why.starts_with("fullstop: a window needs a terminal"), "{why}");
    }
}

#[test]
fn a_run_without_a_terminal_refuses() {
    let keeper = Keeper::new();
    let mut tty = Tty::new();
    let mut started = tty.start(keeper.dir(), &["attach", keeper.id().as_str()]);
    let (mut client, _) = keeper.hear();
    let refusal = Refusal::new(RefusalCode::NoTerminal, "this run has no terminal");
    client.answer(ReplyKind::Refused(refusal));
    tty.expect("fullstop: this run has no terminal");
    assert_eq!(started.code(), Some(125));
    assert!(!tty.is_raw());
}
