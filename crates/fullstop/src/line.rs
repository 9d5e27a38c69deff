//! The line to a keeper: one JSON object each way a line.

use crate::error::{Error, Result};
use crate::run::Run;
use fullstop_cage::linux::{identify, peer};
use fullstop_core::id::Id;
use fullstop_keeper::sweep::shows_title_of_keeper;
use fullstop_protocol::{Hello, RECORD_VERSION, Record, Reply, ReplyKind, Request, RequestKind};
use fullstop_store::{Store, StoreError, world};
use rustix::io::Errno;
use rustix::net::sockopt::{set_socket_send_buffer_size, socket_send_buffer_size};
use rustix::net::{SendFlags, send};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream as StdStream;
use tokio::io::{AsyncBufReadExt, AsyncReadExt as _, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

/// No answer of a keeper is this long: a process that says more is no keeper.
const LONGEST_LINE: u64 = 1 << 20;

#[derive(Debug)]
pub(crate) struct Line {
    stream: BufReader<UnixStream>,
    partial: Vec<u8>,
    is_greeted: bool,
    /// The id of the last request.
    asked: u64,
}

impl Line {
    /// To a keeper that this process has started, and that needs no hello.
    pub fn new(stream: StdStream) -> Result<Line> {
        let fail = |error| Error::io("use the line to the keeper")(error);
        stream.set_nonblocking(true).map_err(fail)?;
        let stream = UnixStream::from_std(stream).map_err(fail)?;
        Ok(Line { stream: BufReader::new(stream), partial: Vec::new(), is_greeted: true, asked: 0 })
    }

    /// The bare stream, to be held: it needs no runtime to live.
    pub fn into_std(self) -> io::Result<StdStream> {
        self.stream.into_inner().into_std()
    }

    /// The bare stream, and what was read of it beyond the last line.
    pub fn into_parts(self) -> io::Result<(StdStream, Vec<u8>)> {
        let beyond = [&self.partial, self.stream.buffer()].concat();
        Ok((self.stream.into_inner().into_std()?, beyond))
    }

    /// To a run's keeper, if it listens.
    pub async fn connect(store: &Store, id: &Id) -> io::Result<Line> {
        let (_held, address) = store.socket(id).map_err(|error| match error {
            StoreError::Io { source, .. } => source,
            other => io::Error::other(other),
        })?;
        let stream = UnixStream::connect(address).await?;
        if !is_keeper(&stream, store, id) {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        Ok(Line {
            stream: BufReader::new(stream),
            partial: Vec::new(),
            is_greeted: false,
            asked: 0,
        })
    }

    /// Asks the keeper of this run, and returns the answer; nothing, if the keeper is gone.
    pub async fn ask(&mut self, run: &Run, kind: &RequestKind) -> io::Result<Option<ReplyKind>> {
        self.asked += 1;
        let request = request(self.asked, run, kind.clone());
        let mut text = Vec::new();
        if !std::mem::replace(&mut self.is_greeted, true) {
            add_line(&mut text, &Hello::of_client())?;
        }
        add_line(&mut text, &request)?;
        self.write(&text).await?;
        loop {
            match self.hear().await? {
                None => return Ok(None),
                // A keeper that cannot read a line does not know its id.
                Some(Reply { id, kind }) if id == self.asked || id == 0 => return Ok(Some(kind)),
                Some(_) => {}
            }
        }
    }

    /// Says this if it can be said without waiting, for there will be no other time.
    pub fn say_last(&self, by: Option<&str>, kind: RequestKind) {
        say_at_once(self.stream.get_ref(), by, kind);
    }

    /// The next request, as it is written, without asking it.
    pub fn next_request(&self, run: &Run, kind: RequestKind) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        add_line(&mut text, &request(self.asked + 1, run, kind))?;
        Ok(text)
    }

    pub async fn write(&mut self, text: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(text).await
    }

    /// The next answer; nothing, if the keeper is gone. Being cut short loses nothing.
    pub async fn hear(&mut self) -> io::Result<Option<Reply>> {
        loop {
            let room = LONGEST_LINE.saturating_sub(self.partial.len() as u64);
            let mut short = (&mut self.stream).take(room);
            let read = short.read_until(b'\n', &mut self.partial).await?;
            if self.partial.last() != Some(&b'\n') {
                if read == 0 {
                    return Ok(None);
                }
                continue;
            }
            let line = std::mem::take(&mut self.partial);
            // Its hello, and what a later keeper says beyond what we know, is passed over.
            if let Ok(reply) = serde_json::from_slice(&line) {
                return Ok(Some(reply));
            }
        }
    }
}

/// Says this to a keeper, without waiting for anything: a keeper that is gone does not hear it.
/// There will be no other time, so that room is made where what was said before fills the line.
pub(crate) fn say_at_once(stream: impl AsFd, by: Option<&str>, kind: RequestKind) {
    let request = Request { id: 0, generation: None, by: by.map(str::to_owned), kind };
    let mut text = Vec::new();
    if add_line(&mut text, &request).is_err() {
        return;
    }
    let say = || send(&stream, &text, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
    if say() == Err(Errno::AGAIN) && double_room(&stream).is_ok() {
        let _ = say();
    }
}

/// The kernel doubles what it is told (socket(7)), so that the size as it is asks for twice that.
fn double_room(stream: impl AsFd) -> rustix::io::Result<()> {
    let room = socket_send_buffer_size(&stream)?;
    set_socket_send_buffer_size(stream, room)
}

fn request(id: u64, run: &Run, kind: RequestKind) -> Request {
    Request { id, generation: run.generation(), by: run.runs().by().map(str::to_owned), kind }
}

fn add_line(text: &mut Vec<u8>, value: &impl serde::Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *text, value)?;
    text.push(b'\n');
    Ok(())
}

/// Whether the keeper that the record names is at the other end, and speaks this wire. A member
/// of the run can put a socket of its own in the place, or that of another run. Where the record
/// names no keeper, or cannot be read, the process has to show the title of this run's keeper.
fn is_keeper(stream: &UnixStream, store: &Store, id: &Id) -> bool {
    let Some(peer) = peer(stream) else { return false };
    match store.last_record(id) {
        // A keeper of version 1 takes SIGTERM for a request to stop, and no other.
        Ok(record) if record.version < RECORD_VERSION => false,
        Ok(Record { keeper: Some(keeper), world, .. }) => {
            identify(peer.pid).is_some_and(|found| match keeper.inode {
                // It has another pid in its own namespace, and the same inode in pidfs.
                Some(inode) if !world::is_here(&world) => found.inode == Some(inode),
                _ => found == keeper,
            })
        }
        _ => shows_title_of_keeper(store, id, peer.pid),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead as _, BufReader, Write as _};

    /// As behind a start with a long environment, before its keeper has read any of it.
    #[test]
    fn what_is_said_last_has_room_behind_a_line_that_is_full() {
        let (mut ours, theirs) = StdStream::pair().expect("a pair");
        ours.set_nonblocking(true).expect("set");
        let mut start = vec![b'x'; 1 << 10];
        start.push(b'\n');
        while let Ok(written) = ours.write(&start) {
            assert_eq!(written, start.len(), "half a line");
        }
        say_at_once(&ours, Some("ann"), RequestKind::Leave);
        drop(ours);
        let last = BufReader::new(theirs).lines().last().expect("a line").expect("read");
        let request: Request = serde_json::from_str(&last).expect("a request");
        assert_eq!((request.kind, request.by.as_deref()), (RequestKind::Leave, Some("ann")));
    }
}
