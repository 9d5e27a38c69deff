//! Writing a log, as fast as the kernel can move bytes, and never waiting.

use super::index::Index;
use super::parts::{self, Part, data_name, index_name};
use crate::error::{Result, StoreError};
use crate::files::Dir;
use crate::rundir::{RunDir, is_at};
use fullstop_core::words::Stream;
use fullstop_protocol::CapturedStream;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::{Errno, ioctl_fionread};
use rustix::pipe::{SpliceFlags, splice};
use std::fs::File;
use std::os::fd::{AsRawFd as _, BorrowedFd, RawFd};

/// Below this a cap could not be divided.
const LEAST: u64 = 8;
/// More than a record, its successor and some events take.
const ROOM: u64 = 64 * 1024;
/// How much is read at once where the kernel cannot move it.
const SPARE: usize = 64 * 1024;

/// What became of a look into a pipe.
///
/// ```
/// use fullstop_store::Took;
///
/// assert_ne!(Took::Nothing, Took::End);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Took {
    Bytes(usize),
    /// There is nothing in it now.
    Nothing,
    /// Nobody can write to it any more.
    End,
}

/// How a log is divided by its cap.
#[derive(Clone, Copy, Debug)]
struct Shape {
    /// The head is never cut.
    head: u64,
    /// A part of the tail; the oldest goes when there are too many.
    part: u64,
    /// All parts of the tail.
    tail: u64,
}

impl Shape {
    fn of(max: Option<u64>) -> Shape {
        let Some(max) = max.map(|max| max.max(LEAST)) else {
            return Shape { head: u64::MAX, part: u64::MAX, tail: u64::MAX };
        };
        let head = max / 2;
        Shape { head, part: max / 8, tail: max - head }
    }
}

/// The log of one stream, as its keeper writes it.
///
/// ```
/// use fullstop_core::{id::Id, words::Stream};
/// use fullstop_store::Store;
///
/// let dir = std::env::temp_dir().join(format!("fullstop-doc-log-{}", std::process::id()));
/// let store = Store::at(&dir)?;
/// let run = store.create(&Id::new(1_800_000_000_000, 7))?;
/// let mut log = run.log(Stream::Out, None)?;
/// log.write(b"hello\n", 1_800_000_000_000_000);
/// assert_eq!((log.offset(), log.captured().bytes), (6, 6));
/// # let _ = std::fs::remove_dir_all(&dir);
/// # Ok::<(), fullstop_store::StoreError>(())
/// ```
#[derive(Debug)]
pub struct Log {
    dir: Dir,
    stream: Stream,
    shape: Shape,
    /// What there is on disk, in order; the last one is written to.
    parts: Vec<Part>,
    data: File,
    index: Index,
    /// Where the log ends in its stream.
    end: u64,
    /// Where this generation begins.
    born: u64,
    /// What came after the log had failed.
    lost: u64,
    failure: Option<String>,
    is_told: bool,
    can_splice: bool,
    /// Room for bytes that the kernel cannot move; none is taken before it is needed.
    spare: Vec<u8>,
}

impl RunDir {
    /// The log of a stream: a new one, or behind what earlier generations wrote.
    /// With `max` it keeps its head and its tail, and never more than that.
    pub fn log(&self, stream: Stream, max: Option<u64>) -> Result<Log> {
        let dir = self.dir().try_clone()?;
        let (parts, data, index) = open(&dir, stream)?;
        let born = parts.last().map_or(0, Part::end);
        Ok(Log {
            dir,
            stream,
            shape: Shape::of(max),
            parts,
            data,
            index,
            end: born,
            born,
            lost: 0,
            failure: None,
            is_told: false,
            can_splice: true,
            spare: Vec::new(),
        })
    }

    /// The log as a plain file, for a command that writes to it itself.
    pub fn log_file(&self, stream: Stream) -> Result<File> {
        let last = parts::list(self.dir(), stream)?.pop();
        self.append_to(&data_name(stream, last.map_or(0, |part| part.start)))
    }
}

