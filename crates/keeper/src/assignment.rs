//! What guard and keeper are to do.

use crate::sink::Sink;
use fullstop_cage::linux::Origin;
use fullstop_cage::plain;
use fullstop_core::signal::Signal;
use fullstop_protocol::{HostPolicy, Launch, Report, Spec, Text};
use fullstop_store::{GroupName, Tag};
use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// What every member inherits unless it scrubs its environment.
pub const MARKER: &str = "FULLSTOP_RUN";

/// What a terminal of its own is, where nobody says: what every program knows.
const TERM: &str = "xterm-256color";

/// A run as it was asked for, and what holds for this start of it.
#[derive(Debug)]
pub struct Assignment {
    pub spec: Spec,
    pub launch: Launch,
    /// Where its report is written, beside its record.
    pub report: Option<Sink>,
    pub verbosity: Verbosity,
}

/// How much is said on stderr.
///
/// ```
/// use fullstop_keeper::Verbosity;
///
/// assert!(Verbosity::Quiet < Verbosity::Verbose);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd)]
pub enum Verbosity {
    Quiet,
    #[default]
    Normal,
    Verbose,
}

/// Whether a run in the foreground is stopped when its parent dies. Without a word, with a
/// terminal the shell's rules apply; nohup says that it should live on; and a parent that is
/// pid 1 (or outside our namespace) is no host.
pub fn stops_with_parent(policy: Option<HostPolicy>, on_terminal: bool, parent: i32) -> bool {
    match policy {
        Some(HostPolicy::Stop) => parent > 0,
        Some(HostPolicy::Ignore) => false,
        None => !on_terminal && parent > 1 && !Origin::get().ignored(Signal::HUP),
    }
}

impl Assignment {
    /// Where its record is kept or would be, once that is known.
    pub fn state_dir(&self) -> Option<&Path> {
        self.launch.state_dir.as_ref().map(|dir| Path::new(&dir.0))
    }

    pub fn set_state_dir(&mut self, dir: Option<PathBuf>) {
        self.launch.state_dir = dir.map(|dir| Text(dir.into_os_string()));
    }

    /// The run's id, and where its record is kept or would be.
    pub fn tag(&self) -> Option<Tag> {
        self.state_dir().map(|dir| Tag::new(&self.launch.id, dir))
    }

    /// What the run's cgroup is called. One that can be written down nowhere has no tag.
    pub fn cgroup_name(&self) -> OsString {
        let untagged = || format!("fullstop-{}", self.launch.id);
        self.tag().map_or_else(untagged, |tag| tag.cgroup()).into()
    }

    pub fn group(&self) -> fullstop_store::Result<Option<GroupName>> {
        self.spec.group.as_deref().map(str::parse).transpose()
    }

    /// Argument and environment strings as the kernel takes them. No zero byte is in them: the
    /// spec was checked.
    pub fn kernel_argv(&self) -> Vec<CString> {
        self.spec.argv.iter().filter_map(|word| CString::new(word.0.as_bytes()).ok()).collect()
    }

    /// Every member can be suspected by the marker, until it scrubs its environment.
    pub fn kernel_env(&self) -> Vec<CString> {
        let env = &self.spec.env;
        let marker = (Text::from(MARKER), Text(self.marker()));
        let pair = |(key, value): &(Text, Text)| {
            let (key, value) = (key.0.as_bytes(), value.0.as_bytes());
            // With room for the zero, or each would be allocated twice.
            let mut text = Vec::with_capacity(key.len() + value.len() + 2);
            text.extend_from_slice(key);
            text.push(b'=');
            text.extend_from_slice(value);
            CString::new(text).ok()
        };
        let term = (Text::from("TERM"), Text::from(TERM));
        let needed =
            self.spec.output.terminal().is_some() && env.iter().all(|(key, _)| *key != term.0);
        // What was inherited under the name of a secret gives way to that.
        let is_secret = |key: &Text| self.spec.secrets.iter().any(|secret| key.0 == *secret.name);
        let others = env.iter().filter(|(key, _)| key.0 != MARKER && !is_secret(key));
        others.chain([&marker]).chain(needed.then_some(&term)).filter_map(pair).collect()
    }

    /// The ids of the runs it is in, the innermost last.
    fn marker(&self) -> OsString {
        let mut marker = self.spec.variable(MARKER).cloned().unwrap_or_default().0;
        if !marker.is_empty() {
            marker.push("/");
        }
        marker.push(self.launch.id.as_str());
        marker
    }

    /// Where the command begins, if that is not where we are: a directory that the caller is
    /// in may be one that it cannot enter by its path.
    pub fn kernel_cwd(&self) -> Option<CString> {
        let cwd = self.spec.cwd.as_ref()?;
        let is_here = std::env::current_dir().is_ok_and(|here| here.as_os_str() == cwd.0);
        if is_here { None } else { CString::new(cwd.0.as_bytes()).ok() }
    }

    /// Writes the report where it was asked for.
    /// Returns what could not be written, behind what could not be `before`.
    pub fn write_report(&self, report: &Report, before: Option<String>) -> Option<String> {
        let written = self.report.as_ref().map(|sink| sink.write(report));
        let error = written.and_then(Result::err);
        let unwritten = error.map(|why| format!("cannot write the report: {}", plain(&why)));
        let all: Vec<String> = before.into_iter().chain(unwritten).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}
