//! Which runs have a name: `names/<name>/<id>-<started_at>`, an empty file each.
//!
//! The listing of one directory tells which runs a name may mean and which of them was
//! started last, without a look at any other run. The index is a help and not the truth:
//! an entry is made before the spec that tells the name and goes after the run, so there
//! may be one too many, and the record of whichever is chosen is asked.

use crate::error::{Result, StoreError};
use crate::files::Dir;
use crate::hash;
use crate::rundir::listing;
use fullstop_core::id::Id;
use rustix::fs::{AtFlags, OFlags, renameat, statat, unlinkat};
use rustix::io::Errno;
use std::collections::HashSet;
use std::fmt::Write as _;

pub(crate) const NAMES: &str = "names";
/// It is there if every run is in the index. An older fullstop has kept none.
const WHOLE: &str = "names/.whole";

/// One run under its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    pub started_at: u64,
    pub id: Id,
}

impl Entry {
    pub fn new(id: &Id, started_at: u64) -> Entry {
        Entry { started_at, id: id.clone() }
    }

    fn parse(file: &str) -> Option<Entry> {
        let (id, started_at) = file.split_once('-')?;
        Some(Entry { started_at: started_at.parse().ok()?, id: id.parse().ok()? })
    }

    pub fn path(&self, name: &str) -> String {
        format!("{}/{}-{}", directory(name), self.id, self.started_at)
    }
}

pub(crate) fn add(root: &Dir, name: &str, entry: &Entry) -> Result<()> {
    /// A removal may take the directory away between two calls, seldom twice.
    const TRIES: usize = 100;
    let path = entry.path(name);
    let mut tries = 0;
    loop {
        match root.open_file(&path, OFlags::WRONLY | OFlags::CREATE) {
            Err(error) if error.is_missing() && tries < TRIES => {
                root.make(NAMES)?;
                root.make(&directory(name))?;
                tries += 1;
            }
            made => return made.map(drop),
        }
    }
}

/// The run was started anew.
pub(crate) fn renew(root: &Dir, name: &str, before: &Entry, now: &Entry) -> Result<()> {
    match renameat(&root.fd, before.path(name).as_str(), &root.fd, now.path(name).as_str()) {
        Ok(()) => Ok(()),
        Err(Errno::NOENT) => add(root, name, now),
        Err(errno) => Err(StoreError::io("rename", &root.path.join(before.path(name)), errno)),
    }
}

pub(crate) fn remove(root: &Dir, name: &str, entry: &Entry) {
    if unlinkat(&root.fd, entry.path(name).as_str(), AtFlags::empty()).is_err() {
        // A restart that was cut short has left it with another time.
        let all = entries(root, name).unwrap_or_default();
        for other in all.iter().filter(|other| other.id == entry.id) {
            let _ = unlinkat(&root.fd, other.path(name).as_str(), AtFlags::empty());
        }
    }
    let _ = unlinkat(&root.fd, directory(name).as_str(), AtFlags::REMOVEDIR);
}

/// The runs that may have this name, the one that was started last at the end.
pub(crate) fn entries(root: &Dir, name: &str) -> Result<Vec<Entry>> {
    let mut entries = list(root, &directory(name))?;
    entries.sort_unstable();
    Ok(entries)
}

fn list(root: &Dir, directory: &str) -> Result<Vec<Entry>> {
    match root.below(directory).and_then(|dir| dir.names()) {
        Err(error) if error.is_missing() => Ok(Vec::new()),
        files => Ok(files?.iter().filter_map(|file| Entry::parse(file)).collect()),
    }
}

/// All runs that are in the index under any name.
pub(crate) fn ids(root: &Dir) -> Result<HashSet<Id>> {
    let names = match root.below(NAMES).and_then(|dir| dir.names()) {
        Err(error) if error.is_missing() => return Ok(HashSet::new()),
        names => names?,
    };
    let mut ids = HashSet::new();
    for name in names {
        // What is no directory of entries names no run, and hides no other.
        let entries = list(root, &format!("{NAMES}/{name}")).unwrap_or_default();
        ids.extend(entries.into_iter().map(|entry| entry.id));
    }
    Ok(ids)
}

/// Removes the entries of runs that are gone. A live run whose directory was removed is not:
/// its entry is all that tells its name until its keeper restores it.
pub(crate) fn tidy(root: &Dir) {
    let names = root.below(NAMES).and_then(|dir| dir.names()).unwrap_or_default();
    for directory in names.iter().map(|name| format!("{NAMES}/{name}")) {
        let gone = |entry: &&Entry| {
            let is_missing = |name: &str| {
                let found = statat(&root.fd, name, AtFlags::SYMLINK_NOFOLLOW);
                matches!(found, Err(Errno::NOENT))
            };
            is_missing(&format!("runs/{}", entry.id)) && is_missing(&listing(&entry.id))
        };
        for Entry { started_at, id } in
            list(root, &directory).unwrap_or_default().iter().filter(gone)
        {
            let path = format!("{directory}/{id}-{started_at}");
            let _ = unlinkat(&root.fd, path.as_str(), AtFlags::empty());
        }
        let _ = unlinkat(&root.fd, directory.as_str(), AtFlags::REMOVEDIR);
    }
}

pub(crate) fn is_whole(root: &Dir) -> bool {
    statat(&root.fd, WHOLE, AtFlags::empty()).is_ok()
}

/// Says that every run is in the index. Without it the next search looks at every run.
pub(crate) fn set_whole(root: &Dir) {
    if root.make(NAMES).is_ok() {
        let _ = root.open_file(WHOLE, OFlags::WRONLY | OFlags::CREATE);
    }
}

/// Any text as one file name. Of a long one only the beginning is readable; two that
/// share it and their hash would share a directory, where their records tell them apart.
fn directory(name: &str) -> String {
    const LONGEST: usize = 200;
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => text.push(char::from(byte)),
            b'.' if !text.is_empty() => text.push('.'),
            _ => drop(write!(text, "%{byte:02x}")),
        }
    }
    if text.len() > LONGEST {
        text.truncate(LONGEST);
        let _ = write!(text, "~{:016x}", hash::of(name.as_bytes()));
    }
    format!("{NAMES}/{text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_is_one_file_name() {
        assert_eq!(directory("research-2.0"), "names/research-2.0");
        assert_eq!(directory("two words"), "names/two%20words");
        assert_eq!(directory("../../etc"), "names/%2e.%2f..%2fetc");
        assert_eq!(directory(".whole"), "names/%2ewhole");
        assert_ne!(directory("a%20b"), directory("a b"));
        let long = |last: &str| directory(&("é".repeat(200) + last));
        assert_ne!(long("1"), long("2"));
        assert!(long("1").len() < 250, "{}", long("1"));
    }

    #[test]
    fn the_last_one_is_the_one_that_was_started_last() {
        let id = |chance| Id::new(1_800_000_000_000, chance);
        let mut entries = [Entry::new(&id(1), 30), Entry::new(&id(3), 20), Entry::new(&id(2), 30)];
        entries.sort_unstable();
        assert_eq!(entries[2], Entry::new(&id(2), 30));
        let file = format!("{}-30", id(2));
        assert_eq!(Entry::parse(&file), Some(entries[2].clone()));
        assert_eq!(Entry::parse(".whole"), None);
    }
}