/// The last file of a log, and its index; the first one, if there is none.
fn open(dir: &Dir, stream: Stream) -> Result<(Vec<Part>, File, Index)> {
    let mut parts = parts::list(dir, stream)?;
    let start = parts.last().map_or(0, |part| part.start);
    let data = open_part(dir, stream, start)?;
    match parts.last_mut() {
        // The file that is held is asked, not its name.
        Some(last) => {
            let why = |error| StoreError::io("look at", &dir.path, error);
            last.len = data.metadata().map_err(why)?.len();
        }
        None => parts.push(Part { start: 0, len: 0 }),
    }
    let end = parts.last().map_or(0, Part::end);
    Ok((parts, data, Index::open(dir, &index_name(stream, start), end)))
}

/// Not with O_APPEND, which splice(2) refuses.
fn open_part(dir: &Dir, stream: Stream, start: u64) -> Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW;
    dir.open_file(&data_name(stream, start), flags)
}

impl Log {
    /// Moves what waits in a pipe into the log, at most so many bytes, and does not wait
    /// for any; `at` is now, in microseconds since 1970. Once the log has failed they
    /// are thrown away, so that nobody who writes has to wait for a reader.
    pub fn take(&mut self, pipe: BorrowedFd<'_>, most: usize, at: u64) -> Took {
        if most == 0 {
            return Took::Nothing;
        }
        loop {
            let taken = if self.failure.is_some() {
                self.throw_away(pipe, most)
            } else {
                self.move_in(pipe, most, at)
            };
            match taken {
                Ok(0) => return Took::End,
                Ok(count) => return Took::Bytes(count),
                Err(Refused::Pipe(Errno::INTR) | Refused::Log) => {}
                Err(Refused::Pipe(Errno::AGAIN)) => return Took::Nothing,
                // It cannot be read any more, for whatever reason: that is its end.
                Err(Refused::Pipe(_)) => return Took::End,
            }
        }
    }

    /// Adds bytes that are here already.
    pub fn write(&mut self, mut bytes: &[u8], at: u64) {
        while !bytes.is_empty() && self.failure.is_none() {
            if !self.has_room() {
                let Some(cut) = self.rotate(bytes.len() as u64) else { break };
                bytes = &bytes[usize::try_from(cut).unwrap_or(bytes.len())..];
            }
            let count = self.room(bytes.len());
            self.note(at);
            match rustix::io::pwrite(&self.data, &bytes[..count], self.place()) {
                Ok(0) => self.fail(Errno::IO),
                Ok(count) => {
                    self.advance(count);
                    bytes = &bytes[count..];
                }
                Err(Errno::INTR) => {}
                Err(errno) => self.fail(errno),
            }
        }
        self.lost += bytes.len() as u64;
    }

    /// Begins where another holder of this log was cut short, who may have gone on to
    /// further files since they parted.
    pub fn resume(&mut self) {
        match open(&self.dir, self.stream) {
            Ok((parts, data, index)) => {
                self.end = parts.last().map_or(0, Part::end);
                (self.parts, self.data, self.index) = (parts, data, index);
            }
            Err(error) => self.fail_for(error.to_string()),
        }
    }

    /// Whether the file that is written to has lost its last name.
    pub fn is_unlinked(&self) -> bool {
        rustix::fs::fstat(&self.data).is_ok_and(|stat| stat.st_nlink == 0)
    }

    /// Whether the file that is written to is found in this run's directory.
    pub fn is_in(&self, run: &RunDir) -> bool {
        let name = data_name(self.stream, self.parts.last().map_or(0, |part| part.start));
        is_at(run.dir(), &name, &self.data)
    }

    /// Goes on in this run's directory with a new file. What was written before is gone,
    /// and counts as cut.
    pub fn begin_anew(&mut self, run: &RunDir) -> Result<()> {
        self.move_to(run)?;
        self.parts.clear();
        self.begin_part(self.end)?;
        // Its directory may have been gone when it was to go on to another file.
        (self.failure, self.is_told) = (None, false);
        Ok(())
    }

    /// Goes on in this run's directory, once it is resumed or begun anew.
    pub fn move_to(&mut self, run: &RunDir) -> Result<()> {
        self.dir = run.dir().try_clone()?;
        Ok(())
    }

