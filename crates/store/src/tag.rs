//! A run's tag: its id, and which state directory it is written down in.
//!
//! Cgroups and keepers carry it, so that they can be told from those of another state
//! directory even when their record is gone.

use fullstop_core::id::Id;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

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
    pub fn new(id: &Id, root: &Path) -> Tag {
        Tag { id: id.clone(), place: hash(root.as_os_str()) }
    }

    /// Whether the run is written down in this state directory.
    pub fn is_of(&self, root: &Path) -> bool {
        self.place == hash(root.as_os_str())
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

/// FNV-1a: it tells a few directories of one user apart, in every version alike.
fn hash(text: &OsStr) -> u32 {
    let step = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    text.as_bytes().iter().fold(0x811c_9dc5, step)
}

#[cfg(test)]
mod tests {
    use super::*;

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
