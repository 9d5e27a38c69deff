//! The spec: everything that was asked for a run. One type, from the caller to the disk, and
//! the same again at each restart.

mod later;

pub use later::{IfBusy, Key, Limits, Resource, User};

use crate::labels::Labels;
use crate::milliseconds;
use crate::reply::FailureCode;
use crate::request::PROTOCOL_VERSION;
use crate::streams::{Drain, Output, Stdin};
use crate::text::Text;
use crate::variables;
use fullstop_core::cage::CagePreference;
use fullstop_core::id::Id;
use fullstop_core::ladder::Ladder;
use fullstop_core::machine::Plan;
use fullstop_core::words::OnExit;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;
use thiserror::Error;

/// The version of the spec. Raised when a field changes its meaning; new fields do not raise it.
pub const SPEC_VERSION: u32 = 2;

/// What was asked for a run.
///
/// What holds for one start only stands in the [`Launch`](crate::Launch).
///
/// ```
/// use fullstop_protocol::{Spec, SpecError};
///
/// let spec = Spec::from_json(br#"{"argv": ["claude"], "timeout_ms": 60000}"#)?;
/// assert_eq!(spec.timeout, Some(std::time::Duration::from_secs(60)));
///
/// let refused = Spec::from_json(br#"{"argv": ["claude"], "memory_max": 7}"#);
/// assert_eq!(refused, Err(SpecError::Unsupported { field: "memory_max".into() }));
/// # Ok::<(), SpecError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Spec {
    /// The version of this format.
    #[serde(default = "version")]
    pub version: u32,
    /// The command and its arguments.
    pub argv: Vec<Text>,
    /// The whole environment of the command, as `NAME=value`.
    #[serde(default, with = "variables")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<crate::schema::Variable>"))]
    pub env: Vec<(Text, Text)>,
    /// The working directory of the command; without it, that of the process that starts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<Text>,
    /// A name by which the run can be found, beside its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The group that it joins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Its labels.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// The steps of a stop.
    #[serde(default)]
    pub ladder: Ladder,
    /// What happens to the rest when the leader exits and others live.
    #[serde(default)]
    pub on_exit: OnExit,
    /// What the death of the host means; without a word it depends on the placement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_host_exit: Option<HostPolicy>,
    /// Which cage is wanted.
    #[serde(default)]
    pub cage: CagePreference,
    /// How long it may take in all.
    #[serde(
        rename = "timeout_ms",
        default,
        with = "milliseconds::optional",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub timeout: Option<Duration>,
    /// How long it may be silent.
    #[serde(
        rename = "no_output_timeout_ms",
        default,
        with = "milliseconds::optional",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub no_output_timeout: Option<Duration>,
    /// How long it may be silent and use no processor.
    #[serde(
        rename = "idle_timeout_ms",
        default,
        with = "milliseconds::optional",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub idle_timeout: Option<Duration>,
    /// Where the command reads from.
    #[serde(default)]
    pub stdin: Stdin,
    /// Where it writes to.
    #[serde(default)]
    pub output: Output,
    /// How many bytes each log keeps: its head and its tail.
    #[serde(rename = "log_max_bytes", default, skip_serializing_if = "Option::is_none")]
    pub log_max: Option<u64>,
    /// How long is read what outlives the members.
    #[serde(default)]
    pub drain: Drain,
    /// What the command gets on descriptors of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<SecretFile>,
    /// The caller's descriptors from 3 on that a run in the background keeps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keep_fds: Vec<i32>,
    /// A file that gets the report as well, of each generation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Text>,

    /// At most one live run holds a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Key>,
    /// What the command is told as its own name, if that is not the first word of `argv`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argv0: Option<Text>,
    /// The mask of the files that it makes. Not supported yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub umask: Option<u32>,
    /// Whose rights it has. Not supported yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<User>,
    /// Its further groups. Not supported yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<Vec<u32>>,
    /// What `setrlimit` bounds. Not supported yet.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rlimits: BTreeMap<Resource, u64>,
    /// What the whole run may use. Not supported yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
}

fn version() -> u32 {
    SPEC_VERSION
}

/// What the host's death means for a run.
///
/// ```
/// use fullstop_protocol::HostPolicy;
///
/// assert_eq!(serde_json::to_string(&HostPolicy::Ignore)?, r#""ignore""#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum HostPolicy {
    /// The run is stopped.
    Stop,
    /// The run goes on.
    Ignore,
}

