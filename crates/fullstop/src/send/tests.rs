use super::*;
use crate::blocking;
use crate::runs::Runs;
use fullstop_protocol::{Fit, Output, Refusal, Size, Text};
use fullstop_protocol::{Hello, Record, Reply, ReplyKind, Request, RunState, Timestamp};
use fullstop_store::format::{Format as _, SpecFile};
use fullstop_store::{RunDir, Store, world};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::thread::JoinHandle;

const LIMIT: Duration = Duration::from_secs(30);

/// A run without processes, and a keeper that answers as it is told.
struct Played {
    path: PathBuf,
    dir: RunDir,
    run: Run,
}

impl Played {
    fn new(name: &str, (stdin, output): (Stdin, Output)) -> Played {
        let path = std::env::temp_dir().join(format!("fullstop-{name}-{}", std::process::id()));
        let store = Store::at(&path).expect("a store");
        let text = include_str!("../../../store/tests/fixtures/v1/spec.json");
        let mut file = SpecFile::parse(1, text.as_bytes()).expect("a spec");
        (file.spec.stdin, file.spec.output) = (stdin, output);
        let dir = store.create(&file.id).expect("a run");
        let run = Run::new(Runs::at(&path).expect("runs"), file.id.clone(), Some(file.generation));
        dir.write_spec(&file).expect("written");
        // Nothing is sent to a process that is not known to be the keeper.
        let keeper = fullstop_cage::linux::identify(std::process::id().cast_signed());
        let record = Record { keeper, world: world::here().clone(), ..file.first_record() };
        dir.write_record(&Record { state: RunState::Running, ..record }).expect("written");
        Played { path, dir, run }
    }

    /// Answers so many orders, and returns what was heard.
    fn keeper(&self, answers: Vec<ReplyKind>) -> JoinHandle<Vec<Request>> {
        let listener = UnixListener::from(self.dir.listen().expect("listens"));
        listener.set_nonblocking(false).expect("waits");
        std::thread::spawn(move || {
            let answer = |kind| {
                let (mut stream, _) = listener.accept().expect("asked");
                let mut reader = BufReader::new(stream.try_clone().expect("a second descriptor"));
                let mut line = || {
                    let mut line = String::new();
                    reader.read_line(&mut line).expect("heard");
                    assert!(line.len() <= 1 << 16, "a line of {} bytes", line.len());
                    line
                };
                serde_json::from_str::<Hello>(&line()).expect("a hello first");
                let request: Request = serde_json::from_str(&line()).expect("a request");
                let lines = [
                    serde_json::to_string(&Hello::of_keeper()).expect("json"),
                    serde_json::to_string(&Reply { id: request.id, kind }).expect("json"),
                ];
                writeln!(stream, "{}", lines.join("\n")).expect("answered");
                request
            };
            answers.into_iter().map(answer).collect()
        })
    }

    fn accepted(&self) -> ReplyKind {
        let (run, at) = (self.run.id().clone(), Timestamp::now());
        ReplyKind::Accepted { run, generation: 2, state: RunState::Running, at }
    }
}

