//! The reader's side: who was written down, and whether that is all.

use super::MEMBERS;
use super::slot::{self, Header, SLOT, Seed, Slot};
use crate::error::{Result, StoreError};
use crate::files::Dir;

use fullstop_core::identity::Identity;
use fullstop_protocol::Record;
use rustix::fs::OFlags;
use std::fmt;
use std::io::{self, Read as _};

/// More than there can be processes (PID_MAX_LIMIT of Linux): a longer file is not ours,
/// and nobody waits until it is read.
const MOST: usize = 4 * 1024 * 1024;
/// So many bytes are read at a time: whole slots.
const CHUNK: usize = 2048 * SLOT;

/// Who is known to have been in a run: its leader, and the members when last counted.
#[derive(Debug, Default)]
pub struct KnownMembers {
    pub identities: Vec<Identity>,
    /// Why the list may lack members that were written down. If it is set, a search that
    /// finds no process proves nothing.
    pub lost: Option<LostMembers>,
}

/// Why the file of the members does not tell all that was written to it.
///
/// ```
/// use fullstop_store::LostMembers;
///
/// let said = LostMembers::Slots(2).to_string();
/// assert_eq!(said, "2 of the members that were written down cannot be read");
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum LostMembers {
    /// The record names a file that is not there.
    Missing,
    OtherGeneration(u32),
    /// Written by a later fullstop.
    Newer(u32),
    /// It does not begin as such a file does.
    Header,
    /// So many slots are damaged.
    Slots(usize),
    /// Its end is not there.
    Cut,
    TooLong,
    Unreadable(StoreError),
}

impl fmt::Display for LostMembers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LostMembers::Missing => f.write_str("the file of its members is gone"),
            LostMembers::OtherGeneration(of) => {
                write!(f, "the file of its members is that of generation {of}")
            }
            LostMembers::Newer(version) => {
                write!(f, "the file of its members has version {version}, of a newer fullstop")
            }
            LostMembers::Header => f.write_str("the file of its members is damaged"),
            LostMembers::Slots(count) => {
                write!(f, "{count} of the members that were written down cannot be read")
            }
            LostMembers::Cut => f.write_str("the file of its members was cut short"),
            LostMembers::TooLong => f.write_str("the file of its members is too long to be ours"),
            LostMembers::Unreadable(error) => error.fmt(f),
        }
    }
}

/// Reads who is known, by the record and by the file beside it.
pub(crate) fn read(dir: &Dir, record: &Record) -> KnownMembers {
    let mut known = KnownMembers::default();
    known.identities.extend(record.leader);
    // Records of before had the members in them.
    known.identities.extend(record.census.iter().filter(|one| Some(**one) != record.leader));
    let lost = match read_file(dir, record, &mut known.identities) {
        Ok(lost) => lost,
        Err(error) => Some(LostMembers::Unreadable(error)),
    };
    known.lost = lost.filter(|lost| match lost {
        // A keeper that was killed before it had written the file, or the first bytes of it,
        // has not named it in the record.
        LostMembers::Missing
        | LostMembers::Header
        | LostMembers::OtherGeneration(_)
        | LostMembers::Cut => record.has_members_file,
        _ => true,
    });
    known
}

fn read_file(dir: &Dir, record: &Record, known: &mut Vec<Identity>) -> Result<Option<LostMembers>> {
    let why = |error: io::Error| StoreError::io("read", &dir.path.join(MEMBERS), error);
    let mut file = match dir.open_file(MEMBERS, OFlags::RDONLY) {
        Err(error) if error.is_missing() => return Ok(Some(LostMembers::Missing)),
        other => other?,
    };
    let mut begin = [0; SLOT];
    match file.read_exact(&mut begin) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            return Ok(Some(LostMembers::Header));
        }
        read => read.map_err(why)?,
    }
    match slot::read_header(&record.id, record.generation, &begin) {
        Header::Ours => {}
        Header::OtherGeneration(of) => return Ok(Some(LostMembers::OtherGeneration(of))),
        Header::Newer(version) => return Ok(Some(LostMembers::Newer(version))),
        Header::Damaged => return Ok(Some(LostMembers::Header)),
    }
    let seed = Seed::new(&record.id, record.generation);
    let mut bytes = Vec::with_capacity(CHUNK);
    let (mut next, mut damaged) = (0, 0);
    loop {
        bytes.clear();
        (&file).take(CHUNK as u64).read_to_end(&mut bytes).map_err(why)?;
        let (slots, _) = bytes.as_chunks::<SLOT>();
        for bytes in slots {
            match slot::read_slot(seed, next, bytes) {
                Slot::Free => {}
                Slot::Member(member) => known.push(member),
                Slot::Damaged => damaged += 1,
                Slot::End => return Ok((damaged > 0).then_some(LostMembers::Slots(damaged))),
            }
            next += 1;
        }
        if bytes.len() < CHUNK {
            return Ok(Some(LostMembers::Cut));
        }
        if next >= MOST {
            return Ok(Some(LostMembers::TooLong));
        }
    }
}
