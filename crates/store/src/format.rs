//! What stands in the files of a run directory. The field names are stable.

mod v1;

use fullstop_core::cage::CageKind;
use fullstop_core::id::Id;
use fullstop_protocol::{
    Ancestry, Event, Host, RECORD_VERSION, Record, RunState, Spec, SpecError, Timestamp, World,
    read_around_spec,
};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A file that carries its version.
pub trait Format: Sized {
    /// The latest version that is understood, which is the one that is written.
    const VERSION: u32;

    /// Reads a file of this version, or of an earlier one.
    fn parse(version: u32, json: &[u8]) -> serde_json::Result<Self>;
}

/// `spec.json`: what was asked for, and what is known of a generation before it is born. It
/// holds the whole environment, for a restart; only its owner can read it.
///
/// ```
/// use fullstop_store::format::{Format as _, SpecFile};
///
/// let json = include_bytes!("../tests/fixtures/v2/spec.json");
/// let file = SpecFile::parse(2, json)?;
/// assert_eq!(file.spec.name.as_deref(), Some("research"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpecFile {
    pub version: u32,
    pub id: Id,
    pub generation: u32,
    /// Where the cgroup will be, if one can be had: it is written down before it is
    /// made, so that a sweep can find it whatever happens in between.
    #[serde(default, with = "fullstop_protocol::path")]
    pub cgroup: Option<PathBuf>,
    /// How to find the members where there is no cgroup.
    #[serde(default)]
    pub ancestry: Option<Ancestry>,
    /// The program that the run belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<Host>,
    /// The inode of the lock: the lock of a copied directory says nothing.
    #[serde(default)]
    pub lock: Option<u64>,
    pub world: World,
    pub started_at: Timestamp,
    pub spec: Spec,
    /// A field of the spec that a later fullstop has written and this one does not know.
    #[serde(skip)]
    pub unknown: Option<String>,
}

impl SpecFile {
    /// The spec, to be run again; an error, if this version would drop something of it.
    pub fn whole_spec(self) -> Result<Spec, SpecError> {
        match self.unknown {
            Some(field) => Err(SpecError::Unsupported { field }),
            None => self.spec.check_supported().map(|()| self.spec),
        }
    }

    /// The record of this generation before anything has happened.
    pub fn first_record(self) -> Record {
        Record {
            version: RECORD_VERSION,
            id: self.id,
            generation: self.generation,
            command: self.spec.shown_command(),
            name: self.spec.name,
            group: self.spec.group,
            labels: self.spec.labels,
            state: RunState::Starting,
            at: self.started_at,
            events: 0,
            asked: None,
            host: self.host,
            cage: if self.cgroup.is_some() { CageKind::Cgroup } else { CageKind::Tree }.into(),
            cgroup: self.cgroup,
            cgroup_inode: None,
            cgroup_parent_inode: None,
            ancestry: self.ancestry,
            world: self.world,
            keeper: None,
            guard: None,
            leader: None,
            census: Vec::new(),
            has_members_file: false,
            started_at: self.started_at,
            lock: self.lock,
            report: None,
        }
    }
}

impl Format for SpecFile {
    const VERSION: u32 = 2;

    fn parse(version: u32, json: &[u8]) -> serde_json::Result<SpecFile> {
        match version {
            1 => serde_json::from_slice::<v1::SpecFile>(json).map(Into::into),
            _ => {
                let (file, unknown) = read_around_spec(json, "spec.")?;
                Ok(SpecFile { unknown, ..file })
            }
        }
    }
}

impl Format for Record {
    const VERSION: u32 = RECORD_VERSION;

    fn parse(version: u32, json: &[u8]) -> serde_json::Result<Record> {
        match version {
            1 => serde_json::from_slice::<v1::RecordFile>(json).map(Into::into),
            _ => serde_json::from_slice(json),
        }
    }
}

/// Reads one line of `events.jsonl`. Nothing, if it is no event.
pub(crate) fn event(line: &[u8]) -> Option<Event> {
    let earlier = |_| serde_json::from_slice::<v1::Event>(line).map(Into::into);
    serde_json::from_slice(line).or_else(earlier).ok()
}