impl Drop for Played {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

fn piped() -> (Stdin, Output) {
    (Stdin::Pipe, Output::Log)
}

fn refused(code: RefusalCode, message: &str) -> ReplyKind {
    ReplyKind::Refused(Refusal::new(code, message))
}

/// What a keeper says is for people, and no client decides by it.
fn full() -> ReplyKind {
    refused(RefusalCode::InputFull, "later, perhaps")
}

fn sent(orders: Vec<Request>) -> Vec<u8> {
    let text = |order| match order {
        Request { generation: Some(2), kind: RequestKind::Input { text: Text(text) }, .. } => {
            text.as_bytes().to_vec()
        }
        other => panic!("{other:?}"),
    };
    orders.into_iter().flat_map(text).collect()
}

#[test]
fn a_long_text_arrives_in_pieces_that_a_keeper_hears() {
    let played = Played::new("send-pieces", piped());
    for input in [vec![1; 3 * PIECE], vec![0xff; PIECE + 1], "ü".repeat(PIECE).into_bytes()] {
        let pieces = input.len().div_ceil(PIECE);
        let keeper = played.keeper(vec![played.accepted(); pieces]);
        blocking::wait(played.run.send(&input)).expect("sent");
        assert_eq!(sent(keeper.join().expect("played")), input);
    }
}

#[test]
fn a_command_that_reads_late_is_waited_for() {
    let played = Played::new("send-late", piped());
    let keeper = played.keeper(vec![full(), full(), played.accepted()]);
    blocking::wait(played.run.send_within(b"hello", LIMIT)).expect("sent");
    assert_eq!(sent(keeper.join().expect("played")), b"hello".repeat(3));
}

#[test]
fn a_command_that_does_not_read_is_given_up_on() {
    let played = Played::new("send-never", piped());
    let keeper = played.keeper(vec![played.accepted(), full()]);
    let input = vec![b'x'; 2 * PIECE];
    let why = blocking::wait(played.run.send_within(&input, Duration::ZERO)).expect_err("unread");
    assert!(
        matches!(&why, Error::PartlySent { why, .. } if matches!(**why, Error::NotRead { .. })),
        "{why}"
    );
    assert!(why.to_string().ends_with("8192 of 16384 bytes were sent"), "{why}");
    keeper.join().expect("played");
}

/// `fullstop send ID -` reads its input in parts, and `send ID text --enter` has two.
#[test]
fn what_arrived_is_counted_over_all_parts() {
    let played = Played::new("send-parts", piped());
    let part = vec![b'x'; 2 * PIECE];
    let accepted = vec![played.accepted(); 3];
    let keeper = played.keeper([accepted, vec![full()]].concat());
    let mut sender = Sender::new(&played.run, Duration::ZERO);
    blocking::wait(sender.send(&part)).expect("sent");
    let why = blocking::wait(sender.send(&part)).expect_err("unread");
    assert!(why.to_string().ends_with("24576 of 32768 bytes were sent"), "{why}");
    keeper.join().expect("played");
}

#[test]
fn what_arrived_before_a_refusal_is_told_too() {
    let played = Played::new("send-cut", piped());
    let keeper = played
        .keeper(vec![played.accepted(), refused(RefusalCode::StdinClosed, "its stdin is closed")]);
    let why = blocking::wait(played.run.send(&vec![b'x'; PIECE + 1])).expect_err("refused");
    assert_eq!(why.code(), "stdin-closed");
    assert_eq!(why.to_string(), "its stdin is closed; 8192 of 8193 bytes were sent");
    keeper.join().expect("played");
}

#[test]
fn another_refusal_is_final() {
    let played = Played::new("send-refused", piped());
    let keeper = played.keeper(vec![refused(RefusalCode::StdinClosed, "its stdin was closed")]);
    let why = blocking::wait(played.run.send_within(b"x", LIMIT)).expect_err("refused");
    assert!(matches!(&why, Error::Refused(why) if why.message == "its stdin was closed"), "{why}");
    keeper.join().expect("played");
}

#[test]
fn enter_is_what_the_reader_takes_for_it() {
    let own = Output::Terminal { size: Size::default(), fit: Fit::Latest };
    let terminal = (Stdin::Null, own);
    let keys = [Key::enter(), "C-d".parse().expect("a key")];
    for (name, streams, bytes) in
        [("send-keys-pipe", piped(), b"\n\x04"), ("send-keys-tty", terminal, b"\r\x04")]
    {
        let played = Played::new(name, streams);
        let keeper = played.keeper(vec![played.accepted()]);
        blocking::wait(played.run.send_keys(&keys, LIMIT)).expect("typed");
        assert_eq!(sent(keeper.join().expect("played")), bytes, "{name}");
    }
}

#[test]
fn the_end_of_the_input_is_an_order_of_its_own() {
    let played = Played::new("send-close", piped());
    let keeper = played.keeper(vec![played.accepted()]);
    blocking::wait(played.run.close_stdin()).expect("closed");
    let asked = keeper.join().expect("played");
    assert!(matches!(&asked[..], [Request { kind: RequestKind::CloseStdin, .. }]), "{asked:?}");
}

#[test]
fn nothing_is_sent_where_nobody_reads() {
    for (name, stdin) in [("send-null", Stdin::Null), ("send-inherit", Stdin::Inherit)] {
        let played = Played::new(name, (stdin, Output::Log));
        let why = blocking::wait(played.run.send(b"x")).expect_err("it does not read");
        assert!(matches!(why, Error::NoInput { .. }), "{why}");
        let why = blocking::wait(played.run.close_stdin()).expect_err("it does not read");
        assert!(matches!(why, Error::NoInput { .. }), "{why}");
    }
}
