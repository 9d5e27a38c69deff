//! A run's tag: its id, and which state directory it is written down in.
//!
//! Cgroups and keepers carry it, so that they can be told from those of another state
//! directory even when their record is gone.

use fullstop_core::id::Id;
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// What the name of every cgroup of ours begins with.
const CGROUP: &str = "fullstop-";

/// ```
/// use fullstop_core::id::Id;
/// use fullstop_store::Tag;
/// use std::path::Path;
///
/// let tag = Tag::new(&Id::new(1_800_000_000_000, 7), Path::new("/home/a/.local/state/fullstop"));
/// assert_eq!(Tag::parse(&tag.to_string()), Some(tag.clone()));
/// assert!(tag.is_of(Path::new("/home/a/.local/state/fullstop")));
/// assert!(!tag.is_of(Path::new("/tmp/other")));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag {
    pub id: Id,
    /// A hash of the state directory's path: the directory may be removed and made anew.
    place: u32,
}

impl Tag {
    /// The path is that of an opened store ([`crate::Store::path`]): without links, so that
    /// keepers and all who look for them make the same tag.
    pub fn new(id: &Id, root: &Path) -> Tag {
        Tag { id: id.clone(), place: hash(root) }
    }

    /// Whether the run is written down in this state directory.
    pub fn is_of(&self, root: &Path) -> bool {
        self.place == hash(root)
    }

    /// What the run's cgroup is called.
    pub fn cgroup(&self) -> String {
        format!("{CGROUP}{self}")
    }

    /// The run of a cgroup that is called so, and its tag: a cgroup that was made before
    /// there were tags has none. Nothing, if it is no run's.
    pub fn of_cgroup(name: &str) -> Option<(Id, Option<Tag>)> {
        let rest = name.strip_prefix(CGROUP)?;
        match Tag::parse(rest) {
            Some(tag) => Some((tag.id.clone(), Some(tag))),
            None => Some((rest.parse().ok()?, None)),
        }
    }

    pub fn parse(text: &str) -> Option<Tag> {
        let (id, place) = text.split_once('-')?;
        let digits = place.len() == 8 && place.bytes().all(|digit| digit.is_ascii_hexdigit());
        let place = u32::from_str_radix(place, 16).ok().filter(|_| digits)?;
        Some(Tag { id: id.parse().ok()?, place })
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:08x}", self.id, self.place)
    }
}

/// FNV-1a: it tells a few directories of one user apart, in every version alike. A path
/// may be written with more slashes than it needs.
fn hash(root: &Path) -> u32 {
    let step = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    let plain: PathBuf = root.components().collect();
    plain.as_os_str().as_bytes().iter().fold(0x811c_9dc5, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_the_same_however_it_is_written() {
        let tag = Tag::new(&Id::new(1_800_000_000_000, 7), Path::new("/tmp/state/"));
        assert!(tag.is_of(Path::new("/tmp//state")) && tag.is_of(Path::new("/tmp/./state")));
        assert!(!tag.is_of(Path::new("/tmp/state/x")));
    }

    #[test]
    fn a_cgroup_names_its_run_in_both_forms() {
        let id = Id::new(1_800_000_000_000, 7);
        let tag = Tag::new(&id, Path::new("/tmp/state"));
        assert_eq!(Tag::of_cgroup(&tag.cgroup()), Some((id.clone(), Some(tag))));
        assert_eq!(Tag::of_cgroup(&format!("fullstop-{id}")), Some((id, None)));
        for other in ["fullstop", "fullstop-", "fullstop-arena-1-2", "fullstop-doctor-42-0"] {
            assert_eq!(Tag::of_cgroup(other), None, "{other}");
        }
    }

    #[test]
    fn nothing_else_is_a_tag() {
        let id = Id::new(1_800_000_000_000, 7);
        for other in
            [format!("{id}"), format!("{id}-"), format!("{id}-123"), format!("{id}-+1234567")]
        {
            assert_eq!(Tag::parse(&other), None, "{other}");
        }
    }
}
