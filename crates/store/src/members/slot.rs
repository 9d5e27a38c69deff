//! The bytes of a slot, and of the header before the first one. Numbers are little-endian.

use crate::hash;
use fullstop_core::id::Id;
use fullstop_core::identity::Identity;

const MAGIC: [u8; 8] = *b"fs-membr";
/// Raised when a slot changes its meaning.
const VERSION: u32 = 1;
/// A power of two, so that no slot lies across two pages: a write that a kill cuts short
/// ends between two slots.
pub const SLOT: usize = 32;
/// The checksum comes last, behind what it is about.
const BODY: usize = 24;

const FREE: u32 = 0;
const WITHOUT_INODE: u32 = 1;
const WITH_INODE: u32 = 2;
const END: u32 = 3;

pub type Bytes = [u8; SLOT];

/// What makes the checksums of one generation of one run differ from those of any other.
#[derive(Clone, Copy, Debug)]
pub struct Seed(u64);

impl Seed {
    pub fn new(id: &Id, generation: u32) -> Seed {
        let of_id = hash::of(id.as_str().as_bytes());
        Seed(hash::go_on(of_id, &generation.to_le_bytes()))
    }

    /// Also about the place: a slot that was copied elsewhere is damaged.
    fn sum(self, place: u64, body: &[u8]) -> [u8; 8] {
        hash::go_on(hash::go_on(self.0, &place.to_le_bytes()), body).to_le_bytes()
    }

    fn seal(self, place: u64, mut bytes: Bytes) -> Bytes {
        let sum = self.sum(place, &bytes[..BODY]);
        bytes[BODY..].copy_from_slice(&sum);
        bytes
    }

    fn is_sealed(self, place: u64, bytes: &Bytes) -> bool {
        self.sum(place, &bytes[..BODY]) == bytes[BODY..]
    }
}

/// Where a block lies in the file: the header, and from the first on the slots.
pub fn at(block: usize) -> u64 {
    (block * SLOT) as u64
}

pub fn header(seed: Seed, generation: u32) -> Bytes {
    let mut bytes = [0; SLOT];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[12..16].copy_from_slice(&generation.to_le_bytes());
    seed.seal(0, bytes)
}

/// What the header tells of the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    Ours,
    OtherGeneration(u32),
    /// Written by a later fullstop.
    Newer(u32),
    Damaged,
}

pub fn read_header(id: &Id, generation: u32, bytes: &Bytes) -> Header {
    let (version, of) = (number(bytes, 8), number(bytes, 12));
    if bytes[..8] != MAGIC {
        return Header::Damaged;
    }
    if version > VERSION {
        return Header::Newer(version);
    }
    match Seed::new(id, of).is_sealed(0, bytes) {
        false => Header::Damaged,
        true if of == generation => Header::Ours,
        true => Header::OtherGeneration(of),
    }
}

/// A slot that is free is written as such: one of zeros is damaged.
pub fn slot(seed: Seed, slot: usize, member: Option<&Identity>) -> Bytes {
    let mut bytes = [0; SLOT];
    if let Some(Identity { pid, start_ticks, inode }) = member {
        let kind = if inode.is_some() { WITH_INODE } else { WITHOUT_INODE };
        bytes[..4].copy_from_slice(&kind.to_le_bytes());
        bytes[4..8].copy_from_slice(&pid.to_le_bytes());
        bytes[8..16].copy_from_slice(&start_ticks.to_le_bytes());
        bytes[16..24].copy_from_slice(&inode.unwrap_or_default().to_le_bytes());
    }
    seed.seal(at(slot + 1), bytes)
}

/// What comes behind the last slot: a file without it was cut short.
pub fn end(seed: Seed, slots: usize) -> Bytes {
    let mut bytes = [0; SLOT];
    bytes[..4].copy_from_slice(&END.to_le_bytes());
    seed.seal(at(slots + 1), bytes)
}

/// What stands in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    Free,
    Member(Identity),
    /// There are no further slots.
    End,
    Damaged,
}

pub fn read_slot(seed: Seed, slot: usize, bytes: &Bytes) -> Slot {
    if !seed.is_sealed(at(slot + 1), bytes) {
        return Slot::Damaged;
    }
    let long = |at: usize| u64::from(number(bytes, at)) | u64::from(number(bytes, at + 4)) << 32;
    let inode = match number(bytes, 0) {
        FREE => return Slot::Free,
        END => return Slot::End,
        WITHOUT_INODE => None,
        WITH_INODE => Some(long(16)),
        _ => return Slot::Damaged,
    };
    let pid = number(bytes, 4).cast_signed();
    Slot::Member(Identity { pid, start_ticks: long(8), inode })
}

fn number(bytes: &Bytes, at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(number)
}
