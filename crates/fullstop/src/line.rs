//! The line to a keeper: one JSON value each way a line.

use crate::error::{Error, Result};
use fullstop_core::id::Id;
use fullstop_store::{Reply, Request, Store, StoreError};
use std::io;
use std::os::unix::net::UnixStream as StdStream;
use tokio::io::{AsyncBufReadExt, AsyncReadExt as _, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

/// No answer is this long: whoever says more is no keeper.
const LONGEST_LINE: u64 = 1 << 20;

#[derive(Debug)]
pub(crate) struct Line {
    stream: BufReader<UnixStream>,
    partial: Vec<u8>,
}

impl Line {
    pub fn new(stream: StdStream) -> Result<Line> {
        let fail = |error| Error::io("use the line to the keeper")(error);
        stream.set_nonblocking(true).map_err(fail)?;
        let stream = UnixStream::from_std(stream).map_err(fail)?;
        Ok(Line { stream: BufReader::new(stream), partial: Vec::new() })
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
        Ok(Line { stream: BufReader::new(stream), partial: Vec::new() })
    }

    pub async fn say(&mut self, request: &Request) -> io::Result<()> {
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        self.write(&line).await
    }

    pub async fn write(&mut self, line: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(line).await
    }

    /// The next thing said; nothing, if the keeper is gone. Being cut short loses
    /// nothing.
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
            // What a later keeper says beyond what we know is passed over.
            if let Ok(reply) = serde_json::from_slice(&line) {
                return Ok(Some(reply));
            }
        }
    }
}
