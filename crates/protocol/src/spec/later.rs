//! Parts of a spec that this version refuses as `unsupported`. They are fixed here, so that
//! every client can say them and none has to guess whether they were dropped.

use serde::{Deserialize, Serialize};

/// A name that at most one live run of this user may hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Key {
    /// The name, any text.
    pub name: String,
    /// What a start does if another run holds it.
    #[serde(default)]
    pub if_busy: IfBusy,
}

/// What a start does if its key is held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum IfBusy {
    /// It fails.
    #[default]
    Refuse,
    /// Waits until the holder has ended.
    Wait,
    /// Stops the holder first.
    Replace,
}

/// Whose rights the command has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct User {
    /// The user id.
    pub uid: u32,
    /// The group id.
    pub gid: u32,
}

/// A resource that `setrlimit` bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
// A key of a map, of which schemars takes the words only if none has a description.
#[allow(missing_docs, reason = "they are called as setrlimit(2) calls them")]
pub enum Resource {
    AddressSpace,
    Core,
    Cpu,
    Data,
    FileSize,
    LockedMemory,
    OpenFiles,
    Processes,
    Stack,
}

/// What the whole run may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Limits {
    /// Memory of all members together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Members at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
    /// Hundredths of one processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_percent: Option<u32>,
}