/// A secret: what is in this file goes to the command on a descriptor, and nowhere else.
///
/// ```
/// use fullstop_protocol::SecretFile;
///
/// let key = SecretFile { name: "API_KEY_FD".into(), path: "/run/key".into(), fd: None };
/// assert_eq!(serde_json::to_string(&key)?, r#"{"name":"API_KEY_FD","path":"/run/key"}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SecretFile {
    /// The variable that tells the command the number of the descriptor.
    pub name: String,
    /// The file that it is read from, once.
    pub path: Text,
    /// That number, if it is to be a certain one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fd: Option<i32>,
}

/// Why a spec is refused.
///
/// ```
/// use fullstop_protocol::{FailureCode, SpecError};
///
/// let later = SpecError::Unsupported { field: "umask".to_owned() };
/// assert_eq!(later.code(), FailureCode::Unsupported);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SpecError {
    /// This fullstop does not know the field, or cannot do yet what it asks for.
    #[error("{field} is not supported by this version of fullstop")]
    Unsupported {
        /// Its name.
        field: String,
    },
    /// What stands in that field cannot be what was meant.
    #[error("{why}")]
    Field {
        /// Its name.
        field: &'static str,
        /// What is wrong, in a sentence.
        why: String,
    },
    /// It is no spec at all.
    #[error("no spec: {why}")]
    Invalid {
        /// What is wrong, in a sentence.
        why: String,
    },
    /// A start in another version of the wire than ours.
    #[error(
        "this fullstop starts runs by version {PROTOCOL_VERSION} of the protocol, and was asked by \
         version {theirs}"
    )]
    UnsupportedProtocol {
        /// Which one.
        theirs: u32,
    },
}

impl SpecError {
    /// A stable word for programs.
    pub fn code(&self) -> FailureCode {
        match self {
            SpecError::Unsupported { .. } => FailureCode::Unsupported,
            SpecError::Field { .. } | SpecError::Invalid { .. } => FailureCode::InvalidSpec,
            SpecError::UnsupportedProtocol { .. } => FailureCode::UnsupportedProtocol,
        }
    }
}

impl Spec {
    /// A command with all that is usual: nothing inherited but stdin and output.
    pub fn new(argv: Vec<Text>) -> Spec {
        Spec {
            version: SPEC_VERSION,
            argv,
            env: Vec::new(),
            cwd: None,
            name: None,
            group: None,
            labels: Labels::default(),
            ladder: Ladder::default(),
            on_exit: OnExit::default(),
            on_host_exit: None,
            cage: CagePreference::default(),
            timeout: None,
            no_output_timeout: None,
            idle_timeout: None,
            stdin: Stdin::default(),
            output: Output::default(),
            log_max: None,
            drain: Drain::default(),
            secrets: Vec::new(),
            keep_fds: Vec::new(),
            report: None,
            key: None,
            argv0: None,
            umask: None,
            user: None,
            groups: None,
            rlimits: BTreeMap::new(),
            limits: None,
        }
    }

    /// Reads a spec. What this version does not know is refused, never dropped: it may be a
    /// limit.
    pub fn from_json(json: &[u8]) -> Result<Spec, SpecError> {
        read_strictly(json, "")
    }

    /// Whether this can be run, by this version, as it was meant.
    pub fn check(&self) -> Result<(), SpecError> {
        self.check_supported()?;
        check_name(self.name.as_deref())?;
        let is_name = |name: &str| !name.is_empty() && !name.contains(['=', '\0']);
        if let Some(secret) = self.secrets.iter().find(|secret| !is_name(&secret.name)) {
            let why = format!("{:?} is no name of a variable", secret.name);
            return Err(SpecError::Field { field: "secrets", why });
        }
        let variables = self.env.iter().flat_map(|(name, value)| [name, value]);
        let stdin = if let Stdin::File(path) = &self.stdin { Some(path) } else { None };
        let texts = [
            ("argv", self.argv.iter().any(has_zero)),
            ("env", variables.into_iter().any(has_zero)),
            ("cwd", self.cwd.iter().any(has_zero)),
            ("stdin", stdin.is_some_and(has_zero)),
            ("report", self.report.iter().any(has_zero)),
        ];
        match texts.into_iter().find(|(_, has_zero)| *has_zero) {
            // The kernel would take what stands before it for the whole.
            Some((field, _)) => {
                Err(SpecError::Field { field, why: format!("there is a zero byte in {field}") })
            }
            None => Ok(()),
        }
    }

