//! Somebody who speaks like a keeper, word by word, as a test wants it.

use fullstop::{Exit, Id, Reason, Record, Report, RunState, Spec, Stream, Timestamp};
use fullstop_protocol::{Frame, FrameDecoder, Hello, Reply, ReplyKind, Request};
use fullstop_store::format::SpecFile;
use fullstop_store::{RunDir, Store, world};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Nothing that is waited for here takes this long, even on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A run without a command: only its directory, its lock and its socket.
pub struct Keeper {
    dir: PathBuf,
    run: RunDir,
    listener: Option<UnixListener>,
}

impl Keeper {
    pub fn new() -> Keeper {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir =
            std::env::temp_dir().join(format!("fullstop-window-{}-{next}", std::process::id()));
        let store = Store::at(&dir).expect("a store");
        let id = Id::new(1_800_000_000_000, next);
        let run = store.create(&id).expect("a run");
        run.write_spec(&spec(&id)).expect("its spec");
        // No window opens on a process that is not known to be the keeper.
        let keeper = fullstop_cage::linux::identify(std::process::id().cast_signed());
        let record = Record { keeper, state: RunState::Running, ..spec(&id).first_record() };
        run.write_record(&record).expect("its record");
        let listener = UnixListener::from(run.listen().expect("a socket"));
        listener.set_nonblocking(false).expect("a socket that waits");
        Keeper { dir, run, listener: Some(listener) }
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn id(&self) -> &Id {
        self.run.id()
    }

    /// The next one who connects, and what it asks for. Nobody is answered yet.
    pub fn hear(&self) -> (Client, Request) {
        let listener = self.listener.as_ref().expect("it listens");
        wait_for(listener, "somebody who connects");
        let (stream, _) = listener.accept().expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let mut reader = BufReader::new(stream.try_clone().expect("a second descriptor"));
        let mut line = || {
            let mut line = String::new();
            reader.read_line(&mut line).expect("a line");
            line
        };
        serde_json::from_str::<Hello>(&line()).expect("a hello first");
        let request: Request = serde_json::from_str(&line()).expect("a request");
        assert!(reader.buffer().is_empty(), "nothing is said before the answer");
        let mut client = Client { stream, frames: FrameDecoder::default(), asked: request.id };
        client.write_line(&Hello::of_keeper());
        (client, request)
    }

    /// The next window, let in.
    pub fn window(&self) -> (Client, Request) {
        let (mut client, request) = self.hear();
        client.let_in(self);
        (client, request)
    }

    /// Writes into the log of the terminal, whose first file holds forty bytes.
    pub fn log(&self, bytes: &[u8]) {
        self.run.log(Stream::Tty, Some(80)).expect("a log").write(bytes, 1);
    }

    /// The keeper dies: nobody listens any more.
    pub fn die(&mut self) {
        self.listener = None;
    }

    /// The guard writes how the run ended.
    pub fn end(&mut self, report: &Report) {
        let (state, report) = (report.state.clone(), Some(report.clone()));
        let record = Record { state, report, ..spec(self.run.id()).first_record() };
        self.run.write_record(&record).expect("the last record");
        self.run.finish().expect("the end");
    }

    pub fn report(&self, reason: Reason, exit: Exit) -> Report {
        let json = serde_json::json!({
            "version": 2, "id": self.id(), "generation": 1, "command": ["sh"], "cage": "tree",
            "state": "ended", "reason": reason, "at": "2027-01-15T08:00:00.003Z", "exit": exit,
            "proof": "no-children", "started_at": "2027-01-15T08:00:00.000Z", "elapsed_ms": 3,
        });
        serde_json::from_value(json).expect("a report")
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// The keeper's end of a connection.
pub struct Client {
    stream: UnixStream,
    frames: FrameDecoder,
    /// The id of the request that is to be answered.
    asked: u64,
}

impl Client {
    pub fn let_in(&mut self, keeper: &Keeper) {
        let (run, at) = (keeper.id().clone(), Timestamp::now());
        self.answer(ReplyKind::Accepted { run, generation: 1, state: RunState::Running, at });
    }

    pub fn answer(&mut self, kind: ReplyKind) {
        self.write_line(&Reply { id: self.asked, kind });
    }

    fn write_line(&mut self, value: &impl serde::Serialize) {
        let mut line = serde_json::to_vec(value).expect("a line");
        line.push(b'\n');
        self.stream.write_all(&line).expect("to be heard");
    }

    pub fn say(&mut self, frame: &Frame) {
        self.write(&frame.encode());
    }

    pub fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("to be heard");
    }

    pub fn report(&mut self, report: &Report) {
        self.say(&Frame::Report(serde_json::to_vec(report).expect("a report")));
    }

    /// The next frame; nothing, once the window is gone.
    pub fn next(&mut self) -> Option<Frame> {
        let mut buffer = [0; 4096];
        loop {
            if let Some(frame) = self.frames.next() {
                return Some(frame.expect("a frame that can be read"));
            }
            match self.stream.read(&mut buffer) {
                Ok(0) => return None,
                Ok(length) => self.frames.feed(&buffer[..length]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => panic!("no word from the window: {error}"),
            }
        }
    }

    /// Everything typed until there are so many bytes.
    pub fn typed(&mut self, length: usize) -> Vec<u8> {
        let mut typed = Vec::new();
        while typed.len() < length {
            match self.next() {
                Some(Frame::Bytes(bytes)) => typed.extend(bytes),
                other => panic!("{other:?} after {typed:?}"),
            }
        }
        typed
    }
}

/// Waits until there is something to be read.
pub fn wait_for(fd: impl AsFd, what: &str) {
    let patience = Timespec::try_from(PATIENCE).expect("a time");
    let ready = poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&patience));
    assert_eq!(ready, Ok(1), "{what} did not come");
}

fn spec(id: &Id) -> SpecFile {
    let json = serde_json::json!({
        "version": 2, "id": id, "generation": 1, "spec": Spec::new(vec!["sh".into()]),
        "world": world::here(), "started_at": "2027-01-15T08:00:00.000Z",
    });
    serde_json::from_value(json).expect("a spec")
}
