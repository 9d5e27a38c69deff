//! Somebody who speaks like a keeper, word by word, as a test wants it.

use fullstop::{Exit, Id, Phase, Reason, RecordFile, Report, Spec, Stream, World};
use fullstop_store::format::SpecFile;
use fullstop_store::{Frame, Frames, Reply, Request, RunDir, Store};
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
        run.write_record(&RecordFile { state: Phase::Running, ..RecordFile::first(spec(&id)) })
            .expect("its record");
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
        let mut line = String::new();
        reader.read_line(&mut line).expect("an order");
        let request = serde_json::from_str(&line).expect("an order that can be read");
        assert!(reader.buffer().is_empty(), "nothing is said before the answer");
        (Client { stream, frames: Frames::default() }, request)
    }

    /// The next window, let in.
    pub fn window(&self) -> (Client, Request) {
        let (mut client, request) = self.hear();
        let (id, generation) = (self.id().clone(), 1);
        client.answer(&Reply::Accepted { id, generation, phase: Phase::Running });
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
        let state = Phase::Ended { reason: report.reason };
        let report = Some(report.clone());
        let record = RecordFile { state, report, ..RecordFile::first(spec(self.run.id())) };
        self.run.write_record(&record).expect("the last record");
        self.run.finish().expect("the end");
    }

    pub fn report(&self, reason: Reason, exit: Exit) -> Report {
        let json = serde_json::json!({
            "version": 1, "id": self.id(), "generation": 1, "command": ["sh"], "cage": "tree",
            "state": "ended", "reason": reason, "exit": exit, "steps": [], "leftovers": [],
            "survivors": [], "released": [], "proof": "no-children",
            "started_at": 1_800_000_000_000_u64, "elapsed_ms": 3,
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
    frames: Frames,
}

impl Client {
    pub fn answer(&mut self, reply: &Reply) {
        let mut line = serde_json::to_vec(reply).expect("an answer");
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
        "world": World::here(), "started_at": 1_800_000_000_000_u64,
    });
    serde_json::from_value(json).expect("a spec")
}
