//! A filesystem that never answers a read, and a reader that waits for the answer.
//!
//! Only as much of the FUSE protocol as leads up to the read: `fuse(4)` and the kernel's
//! `include/uapi/linux/fuse.h`.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;

use rustix::mount::{MountFlags, mount};

use crate::Life;
use crate::stage::{Stage, live};
use crate::trouble::{Doing, Trouble};

const LOOKUP: u32 = 1;
const FORGET: u32 = 2;
const GETATTR: u32 = 3;
const OPEN: u32 = 14;
const READ: u32 = 15;
const RELEASE: u32 = 18;
const FLUSH: u32 = 25;
const INIT: u32 = 26;
const OPENDIR: u32 = 27;
const RELEASEDIR: u32 = 29;
const ACCESS: u32 = 34;
const INTERRUPT: u32 = 36;
const DESTROY: u32 = 38;
const BATCH_FORGET: u32 = 42;

const ROOT: u64 = 1;
const FILE: u64 = 2;
const DIRECT: u64 = 3;

/// The file of this name is read past the page cache, every other one through it. Such a
/// reader waits for the answer itself, and no signal ends it before the server does.
const DIRECT_NAME: &[u8] = b"direct\0";
/// `FOPEN_DIRECT_IO`
const DIRECT_IO: u32 = 1;
/// `FOPEN_KEEP_CACHE`: without it a second open would empty the cache, and for that wait,
/// unkillable, for the page that is never read.
const KEEP_CACHE: u32 = 2;
/// `FUSE_ASYNC_READ`: the reader then waits for a page and not for the answer, and such
/// a wait can be killed.
const ASYNC_READ: u32 = 1;

/// The header before every request, and the one before every answer.
const REQUEST_HEADER: usize = 40;
const ANSWER_HEADER: usize = 16;

/// The kernel insists on 8 KiB and on room for the largest write.
const BUFFER: usize = 64 * 1024;

/// Reads a file. With one of `fuse-serve`'s it hangs there.
pub fn reader(stage: &Stage) -> Life {
    let path = stage.file()?;
    let shown = path.display().to_string();
    let mut file = File::open(path).doing(&*shown)?;
    stage.announce(1)?;
    file.read_exact(&mut [0; 64]).doing(&*shown)?;
    live()
}

/// Mounts the filesystem and serves it: any name is a file, and no read is answered.
pub fn serve(stage: &Stage) -> Life {
    let cannot = |what: &str, error: io::Error| Trouble::Cannot(format!("{what}: {error}"));
    let mut device = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/fuse")
        .map_err(|error| cannot("/dev/fuse", error))?;
    let options =
        format!("fd={},rootmode=40000,user_id=0,group_id=0,allow_other", device.as_raw_fd());
    let options = CString::new(options).map_err(io::Error::from).doing("mount options")?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("zoo", stage.file()?, "fuse", flags, &*options)
        .map_err(|error| cannot("mounting a FUSE filesystem", error.into()))?;
    let mut buffer = vec![0; BUFFER];
    let mut asked = false;
    loop {
        let length = device.read(&mut buffer).doing("reading a FUSE request")?;
        let request = Request::parse(&buffer[..length])
            .ok_or(io::Error::from(io::ErrorKind::InvalidData))
            .doing("a FUSE request")?;
        if let Some(answer) = request.answer() {
            match device.write(&answer) {
                // Whoever asked has given up.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                done => drop(done.doing("answering a FUSE request")?),
            }
        }
        if request.opcode == INIT {
            stage.tell("serving", "serving\n")?;
        }
        // From here on the reader waits for an answer; before, it could still leave.
        if request.opcode == READ && !std::mem::replace(&mut asked, true) {
            stage.tell("serving", "asked\n")?;
        }
    }
}

struct Request<'a> {
    opcode: u32,
    unique: u64,
    node: u64,
    body: &'a [u8],
}

impl<'a> Request<'a> {
    fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (header, body) = bytes.split_at_checked(REQUEST_HEADER)?;
        Some(Self {
            opcode: u32::from_ne_bytes(header[4..8].try_into().ok()?),
            unique: u64::from_ne_bytes(header[8..16].try_into().ok()?),
            node: u64::from_ne_bytes(header[16..24].try_into().ok()?),
            body,
        })
    }

    fn answer(&self) -> Option<Vec<u8>> {
        let body = match self.opcode {
            READ | FORGET | BATCH_FORGET | INTERRUPT | DESTROY => return None,
            INIT => Ok(init()),
            LOOKUP => Ok(entry(if self.body == DIRECT_NAME { DIRECT } else { FILE })),
            GETATTR => Ok(Body::new().u64(FOR_EVER).u32(0).u32(0).append(attributes(self.node))),
            OPEN | OPENDIR => {
                let flags = if self.node == DIRECT { DIRECT_IO } else { KEEP_CACHE };
                Ok(Body::new().u64(0).u32(flags).u32(0))
            }
            RELEASE | RELEASEDIR | FLUSH | ACCESS => Ok(Body::new()),
            _ => Err(rustix::io::Errno::NOSYS),
        };
        let (error, body) = match body {
            Ok(body) => (0, body.0),
            Err(errno) => (-errno.raw_os_error(), Vec::new()),
        };
        let length = u32::try_from(ANSWER_HEADER + body.len()).ok()?;
        let header = Body::new().u32(length).u32(error.cast_unsigned()).u64(self.unique);
        Some([header.0, body].concat())
    }
}

/// Seconds for which the kernel need not ask again: longer than any member lives.
const FOR_EVER: u64 = 3600;

/// `struct fuse_init_out`
fn init() -> Body {
    let (major, minor, readahead, max_write) = (7, 31, 128 * 1024, 4096);
    let start = Body::new().u32(major).u32(minor).u32(readahead).u32(ASYNC_READ);
    let (background, time_granularity) = (0, 1);
    start.u32(background).u32(max_write).u32(time_granularity).zeroes(36)
}

/// `struct fuse_entry_out`
fn entry(node: u64) -> Body {
    let generation = 0;
    let head = Body::new().u64(node).u64(generation).u64(FOR_EVER).u64(FOR_EVER);
    head.u32(0).u32(0).append(attributes(node))
}

/// `struct fuse_attr`
fn attributes(node: u64) -> Body {
    let (mode, size) = if node == ROOT { (0o040_755, 0) } else { (0o100_644, 1 << 20) };
    let (blocks, links, block_size) = (size / 512, 1, 4096);
    let times_and_nanos = 3 * 8 + 3 * 4;
    let start = Body::new().u64(node).u64(size).u64(blocks).zeroes(times_and_nanos);
    let (uid, gid, device, flags) = (0, 0, 0, 0);
    start.u32(mode).u32(links).u32(uid).u32(gid).u32(device).u32(block_size).u32(flags)
}

/// Numbers in the machine's own order, one after the other.
struct Body(Vec<u8>);

impl Body {
    fn new() -> Self {
        Self(Vec::new())
    }

    fn u32(self, number: u32) -> Self {
        self.append(Self(number.to_ne_bytes().into()))
    }

    fn u64(self, number: u64) -> Self {
        self.append(Self(number.to_ne_bytes().into()))
    }

    fn zeroes(self, count: usize) -> Self {
        self.append(Self(vec![0; count]))
    }

    fn append(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }
}
