use super::*;
use crate::blocking;
use crate::runs::Runs;
use fullstop_protocol::{
    Hello, Output, Record, Refusal, RefusalCode, Reply, ReplyKind, Request, ResizePolicy, RunState,
    Size, Stdin, Text, Timestamp,
};
use fullstop_store::format::{Format as _, SpecFile};
use fullstop_store::{RunDir, Store, world};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::task::Waker;
use std::thread::JoinHandle;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

const LIMIT: Duration = Duration::from_mins(1);

/// A run without processes, and a keeper that answers as it is told.
struct Played {
    path: PathBuf,
    dir: RunDir,
    run: Run,
}

/// What the keeper does about the next request that is of any weight.
#[derive(Clone)]
enum Turn {
    Answer(ReplyKind),
    /// It goes on only once the test says so.
    Later(ReplyKind),
    HangUp,
}

/// What it has heard, connection by connection.
type Heard = Vec<Vec<Request>>;

impl Played {
    fn new(name: &str) -> Played {
        Played::with(name, Stdin::Pipe, Output::Log)
    }

    fn with(name: &str, stdin: Stdin, output: Output) -> Played {
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

    /// Takes its turns, and leaves. Input without a byte, with which a connection begins, is
    /// accepted by itself, and no turn.
    fn keeper(&self, turns: Vec<Turn>) -> JoinHandle<Heard> {
        self.keeper_that_waits(turns, channel().1)
    }

    fn keeper_that_waits(&self, turns: Vec<Turn>, go_on: Receiver<()>) -> JoinHandle<Heard> {
        let listener = UnixListener::from(self.dir.listen().expect("listens"));
        listener.set_nonblocking(false).expect("waits");
        let accepted = self.accepted();
        std::thread::spawn(move || {
            let (mut turns, mut heard) = (turns.into_iter().peekable(), Vec::new());
            while turns.peek().is_some() {
                heard.push(serve(&listener, &mut turns, &accepted, &go_on));
            }
            heard
        })
    }

    fn accepted(&self) -> ReplyKind {
        let (run, at) = (self.run.id().clone(), Timestamp::now());
        ReplyKind::Accepted { run, generation: 2, state: RunState::Running, at }
    }

    fn accepts(&self, times: usize) -> Vec<Turn> {
        vec![Turn::Answer(self.accepted()); times]
    }
}

/// One connection, to its end or that of the turns.
fn serve(
    listener: &UnixListener,
    turns: &mut impl Iterator<Item = Turn>,
    accepted: &ReplyKind,
    go_on: &Receiver<()>,
) -> Vec<Request> {
    let limit = Timespec::try_from(LIMIT).expect("a time");
    let asked = poll(&mut [PollFd::new(listener, PollFlags::IN)], Some(&limit));
    assert_eq!(asked, Ok(1), "nobody has connected");
    let (mut stream, _) = listener.accept().expect("asked");
    stream.set_read_timeout(Some(LIMIT)).expect("a limit");
    let mut lines = BufReader::new(stream.try_clone().expect("a second descriptor")).lines();
    let mut heard = Vec::new();
    let hello = lines.next().expect("a line").expect("heard");
    serde_json::from_str::<Hello>(&hello).expect("a hello first");
    say(&mut stream, &Hello::of_keeper());
    loop {
        // An empty input is the beginning; the turns are for the rest.
        let Some(Ok(line)) = lines.next() else { return heard };
        assert!(line.len() < 1 << 16, "a line of {} bytes", line.len());
        let request: Request = serde_json::from_str(&line).expect("a request");
        let id = request.id;
        if matches!(&request.kind, RequestKind::Input { text } if text.0.is_empty()) {
            say(&mut stream, &Reply { id, kind: accepted.clone() });
            continue;
        }
        heard.push(request);
        match turns.next() {
            Some(Turn::Answer(kind)) => say(&mut stream, &Reply { id, kind }),
            Some(Turn::Later(kind)) => {
                go_on.recv().expect("the test goes on");
                say(&mut stream, &Reply { id, kind });
            }
            Some(Turn::HangUp) => return heard,
            // It says nothing more.
            None => {}
        }
    }
}

fn say(stream: &mut UnixStream, line: &impl serde::Serialize) {
    let line = serde_json::to_string(line).expect("json");
    // Whoever has left hears nothing.
    let _ = writeln!(stream, "{line}");
}

impl Drop for Played {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

fn refused(code: RefusalCode) -> Turn {
    // What a keeper says is for people, and no client decides by it.
    Turn::Answer(ReplyKind::Refused(Refusal::new(code, "as it is")))
}

fn full() -> Turn {
    refused(RefusalCode::InputFull)
}

/// The input of all requests of that kind, in their order.
fn input_of(requests: &[Request]) -> Vec<u8> {
    let mut all = Vec::new();
    for request in requests {
        assert_eq!(request.generation, Some(2), "it is meant for one generation");
        if let RequestKind::Input { text: Text(text) } = &request.kind {
            all.extend_from_slice(text.as_bytes());
        }
    }
    all
}

/// Ends the script of a keeper, and returns what it has heard.
fn end(input: Input, keeper: JoinHandle<Heard>) -> Heard {
    drop(input);
    keeper.join().expect("played")
}

#[test]
fn all_of_it_goes_in_pieces_on_one_connection() {
    let played = Played::new("input-pieces");
    let parts = [vec![1; 3 * PIECE], vec![0xff; PIECE + 1], "ü".repeat(PIECE).into_bytes()];
    let keeper = played.keeper(played.accepts(3 + 2 + 2));
    let mut input = played.run.input();
    blocking::wait(async {
        for part in &parts {
            input.send(part).await?;
        }
        Ok(())
    })
    .expect("sent");
    assert_eq!(input.sent(), parts.concat().len());
    let heard = end(input, keeper);
    assert_eq!(heard.len(), 1, "connections");
    assert_eq!(input_of(&heard[0]), parts.concat());
}

/// Each call in a runtime of its own, as the command line has it.
#[test]
fn a_connection_outlives_the_runtime_of_a_call() {
    let played = Played::new("input-runtimes");
    let keeper = played.keeper(played.accepts(3));
    let mut input = played.run.input();
    for _ in 0..3 {
        blocking::wait(input.send(b"x")).expect("sent");
    }
    assert_eq!(end(input, keeper).len(), 1, "connections");
}

/// It waits to be told, and asks for nothing meanwhile.
#[test]
fn a_keeper_that_is_full_is_waited_for() {
    let played = Played::new("input-late");
    let (go_on, wait) = channel();
    let turns = [vec![full(), Turn::Later(played.accepted())], played.accepts(1)].concat();
    let keeper = played.keeper_that_waits(turns, wait);
    let mut input = played.run.input().with_patience(LIMIT);
    blocking::wait(async {
        let mut send = Box::pin(input.send(b"hello"));
        let early = timeout(Duration::from_millis(100), send.as_mut()).await;
        assert!(early.is_err(), "nobody has said that there is room");
        go_on.send(()).expect("the keeper waits");
        send.await
    })
    .expect("sent");
    let heard = end(input, keeper).concat();
    let kinds: Vec<_> = heard.iter().map(|request| request.kind.clone()).collect();
    let hello = input_request(b"hello");
    assert_eq!(kinds, [hello.clone(), RequestKind::AwaitRoom { bytes: 5 }, hello]);
}

/// One of an earlier build.
#[test]
fn a_keeper_that_cannot_tell_of_room_is_asked_again() {
    let played = Played::new("input-earlier");
    let turns = [full(), refused(RefusalCode::UnknownRequest)];
    let keeper = played.keeper([&turns[..], &turns[..], &played.accepts(1)].concat());
    let mut input = played.run.input().with_patience(LIMIT);
    blocking::wait(input.send(b"x")).expect("sent");
    assert_eq!(end(input, keeper).concat().len(), 5);
}

#[test]
fn a_command_that_does_not_read_is_given_up_on() {
    let played = Played::new("input-never");
    let keeper = played.keeper([played.accepts(1), vec![full()]].concat());
    let mut input = played.run.input().with_patience(Duration::ZERO);
    let why = blocking::wait(input.send(&vec![b'x'; 2 * PIECE])).expect_err("unread");
    assert!(
        matches!(&why, Error::PartlySent { why, .. } if matches!(**why, Error::NotRead { .. })),
        "{why}"
    );
    assert!(why.to_string().ends_with("8192 of 16384 bytes were sent"), "{why}");
    assert_eq!(input.sent(), PIECE);
    let last = end(input, keeper);
    assert!(last.len() == 1 && last[0].len() <= 3, "{last:?}");
}

/// `fullstop send ID -` reads its input in parts, and `send ID text --enter` has two.
#[test]
fn what_arrived_is_counted_over_all_parts() {
    let played = Played::new("input-parts");
    let part = vec![b'x'; 2 * PIECE];
    let turns = [played.accepts(3), vec![refused(RefusalCode::StdinClosed)]].concat();
    let keeper = played.keeper(turns);
    let mut input = played.run.input();
    blocking::wait(input.send(&part)).expect("sent");
    let why = blocking::wait(input.send(&part)).expect_err("closed");
    assert_eq!(why.code(), "stdin-closed");
    assert!(why.to_string().ends_with("24576 of 32768 bytes were sent"), "{why}");
    assert_eq!(io::Error::from(why).kind(), io::ErrorKind::BrokenPipe);
    end(input, keeper);
}

#[test]
fn where_nothing_arrived_a_refusal_is_told_as_it_is() {
    let played = Played::new("input-refused");
    let keeper = played.keeper(vec![refused(RefusalCode::StdinClosed)]);
    let why = blocking::wait(played.run.send(b"x")).expect_err("refused");
    assert!(matches!(&why, Error::Refused(why) if why.message == "as it is"), "{why}");
    keeper.join().expect("played");
}

/// A keeper makes room by closing connections. What it has not answered it has not obeyed.
#[test]
fn what_was_not_answered_is_said_again() {
    let played = Played::new("input-again");
    let turns = [played.accepts(1), vec![Turn::HangUp], played.accepts(2)].concat();
    let keeper = played.keeper(turns);
    let mut input = played.run.input();
    blocking::wait(async {
        input.send(b"one").await?;
        input.send(b"two").await?;
        input.send(b"three").await
    })
    .expect("sent");
    assert_eq!(input.sent(), 11);
    let heard = end(input, keeper);
    let heard: Vec<_> = heard.iter().map(|requests| input_of(requests)).collect();
    assert_eq!(heard, [&b"onetwo"[..], b"twothree"]);
}

/// However early a call is dropped: what it has begun is sent once, and counted.
#[test]
fn a_dropped_call_sends_nothing_twice_and_is_counted() {
    let first = [vec![b'a'; PIECE], vec![b'b'; PIECE]].concat();
    for polls in 0.. {
        let played = Played::new(&format!("input-dropped-{polls}"));
        let keeper = played.keeper(played.accepts(4));
        let mut input = played.run.input();
        let done = blocking::wait(async {
            let done = polled(input.send(&first), polls).await;
            input.flush().await?;
            let sent = input.sent();
            assert!([0, PIECE, 2 * PIECE].contains(&sent), "{sent}");
            input.send(b"last").await?;
            assert_eq!(input.sent(), sent + 4);
            Ok(done)
        });
        let sent = input.sent() - 4;
        let heard = {
            drop(input);
            // Those turns that are left over.
            let rest = played.run.input();
            blocking::wait(drain(rest, 4 - sent / PIECE - 1)).expect("sent");
            input_of(&keeper.join().expect("played").concat())
        };
        let expected = [&first[..sent], b"last"].concat();
        assert_eq!(&heard[..expected.len()], expected, "after {polls} polls");
        if done.expect("sent") {
            assert_eq!(sent, first.len());
            assert!(polls > 2, "it was never cut short");
            return;
        }
    }
}

async fn drain(mut input: Input, turns: usize) -> Result<()> {
    for _ in 0..turns {
        input.send(b"-").await?;
    }
    Ok(())
}

/// Whether it was ready by its n-th poll; then it is dropped.
async fn polled(what: impl Future<Output = Result<()>>, polls: usize) -> bool {
    let (mut what, mut left) = (Box::pin(what), polls);
    poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(false);
        }
        left -= 1;
        what.as_mut().poll(context).map(|_| true)
    })
    .await
}

