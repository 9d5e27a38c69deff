//! Room for a run's last words, taken at its birth: a full disk must not turn a run that
//! has ended into one that is lost.

use crate::error::{Result, StoreError};
use crate::files::Dir;

use crate::rundir::{EVENTS, RECORD, SPEC};
use fullstop_protocol::Record;
use rustix::fs::{FallocateFlags, OFlags, fallocate};
use rustix::io::Errno;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;

/// A file of the right size, which becomes the last record.
pub(crate) const ROOM: &str = "record.room";
/// What a report may need beyond what the first record tells, its command once more.
const FOR_REPORT: usize = 8 * 1024;
/// What the last events may need.
const FOR_EVENTS: u64 = 4 * 1024;
/// Where there is no room for everything, so many of a list are named.
const FEW: usize = 8;

/// Takes the room that the last record of a run and its last events will need.
pub(crate) fn take(dir: &Dir, first: &Record) -> Result<()> {
    let size = 2 * text_of(dir, first)?.len() + FOR_REPORT;
    let taken = || -> Result<()> {
        let room = dir.open_file(ROOM, OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC)?;
        allocate(&room, FallocateFlags::empty(), 0, size as u64)
            .map_err(|errno| StoreError::io("take room in", &dir.path.join(ROOM), errno))?;
        let events = dir.open_file(EVENTS, OFlags::WRONLY | OFlags::CREATE)?;
        let why = |error| StoreError::io("take room in", &dir.path.join(EVENTS), error);
        let end = events.metadata().map_err(why)?.len();
        allocate(&events, FallocateFlags::KEEP_SIZE, end, FOR_EVENTS)
            .map_err(|errno| StoreError::io("take room in", &dir.path.join(EVENTS), errno))
    };
    taken().inspect_err(|_| drop(dir.remove(ROOM)))
}

/// Room that is set aside for the next generation of a run, until this is dropped.
#[derive(Debug)]
pub struct Reserve {
    /// It has lost its name already: nothing is left if this process is killed.
    _file: File,
}

/// What the next generation will write before its command runs.
pub(crate) fn reserve(dir: &Dir) -> Result<Reserve> {
    const NAME: &str = "restart.new";
    const FOR_RECORDS: u64 = 64 * 1024;
    let path = dir.path.join(NAME);
    let spec = dir.open_file(SPEC, OFlags::RDONLY)?.metadata();
    let spec = spec.map_err(|error| StoreError::io("look at", &dir.path.join(SPEC), error))?.len();
    let file = dir.open_file(NAME, OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC)?;
    let taken = allocate(&file, FallocateFlags::empty(), 0, 2 * spec + FOR_RECORDS);
    dir.remove(NAME)?;
    taken.map_err(|errno| StoreError::io("take room in", &path, errno))?;
    Ok(Reserve { _file: file })
}

/// A file system that cannot set room aside promises none.
fn allocate(
    file: &File,
    flags: FallocateFlags,
    from: u64,
    length: u64,
) -> std::result::Result<(), Errno> {
    match fallocate(file, flags, from, length) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
        other => other,
    }
}

/// Writes the last record into the room that was taken for it.
pub(crate) fn write_whole(dir: &Dir, record: &Record) -> Result<()> {
    fill(dir, record)?;
    rustix::fs::renameat(&dir.fd, ROOM, &dir.fd, RECORD)
        .map_err(|errno| StoreError::io("replace", &dir.path.join(RECORD), errno))
}

/// The same on a full disk. If the record is longer than was foreseen, those of a crowd are
/// counted and not named.
pub(crate) fn write(dir: &Dir, record: &Record) -> Result<()> {
    write_whole(dir, record).or_else(|_| write_whole(dir, &shortened(record)))
}

/// Over what is allocated, and no further: cut to its length only at the end.
fn fill(dir: &Dir, record: &Record) -> Result<()> {
    let text = text_of(dir, record)?;
    let mut room = dir.open_file(ROOM, OFlags::WRONLY)?;
    let why = |error| StoreError::io("write", &dir.path.join(ROOM), error);
    // What has another name as well is none of ours, and is not written into.
    if room.metadata().map_err(why)?.nlink() != 1 {
        return Err(StoreError::Strange { path: dir.path.join(ROOM), kind: "a second name" });
    }
    room.write_all(&text).and_then(|()| room.set_len(text.len() as u64)).map_err(why)
}

fn text_of(dir: &Dir, record: &Record) -> Result<Vec<u8>> {
    let mut text = serde_json::to_vec(record).map_err(|error| StoreError::Damaged {
        path: dir.path.join(RECORD),
        why: error.to_string(),
    })?;
    text.push(b'\n');
    Ok(text)
}

fn shortened(record: &Record) -> Record {
    let mut short = record.clone();
    short.census.clear();
    if let Some(report) = &mut short.report {
        report.survivors.truncate(FEW);
        for members in [&mut report.leftovers, &mut report.released] {
            members.truncate(FEW);
        }
        report.holders.truncate(FEW);
        report.steps.truncate(FEW);
        let why = "the disk was full; of its lists only the beginnings were written";
        report.error = Some(report.error.take().map_or(why.to_owned(), |e| format!("{e}; {why}")));
    }
    short
}
