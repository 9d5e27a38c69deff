//! What the whole machine has in use, of what runs take and must give back.

use std::fs;
use std::time::{Duration, Instant};

use crate::Outcome;

/// Memory that nobody gives back but by ending: caches, which the kernel drops at
/// will, are not in it.
const HELD: [&str; 5] = ["AnonPages:", "SUnreclaim:", "KernelStack:", "PageTables:", "Percpu:"];
/// The kernel frees some of it only a grace period after the last process is gone.
const PATIENCE: Duration = Duration::from_secs(10);
const AGAIN: Duration = Duration::from_millis(200);

#[derive(Clone, Copy)]
pub struct Level {
    pub memory_kib: u64,
    pub descriptors: u64,
}

impl Level {
    pub fn now() -> Outcome<Self> {
        let meminfo = fs::read_to_string("/proc/meminfo")?;
        let memory_kib = HELD
            .iter()
            .filter_map(|name| meminfo.lines().find_map(|line| line.strip_prefix(name)))
            .filter_map(|value| value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok())
            .sum();
        let descriptors = fs::read_to_string("/proc/sys/fs/file-nr")?
            .split_whitespace()
            .next()
            .and_then(|count| count.parse().ok())
            .ok_or("file-nr holds no number")?;
        Ok(Self { memory_kib, descriptors })
    }

    /// The least within a while, which ends once both are back where they were.
    pub fn back_to(before: Self) -> Outcome<Self> {
        let deadline = Instant::now() + PATIENCE;
        let mut least = Self::now()?;
        loop {
            let back = least.memory_kib <= before.memory_kib;
            if (back && least.descriptors <= before.descriptors) || Instant::now() >= deadline {
                return Ok(least);
            }
            std::thread::sleep(AGAIN);
            let now = Self::now()?;
            least.memory_kib = least.memory_kib.min(now.memory_kib);
            least.descriptors = least.descriptors.min(now.descriptors);
        }
    }
}
