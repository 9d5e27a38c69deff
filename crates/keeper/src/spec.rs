//! What to run, and how.

use crate::secret::wipe;
use crate::sink::Sink;
use fullstop_cage::linux::Origin;
use fullstop_cage::plain;
use fullstop_core::id::Id;
use fullstop_core::machine::Plan;
use fullstop_core::report::{Report, Wanted};
use fullstop_core::signal::Signal;
use fullstop_store::{GroupGenerations, GroupName, Streams, Tag, Text};
use serde::{Deserialize, Serialize};
use std::ffi::{CString, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// What every member inherits unless it scrubs its environment.
pub const MARKER: &str = "FULLSTOP_RUN";

/// What a terminal of its own is, where nobody says: what every program knows.
const TERM: &str = "xterm-256color";

/// A run, as it was asked for.
#[derive(Debug)]
pub struct Spec {
    pub id: Id,
    pub name: Option<String>,
    pub group: Option<GroupName>,
    /// What its group was when it was asked for; for this start alone.
    pub group_generations: Option<GroupGenerations>,
    pub generation: u32,
    pub argv: Vec<OsString>,
    pub env: Vec<(OsString, OsString)>,
    pub cwd: Option<OsString>,
    pub plan: Plan,
    pub cage: Wanted,
    pub on_host_exit: HostPolicy,
    pub report: Option<Sink>,
    /// Where its record is kept, if not where records usually are.
    pub store: Option<PathBuf>,
    pub ground: Ground,
    pub streams: Streams,
    pub secrets: Vec<Secret>,
    pub loudness: Loudness,
}

/// What the command gets on a descriptor of its own, and nobody else is told. It goes
/// from the host to the keeper, and never to disk.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Secret {
    /// The variable that tells the command the number of the descriptor.
    pub name: Text,
    /// The file it comes from, for a restart.
    pub path: Text,
    #[serde(with = "crate::secret")]
    pub content: Text,
}

impl Secret {
    /// Leaves nothing of it in memory.
    pub fn wipe(self) {
        wipe(&mut self.content.0.into_vec());
    }
}

impl std::fmt::Debug for Secret {
    /// Whoever prints a spec must not tell.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secret({:?})", self.name)
    }
}

/// Where a run stands to whoever asked for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ground {
    /// In its place: `fullstop run`. It works without a record, if it must.
    #[default]
    Front,
    /// Apart from it, with what it gave for stdin, stdout and stderr.
    Aside,
    /// Apart from it, writing to logs in the run's directory.
    Back,
    /// Apart from it, on a terminal of its own, on which it is about to open a window:
    /// `fullstop run --pty`.
    Window,
}

/// What the host's death means.
///
/// ```
/// use fullstop_keeper::HostPolicy;
///
/// assert!(HostPolicy::Stop.stops(true, 42));
/// assert!(!HostPolicy::Guess.stops(true, 42), "with a terminal the shell's rules apply");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostPolicy {
    /// Stop, unless whoever started us meant it to live on.
    #[default]
    Guess,
    Stop,
    Ignore,
}

/// How much is said on stderr.
///
/// ```
/// use fullstop_keeper::Loudness;
///
/// assert!(Loudness::Quiet < Loudness::Verbose);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd)]
pub enum Loudness {
    Quiet,
    #[default]
    Normal,
    Verbose,
}

impl HostPolicy {
    /// With a terminal the shell's rules apply; nohup says it should live on; and
    /// a parent that is pid 1 (or outside our namespace) is nobody's host.
    pub fn stops(self, on_terminal: bool, parent: i32) -> bool {
        match self {
            HostPolicy::Stop => parent > 0,
            HostPolicy::Ignore => false,
            HostPolicy::Guess => !on_terminal && parent > 1 && !Origin::get().ignored(Signal::HUP),
        }
    }
}

impl Spec {
    /// The run's id, and where its record is kept or would be.
    pub fn tag(&self) -> Option<Tag> {
        self.store.as_ref().map(|store| Tag::new(&self.id, store))
    }

    /// What the run's cgroup is called. One that can be written down nowhere has no tag.
    pub fn cgroup_name(&self) -> OsString {
        self.tag().map_or_else(|| format!("fullstop-{}", self.id), |tag| tag.cgroup()).into()
    }

    /// Argument and environment strings as the kernel takes them. Nothing can hold
    /// a NUL here: it all came from a command line or the environment.
    pub fn kernel_argv(&self) -> Vec<CString> {
        self.argv.iter().filter_map(|word| CString::new(word.as_bytes()).ok()).collect()
    }

    /// Every member can be suspected by the marker, until it scrubs its environment.
    pub fn kernel_env(&self) -> Vec<CString> {
        let marker = (MARKER.into(), self.marker());
        let pair = |(key, value): &(OsString, OsString)| {
            // With room for the zero, or each would be allocated twice.
            let mut text = Vec::with_capacity(key.len() + value.len() + 2);
            text.extend_from_slice(key.as_bytes());
            text.push(b'=');
            text.extend_from_slice(value.as_bytes());
            CString::new(text).ok()
        };
        let term = ("TERM".into(), TERM.into());
        let needed =
            self.streams.terminal().is_some() && self.env.iter().all(|(key, _)| *key != term.0);
        let others = self.env.iter().filter(|(key, _)| key != MARKER);
        others.chain([&marker]).chain(needed.then_some(&term)).filter_map(pair).collect()
    }

    /// The ids of the runs it is in, the innermost last.
    fn marker(&self) -> OsString {
        let outer = self.env.iter().find(|(key, _)| key == MARKER).map(|(_, value)| value);
        let mut marker = outer.cloned().unwrap_or_default();
        if !marker.is_empty() {
            marker.push("/");
        }
        marker.push(self.id.as_str());
        marker
    }

    pub fn shown_command(&self) -> Vec<String> {
        self.argv.iter().map(|word| word.to_string_lossy().into_owned()).collect()
    }

    /// The command's own PATH, in which it is searched for.
    pub fn path(&self) -> Option<&OsString> {
        self.env.iter().find(|(key, _)| key == "PATH").map(|(_, value)| value)
    }

    /// Writes the report where it was asked for; returns what went wrong.
    /// Returns what could not be written, behind what could not be `before`.
    pub fn write_report(&self, report: &Report, before: Option<String>) -> Option<String> {
        let written = self.report.as_ref().map(|sink| sink.write(report));
        let error = written.and_then(Result::err);
        let unwritten = error.map(|why| format!("cannot write the report: {}", plain(&why)));
        let all: Vec<String> = before.into_iter().chain(unwritten).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    pub fn kernel_cwd(&self) -> Option<CString> {
        self.cwd.clone().and_then(|cwd| CString::new(cwd.into_vec()).ok())
    }
}