#[test]
fn as_a_stream_it_takes_a_piece_and_tells_when_all_has_arrived() {
    let played = Played::new("input-stream");
    let (go_on, wait) = channel();
    let turns = [vec![Turn::Later(played.accepted())], played.accepts(3)].concat();
    let keeper = played.keeper_that_waits(turns, wait);
    let mut input = played.run.input();
    blocking::wait(async {
        let all = vec![b'x'; 2 * PIECE + 1];
        assert_eq!(input.write(&all).await.expect("taken"), PIECE);
        assert_eq!(input.sent(), 0, "taken, and not arrived");
        let second = Pin::new(&mut input).poll_write(&mut Context::from_waker(Waker::noop()), b"x");
        assert!(second.is_pending(), "the first was not answered");
        go_on.send(()).expect("the keeper waits");
        input.write_all(&all[PIECE..]).await.expect("taken");
        AsyncWriteExt::flush(&mut input).await.expect("arrived");
        assert_eq!(input.sent(), all.len());
        input.shutdown().await.expect("closed");
        Ok(())
    })
    .expect("sent");
    let heard = end(input, keeper).concat();
    assert_eq!(input_of(&heard).len(), 2 * PIECE + 1);
    assert_eq!(heard.last().map(|last| &last.kind), Some(&RequestKind::CloseStdin));
}