    /// Another stream has written: what comes next here came behind that.
    pub fn part(&mut self) {
        self.index.part();
    }

    /// What became of the stream in this generation.
    pub fn captured(&self) -> CapturedStream {
        let bytes = self.end.saturating_sub(self.born) + self.lost;
        let kept: u64 = self.parts.iter().map(|part| part.behind(self.born)).sum();
        let cut = bytes.saturating_sub(kept);
        let (stream, failure) = (self.stream, self.failure.clone());
        CapturedStream { stream, bytes, cut, failure, unshown: 0, refusal: None }
    }

    /// Why logging ended, once.
    pub fn failed_now(&mut self) -> Option<String> {
        if self.is_told {
            return None;
        }
        self.is_told = self.failure.is_some();
        self.failure.clone()
    }

    /// Where the log ends in its stream, over all generations.
    pub fn offset(&self) -> u64 {
        self.end
    }

    /// What must stay open for as long as this is held.
    pub fn descriptors(&self) -> Vec<RawFd> {
        let own = [self.dir.fd.as_raw_fd(), self.data.as_raw_fd()];
        own.into_iter().chain(self.index.descriptor()).collect()
    }

    fn move_in(&mut self, pipe: BorrowedFd<'_>, most: usize, at: u64) -> Moved {
        // What never comes needs no time, and nothing is cut for its sake.
        let waiting = ioctl_fionread(pipe).unwrap_or(0);
        if !self.has_room() {
            if waiting == 0 && !waits(pipe)? {
                return Ok(0);
            }
            let Some(cut) = self.rotate(waiting.min(most as u64)) else {
                return Err(Refused::Log);
            };
            if cut > 0 {
                return self.skip(pipe, cut);
            }
        }
        let most = self.room(most);
        if waiting > 0 {
            self.note(at);
        }
        if !self.can_splice {
            return self.copy(pipe, most);
        }
        let flags = SpliceFlags::NONBLOCK | SpliceFlags::MOVE;
        match splice(pipe, None, &self.data, Some(&mut self.place()), most, flags) {
            Ok(count) => {
                self.advance(count);
                Ok(count)
            }
            Err(errno @ (Errno::AGAIN | Errno::INTR)) => Err(Refused::Pipe(errno)),
            // This is no pipe, or the file system does not take part.
            Err(Errno::INVAL) => {
                self.can_splice = false;
                self.copy(pipe, most)
            }
            Err(errno) => {
                self.fail(errno);
                Err(Refused::Log)
            }
        }
    }

    /// The same by way of our own memory.
    fn copy(&mut self, pipe: BorrowedFd<'_>, most: usize) -> Moved {
        let count = self.read(pipe, most)?;
        let spare = std::mem::take(&mut self.spare);
        let mut written = 0;
        while written < count && self.failure.is_none() {
            match rustix::io::pwrite(&self.data, &spare[written..count], self.place()) {
                Ok(0) => self.fail(Errno::IO),
                Ok(more) => {
                    self.advance(more);
                    written += more;
                }
                Err(Errno::INTR) => {}
                Err(errno) => self.fail(errno),
            }
        }
        self.spare = spare;
        self.lost += (count - written) as u64;
        Ok(count)
    }

    fn throw_away(&mut self, pipe: BorrowedFd<'_>, most: usize) -> Moved {
        let count = self.read(pipe, most)?;
        self.lost += count as u64;
        Ok(count)
    }

    /// Takes out of the pipe what is cut already. So much waits in it: nobody is waited for.
    fn skip(&mut self, pipe: BorrowedFd<'_>, cut: u64) -> Moved {
        let cut = usize::try_from(cut).unwrap_or(usize::MAX);
        self.spare.resize(SPARE, 0);
        let mut taken = 0;
        while taken < cut {
            let most = (cut - taken).min(SPARE);
            match rustix::io::read(pipe, &mut self.spare[..most]) {
                Ok(0) => break,
                Ok(count) => taken += count,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(Refused::Pipe(errno)),
            }
        }
        Ok(taken)
    }

