//! The launch: what holds for one start of a run only.

use crate::request::PROTOCOL_VERSION;
use crate::sealed::Sealed;
use crate::spec::{Spec, SpecError, read_strictly};
use crate::text::Text;
use fullstop_core::id::Id;
use fullstop_core::identity::Identity;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What holds for one start only. A restart has another launch for the same [`Spec`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Launch {
    /// The id of the run.
    pub id: Id,
    /// The generation that is started.
    pub generation: u32,
    /// Where the run stands.
    pub placement: Placement,
    /// The program that asked for the run; a restarted run has no host.
    #[serde(default)]
    pub host: Option<Host>,
    /// Where its record is kept, if not where records usually are.
    #[serde(default)]
    pub state_dir: Option<Text>,
    /// What its group was when the run was asked for.
    #[serde(default)]
    pub group_generations: Option<GroupGenerations>,
    /// What is in the secrets of the spec, in their order.
    #[serde(default)]
    pub secrets: Vec<Sealed>,
}

impl Launch {
    /// The first start of a run.
    pub fn new(id: Id, placement: Placement) -> Launch {
        Launch {
            id,
            generation: 1,
            placement,
            host: None,
            state_dir: None,
            group_generations: None,
            secrets: Vec::new(),
        }
    }
}

/// The program that a run belongs to.
///
/// ```
/// let host: fullstop_protocol::Host = serde_json::from_str(
///     r#"{"app": "my-app", "process": {"pid": 42, "start_ticks": 555, "inode": null}}"#,
/// )?;
/// assert_eq!(host.app.as_deref(), Some("my-app"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Host {
    /// What the program calls itself, to know its runs again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app: Option<String>,
    /// The process of it that asked.
    pub process: Identity,
}

impl Host {
    /// Whether this can be the name of an application: a word that is typed and shown.
    pub fn check_app(name: &str) -> Result<(), AppNameError> {
        const LONGEST: usize = 256;
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte);
        let is_word = !name.is_empty() && name.len() <= LONGEST && name.bytes().all(letter);
        if is_word { Ok(()) } else { Err(AppNameError(name.to_owned())) }
    }
}

/// Why this is no name of an application.
///
/// ```
/// use fullstop_protocol::Host;
///
/// assert!(Host::check_app("my-app").is_ok());
/// assert!(Host::check_app("my app").unwrap_err().to_string().starts_with("\"my app\" is no name"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{0:?} is no name of an application: letters, digits, '.', '_', '-' and '/', up to 256 of them"
)]
pub struct AppNameError(pub String);

/// Where a run stands to its caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// In its place: `fullstop run`. It works without a record, if it must.
    #[default]
    Foreground,
    /// Apart from it, with what it gave for stdin, stdout and stderr.
    Beside,
    /// Apart from it, writing to logs in the run's directory.
    Background,
    /// Apart from it, on a terminal of its own, on which it is about to open a window:
    /// `fullstop run --pty`.
    Window,
}

/// The generations of a group and of every group above it, the outermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GroupGenerations(pub Vec<String>);

/// What a host hands to the process that becomes the guard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Start {
    /// The version of the wire that the host speaks. The keeper may be an executable of
    /// another version.
    #[serde(default = "protocol")]
    pub protocol: u32,
    /// What was asked for.
    pub spec: Spec,
    /// What holds for this start only.
    pub launch: Launch,
}

/// That of a host which does not tell: the first that had a start like this.
fn protocol() -> u32 {
    2
}

impl Start {
    /// A start by the wire of this version.
    pub fn new(spec: Spec, launch: Launch) -> Start {
        Start { protocol: PROTOCOL_VERSION, spec, launch }
    }

    /// Reads a start; in its spec no unknown field is allowed, as in [`Spec::from_json`].
    pub fn from_json(json: &[u8]) -> Result<Start, SpecError> {
        /// What stands in the start of any version.
        #[derive(Deserialize)]
        struct Version {
            #[serde(default = "protocol")]
            protocol: u32,
        }
        match serde_json::from_slice(json) {
            Ok(Version { protocol }) if protocol != PROTOCOL_VERSION => {
                Err(SpecError::UnsupportedProtocol { theirs: protocol })
            }
            _ => read_strictly(json, "spec."),
        }
    }

    /// Whether this can be started, by this version, as it was meant.
    pub fn check(&self) -> Result<(), SpecError> {
        self.spec.check()?;
        let app = self.launch.host.as_ref().and_then(|host| host.app.as_deref());
        if let Err(error) = app.map_or(Ok(()), Host::check_app) {
            return Err(SpecError::Field { field: "host", why: error.to_string() });
        }
        let (named, given) = (self.spec.secrets.len(), self.launch.secrets.len());
        if named == given {
            return Ok(());
        }
        let why = format!("{named} secrets are asked for, and {given} are given");
        Err(SpecError::Field { field: "secrets", why })
    }
}