#[test]
fn enter_is_what_the_reader_takes_for_it() {
    let own = Output::Terminal { size: Size::default(), fit: ResizePolicy::Latest };
    let keys = [Key::enter(), "C-d".parse().expect("a key")];
    for (name, stdin, output, bytes) in [
        ("input-keys-pipe", Stdin::Pipe, Output::Log, b"\n\x04"),
        ("input-keys-tty", Stdin::Null, own, b"\r\x04"),
    ] {
        let played = Played::with(name, stdin, output);
        let keeper = played.keeper(played.accepts(1));
        blocking::wait(played.run.send_keys(&keys, LIMIT)).expect("typed");
        assert_eq!(input_of(&keeper.join().expect("played").concat()), bytes, "{name}");
    }
}

#[test]
fn the_end_of_the_input_is_said_once() {
    let played = Played::new("input-close");
    let keeper = played.keeper(played.accepts(1));
    let mut input = played.run.input();
    blocking::wait(input.close()).expect("closed");
    blocking::wait(input.close()).expect("is closed");
    let asked = end(input, keeper).concat();
    assert!(matches!(&asked[..], [Request { kind: RequestKind::CloseStdin, .. }]), "{asked:?}");
}

#[test]
fn nothing_is_sent_where_nobody_reads() {
    let played = Played::with("input-none", Stdin::Null, Output::Log);
    let listener = UnixListener::from(played.dir.listen().expect("listens"));
    listener.set_nonblocking(false).expect("waits");
    let keeper = std::thread::spawn(move || {
        for _ in 0..3 {
            let (mut stream, _) = listener.accept().expect("asked");
            let mut lines = BufReader::new(stream.try_clone().expect("a second")).lines();
            let mut line = || lines.next().expect("a line").expect("heard");
            serde_json::from_str::<Hello>(&line()).expect("a hello first");
            let Request { id, .. } = serde_json::from_str(&line()).expect("a request");
            let refusal = Refusal::new(RefusalCode::NoStdin, "its stdin is not ours to write");
            say(&mut stream, &Hello::of_keeper());
            say(&mut stream, &Reply { id, kind: ReplyKind::Refused(refusal) });
        }
    });
    let run = &played.run;
    for why in [
        blocking::wait(run.send(b"x")).expect_err("it does not read"),
        blocking::wait(run.send(b"")).expect_err("nor would it"),
        blocking::wait(run.close_stdin()).expect_err("there is no end to it"),
    ] {
        assert!(matches!(why, Error::NoInput { .. }), "{why}");
    }
    keeper.join().expect("played");
}