    /// Looks before it reads: the pipe may be one whose reader waits.
    fn read(&mut self, pipe: BorrowedFd<'_>, most: usize) -> Moved {
        if !waits(pipe)? {
            return Ok(0);
        }
        self.spare.resize(SPARE, 0);
        let most = most.min(SPARE);
        rustix::io::read(pipe, &mut self.spare[..most]).map_err(Refused::Pipe)
    }

    /// Goes on to the next file, for so much that waits. The oldest ones go first, so that
    /// there is never more than the cap allows. What would be cut again before the rest of
    /// it is written is never written: so much of it is to be passed over. Nothing, if the
    /// log has failed.
    fn rotate(&mut self, waiting: u64) -> Option<u64> {
        let cut = waiting.saturating_sub(self.shape.tail);
        match self.begin_part(self.end + cut) {
            Ok(()) => Some(cut),
            Err(error) => {
                self.fail_for(error.to_string());
                None
            }
        }
    }

    /// Its name says what is missing before it. It is there before anything is passed over:
    /// whoever goes on for us may then count too much as missing, and never too little.
    fn begin_part(&mut self, start: u64) -> Result<()> {
        let tail = |parts: &[Part]| -> u64 {
            parts.iter().filter(|part| part.start > 0).map(|part| part.len).sum()
        };
        while tail(&self.parts) > self.shape.tail - self.shape.part {
            let Some(oldest) = self.parts.iter().position(|part| part.start > 0) else { break };
            let start = self.parts[oldest].start;
            self.dir.remove(&index_name(self.stream, start))?;
            self.dir.remove(&data_name(self.stream, start))?;
            self.parts.remove(oldest);
        }
        self.data = open_part(&self.dir, self.stream, start)?;
        self.index = Index::create(&self.dir, &index_name(self.stream, start));
        self.parts.push(Part { start, len: 0 });
        self.end = start;
        Ok(())
    }

    fn limit(&self) -> u64 {
        match self.parts.last() {
            Some(part) if part.start > 0 => self.shape.part,
            _ => self.shape.head,
        }
    }

    fn has_room(&self) -> bool {
        self.place() < self.limit()
    }

    /// How much of so much the current file takes.
    fn room(&self, wanted: usize) -> usize {
        usize::try_from(self.limit() - self.place()).map_or(wanted, |room| room.min(wanted))
    }

    /// Where the next byte goes in the current file.
    fn place(&self) -> u64 {
        self.parts.last().map_or(0, |part| part.len)
    }

    fn advance(&mut self, count: usize) {
        if let Some(part) = self.parts.last_mut() {
            part.len += count as u64;
        }
        self.end += count as u64;
    }

    fn note(&mut self, at: u64) {
        self.index.note(at, self.end, self.place());
    }

    fn fail(&mut self, errno: Errno) {
        let start = self.parts.last().map_or(0, |part| part.start);
        let path = self.dir.path.join(data_name(self.stream, start));
        self.fail_for(StoreError::io("write", &path, errno).to_string());
        if matches!(errno, Errno::NOSPC | Errno::DQUOT) {
            self.make_room();
        }
    }

    /// A log that has filled its disk gives a little of it back, so that it can still be
    /// written down how the run ended.
    fn make_room(&mut self) {
        let Some(last) = self.parts.last_mut() else { return };
        let given = last.len.min(ROOM);
        if self.data.set_len(last.len - given).is_ok() {
            last.len -= given;
            self.end -= given;
            self.lost += given;
        }
    }

    fn fail_for(&mut self, why: String) {
        self.failure.get_or_insert(why);
    }
}

type Moved = std::result::Result<usize, Refused>;

/// Who would not.
enum Refused {
    Pipe(Errno),
    /// It has failed, and says why.
    Log,
}

/// Whether there is something to read; not so at the end. An error, if that is still
/// to come.
fn waits(pipe: BorrowedFd<'_>) -> std::result::Result<bool, Refused> {
    let mut fds = [PollFd::from_borrowed_fd(pipe, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    match poll(&mut fds, Some(&now)) {
        Ok(0) => Err(Refused::Pipe(Errno::AGAIN)),
        Ok(_) => Ok(fds[0].revents().contains(PollFlags::IN)),
        Err(errno) => Err(Refused::Pipe(errno)),
    }
}