    /// Whether this version can do all that is asked.
    pub fn check_supported(&self) -> Result<(), SpecError> {
        let unsupported = [
            ("key", self.key.is_some()),
            ("argv0", self.argv0.is_some()),
            ("umask", self.umask.is_some()),
            ("user", self.user.is_some()),
            ("groups", self.groups.is_some()),
            ("rlimits", !self.rlimits.is_empty()),
            ("limits", self.limits.is_some()),
            ("secrets.fd", self.secrets.iter().any(|secret| secret.fd.is_some())),
        ];
        match unsupported.into_iter().find(|(_, is_asked)| *is_asked) {
            Some((field, _)) => Err(SpecError::Unsupported { field: field.to_owned() }),
            None if self.version > SPEC_VERSION => {
                Err(SpecError::Unsupported { field: format!("version {}", self.version) })
            }
            None => Ok(()),
        }
    }

    /// What needs a caller beside it, and so can be given by no restart.
    pub fn needs_caller(&self) -> Option<&'static str> {
        if !self.keep_fds.is_empty() {
            Some("its caller's descriptors")
        } else if matches!(self.output, Output::Inherit | Output::Show) {
            Some("its caller's stdout and stderr")
        } else if self.stdin == Stdin::Inherit {
            Some("its caller's stdin")
        } else {
            None
        }
    }

    /// What the state machine decides by.
    pub fn plan(&self) -> Plan {
        Plan {
            ladder: self.ladder.clone(),
            on_exit: self.on_exit,
            timeout: self.timeout,
            no_output: self.no_output_timeout,
            idle: self.idle_timeout,
        }
    }

    /// How long the last step of a stop and the drain may take together.
    pub fn last_step(&self) -> Duration {
        let kill = self.ladder.kill_patience();
        if self.output.is_captured() { kill.max(self.drain.together()) } else { kill }
    }

    /// The command as it can be shown.
    pub fn shown_command(&self) -> Vec<String> {
        self.argv.iter().map(|word| word.0.to_string_lossy().into_owned()).collect()
    }

    /// What was inherited under the name of a secret gives way to that.
    pub fn hide_secret_names(&mut self) {
        self.env.retain(|(key, _)| self.secrets.iter().all(|secret| key.0 != *secret.name));
    }

    /// A variable of the command's environment.
    pub fn variable(&self, name: &str) -> Option<&Text> {
        self.env.iter().find(|(key, _)| key.0 == name).map(|(_, value)| value)
    }
}

fn has_zero(text: &Text) -> bool {
    text.0.as_encoded_bytes().contains(&0)
}

/// A name is typed and shown, and never taken for an id.
fn check_name(name: Option<&str>) -> Result<(), SpecError> {
    const LONGEST: usize = 100;
    let why = match name {
        Some(name)
            if name.is_empty() || name.len() > LONGEST || name.contains(char::is_control) =>
        {
            format!("{name:?} is no name: it is empty, too long, or cannot be shown")
        }
        // A whole id always means its run, so that such a name could mean another one.
        Some(name) if name.parse::<Id>().is_ok() => {
            format!("{name:?} is no name: it is written like the id of a run")
        }
        _ => return Ok(()),
    };
    Err(SpecError::Field { field: "name", why })
}

/// Reads a value that holds a spec at `path` (`spec.`, or nothing if it is one). Returns the
/// first field of the spec that this version does not know as well.
pub fn read_around_spec<T: DeserializeOwned>(
    json: &[u8],
    path: &str,
) -> serde_json::Result<(T, Option<String>)> {
    let mut unknown = None;
    let mut reader = serde_json::Deserializer::from_slice(json);
    let value = serde_ignored::deserialize(&mut reader, |ignored| {
        if let Some(field) = ignored.to_string().strip_prefix(path) {
            unknown.get_or_insert_with(|| field.to_owned());
        }
    })?;
    reader.end()?;
    Ok((value, unknown))
}

/// The same, where an unknown field is an error.
pub(crate) fn read_strictly<T: DeserializeOwned>(json: &[u8], path: &str) -> Result<T, SpecError> {
    match read_around_spec(json, path) {
        Ok((value, None)) => Ok(value),
        Ok((_, Some(field))) => Err(SpecError::Unsupported { field }),
        Err(error) => Err(SpecError::Invalid { why: error.to_string() }),
    }
}

#[cfg(test)]
mod tests;
