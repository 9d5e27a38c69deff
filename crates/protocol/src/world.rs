//! Where a pid means something: one machine, one boot, one pid namespace.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Where a record was written. Records of another place are not ours to act upon: a home may
/// be shared.
///
/// ```
/// use fullstop_protocol::World;
///
/// let world: World =
///     serde_json::from_str(r#"{"machine": "a", "boot": "b", "pid_namespace": 4026531836}"#)?;
/// assert_eq!(world.time_namespace, None);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct World {
    /// The id of the machine.
    pub machine: String,
    /// The id of its boot.
    pub boot: String,
    /// The inode of the pid namespace.
    pub pid_namespace: u64,
    /// The inode of the time namespace, in whose time processes have started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_namespace: Option<u64>,
}

/// Where a record was written, as far as can be told from here.
///
/// ```
/// use fullstop_protocol::Whereabouts;
///
/// assert!(Whereabouts::OtherNamespace.is_elsewhere());
/// assert!(!Whereabouts::BeforeReboot.is_elsewhere());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Whereabouts {
    /// Its pids mean the same here.
    Here,
    /// There is no usable `/proc`, so that a record of this place cannot be told either.
    Unseen,
    /// This machine, before it was last started.
    BeforeReboot,
    /// Under this kernel, which its boot id names: in another pid namespace, or in a
    /// container with a machine id or a host name of its own.
    OtherNamespace,
    /// Under another kernel. What a container calls its machine dies with the container,
    /// so that one of an earlier boot cannot be told from one of another machine.
    OtherMachine,
}

impl Whereabouts {
    /// Whether pids and processes that are written down there mean nothing here, and
    /// never will.
    pub fn is_elsewhere(self) -> bool {
        matches!(self, Whereabouts::OtherNamespace | Whereabouts::OtherMachine)
    }

    /// In a few words, for a list.
    pub fn brief(self) -> &'static str {
        match self {
            Whereabouts::Here => "here",
            Whereabouts::Unseen => "no /proc",
            Whereabouts::BeforeReboot => "before a reboot",
            Whereabouts::OtherNamespace => "another pid namespace",
            Whereabouts::OtherMachine => "another machine",
        }
    }
}

impl fmt::Display for Whereabouts {
    /// As a sentence about a run.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Whereabouts::Here => "it belongs here",
            Whereabouts::Unseen => "there is no usable /proc here",
            Whereabouts::BeforeReboot => "it belongs to an earlier boot of this machine",
            Whereabouts::OtherNamespace => {
                "it belongs to another pid namespace, perhaps of a container that is gone"
            }
            Whereabouts::OtherMachine => {
                "it belongs to another machine, or to a container of an earlier boot"
            }
        })
    }
}
