//! What went wrong on disk: what was tried, where, and what the kernel said.

use fullstop_cage::plain;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

pub type Result<T> = std::result::Result<T, StoreError>;

/// What went wrong on disk.
///
/// ```
/// use fullstop_store::{Store, StoreError};
/// use std::path::Path;
///
/// let error = Store::at(Path::new("/proc/none")).unwrap_err();
/// assert!(matches!(error, StoreError::Io { .. }));
/// assert!(error.to_string().contains("/proc/none"));
/// ```
#[derive(Debug)]
pub enum StoreError {
    /// Neither FULLSTOP_DIR, nor XDG_STATE_HOME, nor HOME says where.
    Nowhere,
    /// The directory belongs to another user, who could read and change what is in it.
    Foreign {
        /// The directory.
        path: PathBuf,
        /// The uid of its owner.
        owner: u32,
    },
    /// The directory is open to others, and holds more than what is ours.
    Shared {
        /// The directory.
        path: PathBuf,
    },
    /// The kernel said no.
    Io {
        /// What was tried: a verb.
        what: &'static str,
        /// With what.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// Half written, or not written by us.
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Something else than a regular file stands where a file of ours should.
    Strange {
        /// The path of it.
        path: PathBuf,
        /// What it is.
        kind: &'static str,
    },
    /// Written by a later fullstop.
    Newer {
        /// The file.
        path: PathBuf,
        /// The version of its format.
        version: u32,
    },
    /// Its keeper or its guard is alive.
    Live {
        /// The directory of the run.
        path: PathBuf,
    },
    /// This cannot be the name of a group.
    GroupName(String),
    /// Nothing can start in this group.
    GroupClosed(String),
    /// The group is not what it was when the start was asked for: it was closed, and perhaps
    /// opened again, or forgotten by a prune.
    GroupClosedMeanwhile(String),
}

impl StoreError {
    /// Nothing may start in the group now, or what was to start in it has come too late.
    pub fn is_group_closed(&self) -> bool {
        matches!(self, StoreError::GroupClosed(_) | StoreError::GroupClosedMeanwhile(_))
    }

    pub fn io(what: &'static str, path: &Path, source: impl Into<io::Error>) -> StoreError {
        StoreError::Io { what, path: path.to_owned(), source: source.into() }
    }

    /// Whether there is no such thing. Only that is an absence: what cannot be read, for
    /// whatever other reason, may well be there, and is an error.
    pub fn is_missing(&self) -> bool {
        matches!(self, StoreError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// Whether what was to be made is there already.
    pub fn is_taken(&self) -> bool {
        self.os_error().is_some_and(|error| error.kind() == io::ErrorKind::AlreadyExists)
    }

    /// Whether something else than a directory stands there.
    pub fn is_no_directory(&self) -> bool {
        self.os_error().is_some_and(|error| error.kind() == io::ErrorKind::NotADirectory)
    }

    /// Whether there was no room on the disk, or no more that we may use.
    pub fn is_full(&self) -> bool {
        let full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded];
        self.os_error().is_some_and(|error| full.contains(&error.kind()))
    }

    /// A stable word for programs.
    pub fn code(&self) -> &'static str {
        match self {
            StoreError::Nowhere => "no-state-directory",
            StoreError::Foreign { .. } => "foreign-directory",
            StoreError::Shared { .. } => "shared-directory",
            StoreError::Io { .. } => "io",
            StoreError::Damaged { .. } => "damaged",
            StoreError::Strange { .. } => "strange-file",
            StoreError::Newer { .. } => "newer",
            StoreError::Live { .. } => "live",
            StoreError::GroupName(_) => "invalid-group",
            StoreError::GroupClosed(_) | StoreError::GroupClosedMeanwhile(_) => "group-closed",
        }
    }

    /// What the kernel said, if it was asked.
    pub fn os_error(&self) -> Option<&io::Error> {
        match self {
            StoreError::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Nowhere => {
                f.write_str("nowhere to keep records: set FULLSTOP_DIR, XDG_STATE_HOME or HOME")
            }
            StoreError::Foreign { path, owner } => write!(
                f,
                "{} belongs to uid {owner}; set FULLSTOP_DIR to a directory of your own",
                path.display()
            ),
            StoreError::Shared { path } => write!(
                f,
                "{} is open to others and holds other things; set FULLSTOP_DIR to a directory of \
                 its own",
                path.display()
            ),
            StoreError::Io { what, path, source } => {
                write!(f, "cannot {what} {}: {}", path.display(), plain(source))
            }
            StoreError::Damaged { path, why } => write!(f, "{} is damaged: {why}", path.display()),
            StoreError::Strange { path, kind } => {
                write!(f, "{} is {kind}, not a file of ours", path.display())
            }
            StoreError::Newer { path, version } => write!(
                f,
                "{} has version {version}, written by a newer fullstop; it is left alone",
                path.display()
            ),
            StoreError::Live { path } => write!(f, "{}: the run is live", path.display()),
            StoreError::GroupName(why) => f.write_str(why),
            StoreError::GroupClosed(name) => {
                write!(f, "group {name} is closed, nothing can start in it")
            }
            StoreError::GroupClosedMeanwhile(name) => write!(
                f,
                "group {name} was closed, or forgotten by a prune, after this start was asked \
                 for; nothing was started (ask again, if it is still wanted)"
            ),
        }
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StoreError::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
