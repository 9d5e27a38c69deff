//! When what was written: a small file beside each file of a log.
//!
//! A header, then records of one size, little-endian: a time in microseconds since
//! 1970, and the offset in the stream of the first byte that came then. Bytes behind
//! the last record have its time, so a chunk that joins the one before it costs
//! nothing. A record is written *before* its bytes: who sees bytes can see their time.

use rustix::fs::OFlags;
use std::fs::File;
use std::io;
use std::os::fd::RawFd;
use std::os::unix::fs::FileExt as _;

use crate::files::Dir;

const MAGIC: [u8; 8] = *b"fs-times";
/// Raised when a record changes its meaning.
const VERSION: u32 = 1;
pub const HEADER: u64 = 16;
pub const RECORD: u64 = 16;

/// Chunks that come so close to each other have one time: nobody prints finer ones.
const JOINED: u64 = 1_000;
/// How long a record lasts in an index that has used up what it may take; longer, the
/// more it is beyond that.
const SPARING: u64 = 100_000;
/// For the sake of times.
const TIMES: Budget = Budget { least: 4 * 1024, share: 64 };
/// For the sake of the order between streams, which nothing else tells.
const ORDER: Budget = Budget { least: 64 * 1024, share: 4 };

/// How large an index may become: that part of its data, and always `least`.
struct Budget {
    least: u64,
    share: u64,
}

impl Budget {
    fn of(&self, data: u64) -> u64 {
        self.least.max(data / self.share)
    }
}

/// From `start` on, bytes came at `at`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    pub at: u64,
    pub start: u64,
}

impl Mark {
    pub fn from_bytes(bytes: [u8; 16]) -> Mark {
        let [at, start] = [0, 8].map(|from| {
            let mut number = [0; 8];
            number.copy_from_slice(&bytes[from..from + 8]);
            u64::from_le_bytes(number)
        });
        Mark { at, start }
    }

    fn to_bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.at.to_le_bytes());
        bytes[8..].copy_from_slice(&self.start.to_le_bytes());
        bytes
    }
}

fn header() -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes
}

/// What the beginning of an index says of the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    Known,
    /// Written by a later fullstop: to be left alone.
    Newer,
    /// Torn, or nothing of ours.
    None,
}

pub fn read_header(file: &File) -> Header {
    let mut bytes = [0; 16];
    if file.read_exact_at(&mut bytes, 0).is_err() || bytes[..8] != MAGIC {
        return Header::None;
    }
    if bytes == header() { Header::Known } else { Header::Newer }
}

/// The writer's side of an index. That it cannot be written costs times, no bytes.
#[derive(Debug)]
pub struct Index {
    file: Option<File>,
    /// Up to the end of its last whole record; nothing stands in it before the first.
    len: u64,
    last: Option<Mark>,
    /// Somebody else has written since.
    is_parted: bool,
}

impl Index {
    /// Goes on behind what is there; `end` is where the stream stands, and no record
    /// can be about what lies behind it.
    pub fn open(dir: &Dir, name: &str, end: u64) -> Index {
        let file = dir.open_file(name, OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW).ok();
        file.and_then(|file| Index::of(file, end).ok()).unwrap_or(Index::new(None))
    }

    /// Of a file that begins now.
    pub fn create(dir: &Dir, name: &str) -> Index {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW;
        Index::new(dir.open_file(name, flags).ok())
    }

    fn new(file: Option<File>) -> Index {
        Index { file, len: 0, last: None, is_parted: false }
    }

    fn of(file: File, end: u64) -> io::Result<Index> {
        match read_header(&file) {
            Header::Newer => return Ok(Index::new(None)),
            Header::None => {
                file.set_len(0)?;
                return Ok(Index::new(Some(file)));
            }
            Header::Known => {}
        }
        let size = file.metadata()?.len();
        let mut len = size - size % RECORD;
        let mut last = None;
        while len > HEADER {
            let mut bytes = [0; 16];
            file.read_exact_at(&mut bytes, len - RECORD)?;
            let mark = Mark::from_bytes(bytes);
            if mark.start <= end {
                last = Some(mark);
                break;
            }
            len -= RECORD;
        }
        Ok(Index { file: Some(file), len, last, is_parted: false })
    }

    /// Says when the bytes come that go to `start`; `data` is how many its file has.
    pub fn note(&mut self, at: u64, start: u64, data: u64) {
        let Some(file) = &self.file else { return };
        let is_parted = std::mem::take(&mut self.is_parted) && self.len < ORDER.of(data);
        let window = self.window(data);
        if self.last.is_some_and(|last| at.abs_diff(last.at) < window) && !is_parted {
            return;
        }
        let mark = Mark { at, start };
        // Nothing came at the last time after all.
        let is_replaced = self.last.is_some_and(|last| last.start == start);
        let place = if is_replaced { self.len - RECORD } else { self.len };
        let written = if place == 0 {
            file.write_all_at([header(), mark.to_bytes()].as_flattened(), 0).map(|()| HEADER)
        } else {
            file.write_all_at(&mark.to_bytes(), place).map(|()| place)
        };
        match written {
            Ok(place) => {
                self.len = place + RECORD;
                self.last = Some(mark);
            }
            Err(_) => self.file = None,
        }
    }

    /// What comes next is told apart from what was last, however soon it comes: another
    /// stream has written in between, and the order of the two is to be known.
    pub fn part(&mut self) {
        self.is_parted = true;
    }

    /// How long a record lasts. The larger the index gets, the longer.
    fn window(&self, data: u64) -> u64 {
        let most = TIMES.of(data);
        if self.len < most { JOINED } else { SPARING.saturating_mul(self.len / most) }
    }

    pub fn descriptor(&self) -> Option<RawFd> {
        use std::os::fd::AsRawFd as _;
        self.file.as_ref().map(File::as_raw_fd)
    }
}
