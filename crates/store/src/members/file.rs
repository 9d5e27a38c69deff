//! The writer's side: which slots changed since they were last written.

use super::MEMBERS;
use super::slot::{self, Seed};
use crate::error::{Result, StoreError};
use crate::files::Dir;
use fullstop_core::id::Id;
use fullstop_core::identity::Identity;
use rustix::fs::{AtFlags, FileType, OFlags, statat};
use rustix::io::Errno;
use std::collections::{BTreeSet, HashSet};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};

/// The members of one generation of a run, and what of them is not written yet.
///
/// ```
/// use fullstop_core::id::Id;
/// use fullstop_core::identity::Identity;
/// use fullstop_store::MemberFile;
///
/// let one = Identity { pid: 42, start_ticks: 555, inode: Some(7) };
/// let mut members = MemberFile::new(&Id::new(1_800_000_000_000, 7), 1);
/// members.update([one]);
/// assert!(members.is_behind() && !members.is_begun());
/// assert_eq!(members.iter().collect::<Vec<_>>(), [&one]);
/// ```
#[derive(Debug)]
pub struct MemberFile {
    seed: Seed,
    generation: u32,
    slots: Vec<Option<Identity>>,
    free: BTreeSet<usize>,
    /// Slots that the file does not have as they are here.
    changed: BTreeSet<usize>,
    /// The file that was written, once there is one.
    written: Option<Written>,
}

/// The file as this process left it.
#[derive(Clone, Copy, Debug)]
struct Written {
    inode: u64,
    slots: usize,
    /// The last write failed halfway.
    is_torn: bool,
}

/// What is found by the name of the file.
enum Found {
    Whole,
    /// Somebody else has cut it, or written more to it.
    Resized,
    /// Nothing, or another file.
    Replaced,
}

impl MemberFile {
    pub fn new(id: &Id, generation: u32) -> MemberFile {
        MemberFile {
            seed: Seed::new(id, generation),
            generation,
            slots: Vec::new(),
            free: BTreeSet::new(),
            changed: BTreeSet::new(),
            written: None,
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Identity> {
        self.slots.iter().flatten()
    }

    /// Whether there is a file that tells of this generation.
    pub fn is_begun(&self) -> bool {
        self.written.is_some()
    }

    /// Whether there is something to be written.
    pub fn is_behind(&self) -> bool {
        let is_longer = |written: Written| written.slots > self.slots.len();
        !self.changed.is_empty() || self.written.is_some_and(is_longer)
    }

    /// Takes these for the members from now on. One that stays keeps its slot, so that
    /// nothing is written for it.
    pub fn update(&mut self, members: impl IntoIterator<Item = Identity>) {
        let mut new: HashSet<Identity> = members.into_iter().collect();
        for (place, slot) in self.slots.iter_mut().enumerate() {
            if slot.take_if(|member| !new.remove(member)).is_some() {
                self.free.insert(place);
                self.changed.insert(place);
            }
        }
        for member in new {
            let place = self.take_slot();
            self.slots[place] = Some(member);
            self.changed.insert(place);
        }
        self.cut();
    }

    /// The lowest that is free: what changes together lies together.
    fn take_slot(&mut self) -> usize {
        self.free.pop_first().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        })
    }

    /// Free slots at the end are not kept: the file shrinks with its crowd.
    fn cut(&mut self) {
        let used = self.slots.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
        self.slots.truncate(used);
        self.free.split_off(&used);
        self.changed.split_off(&used);
    }

    /// Writes what has changed; everything, if somebody else has changed or removed the
    /// file. There is none before its first member.
    pub(crate) fn write(&mut self, dir: &Dir) -> Result<()> {
        let Some(written) = self.written else {
            return if self.slots.is_empty() { Ok(()) } else { self.create(dir) };
        };
        match find(dir, written)? {
            Found::Whole if !self.is_behind() => Ok(()),
            Found::Whole => self.write_changes(dir, written),
            Found::Resized => {
                // In place, where there is room for it even on a full disk.
                self.changed.extend(0..self.slots.len());
                self.write_changes(dir, Written { is_torn: true, ..written })
            }
            Found::Replaced => self.create(dir),
        }
    }

    fn create(&mut self, dir: &Dir) -> Result<()> {
        // Whatever is there by this name, a link or a pipe, is not written to.
        dir.remove(MEMBERS)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let file = dir.open_file(MEMBERS, flags)?;
        let why = |error| failed(dir, error);
        file.write_all_at(&self.blocks(0, self.slots.len() + 2), 0).map_err(why)?;
        let inode = file.metadata().map_err(why)?.ino();
        self.note_written(inode);
        Ok(())
    }

    /// From the first to the last, so that a write that fails leaves no hole behind.
    fn write_changes(&mut self, dir: &Dir, written: Written) -> Result<()> {
        let why = |error| failed(dir, error);
        let file = dir.open_file(MEMBERS, OFlags::WRONLY)?;
        self.written = Some(Written { is_torn: true, ..written });
        let header = written.is_torn.then_some(0);
        let slots = self.changed.iter().map(|place| place + 1);
        let is_moved = written.is_torn || written.slots != self.slots.len();
        let end = is_moved.then_some(self.slots.len() + 1);
        for (from, to) in pieces(header.into_iter().chain(slots).chain(end)) {
            file.write_all_at(&self.blocks(from, to), slot::at(from)).map_err(why)?;
        }
        if written.is_torn || written.slots > self.slots.len() {
            file.set_len(slot::at(self.slots.len() + 2)).map_err(why)?;
        }
        self.note_written(written.inode);
        Ok(())
    }

    fn note_written(&mut self, inode: u64) {
        self.written = Some(Written { inode, slots: self.slots.len(), is_torn: false });
        self.changed.clear();
    }

    /// The header is block 0, each slot the block after its number, and the end comes last.
    fn blocks(&self, from: usize, to: usize) -> Vec<u8> {
        let block = |block: usize| match block.checked_sub(1) {
            None => slot::header(self.seed, self.generation),
            Some(place) => match self.slots.get(place) {
                Some(member) => slot::slot(self.seed, place, member.as_ref()),
                None => slot::end(self.seed, place),
            },
        };
        (from..to).flat_map(block).collect()
    }
}

fn find(dir: &Dir, written: Written) -> Result<Found> {
    let stat = match statat(&dir.fd, MEMBERS, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(Found::Replaced),
        other => {
            other.map_err(|errno| StoreError::io("look at", &dir.path.join(MEMBERS), errno))?
        }
    };
    let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    if !is_file || stat.st_ino != written.inode {
        return Ok(Found::Replaced);
    }
    let size = u64::try_from(stat.st_size).unwrap_or_default();
    let left = slot::at(written.slots + 2);
    let is_whole = if written.is_torn { size >= left } else { size == left };
    Ok(if is_whole { Found::Whole } else { Found::Resized })
}

/// Blocks that lie beside each other: from the first up to the one behind the last.
fn pieces(blocks: impl Iterator<Item = usize>) -> Vec<(usize, usize)> {
    let mut pieces: Vec<(usize, usize)> = Vec::new();
    for block in blocks {
        match pieces.last_mut() {
            Some((_, end)) if *end == block => *end += 1,
            _ => pieces.push((block, block + 1)),
        }
    }
    pieces
}

fn failed(dir: &Dir, error: io::Error) -> StoreError {
    StoreError::io("write", &dir.path.join(MEMBERS), error)
}
