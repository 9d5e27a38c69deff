//! The file of a run's members, read and forged by what `docs/records.md` says of it.

use std::fs;
use std::path::Path;

use crate::{Context, Outcome};

/// A member that was written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberSlot {
    pub pid: i32,
    pub start_ticks: u64,
    pub inode: Option<u64>,
}

/// The file as `docs/records.md` describes it. A slot that is free or damaged is `None`.
#[derive(Debug, Default)]
pub struct MemberSlots {
    seed: u64,
    bytes: Vec<u8>,
}

/// The size of the header, and of each slot.
pub const BLOCK: usize = 32;

impl MemberSlots {
    /// Of the run in this directory; none at all, if there is no such file.
    pub fn read(run: &Path, id: &str) -> Self {
        let bytes = fs::read(run.join("members")).unwrap_or_default();
        let generation = bytes.get(12..16).unwrap_or_default();
        Self { seed: fnv(fnv(0xcbf2_9ce4_8422_2325, id.as_bytes()), generation), bytes }
    }

    /// Each with its offset in the file.
    pub fn all(&self) -> impl Iterator<Item = (usize, MemberSlot)> {
        let blocks = (1..self.bytes.len() / BLOCK).map(|block| block * BLOCK);
        blocks.filter_map(|at| Some((at, self.at(at)?)))
    }

    fn at(&self, at: usize) -> Option<MemberSlot> {
        let number = |from: usize| {
            let bytes = self.bytes[at + from..].first_chunk()?;
            Some(u64::from_le_bytes(*bytes))
        };
        let first = number(0)?;
        let is_sealed = number(24)? == self.sum(at);
        let (kind, pid) = (first & 0xffff_ffff, i32::try_from(first >> 32).ok()?);
        let inode = number(16)?;
        let slot = MemberSlot { pid, start_ticks: number(8)?, inode: (kind == 2).then_some(inode) };
        (is_sealed && matches!(kind, 1 | 2)).then_some(slot)
    }

    fn sum(&self, at: usize) -> u64 {
        fnv(fnv(self.seed, &(at as u64).to_le_bytes()), &self.bytes[at..at + 24])
    }

    /// Writes another start time into a slot, as if it had been written so.
    pub fn set_start(&mut self, at: usize, ticks: u64) {
        self.bytes[at + 8..at + 16].copy_from_slice(&ticks.to_le_bytes());
        let sum = self.sum(at);
        self.bytes[at + 24..at + 32].copy_from_slice(&sum.to_le_bytes());
    }

    /// The owner of the file stays.
    pub fn write(&self, run: &Path) -> Outcome {
        let path = run.join("members");
        if path.exists() { fs::write(path, &self.bytes).context("members") } else { Ok(()) }
    }
}

fn fnv(from: u64, bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(from, step)
}
