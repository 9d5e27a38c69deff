//! What to run, and how.

use crate::sink::Sink;
use fullstop_cage::linux::{Origin, Wanted};
use fullstop_core::id::Id;
use fullstop_core::machine::Plan;
use fullstop_core::report::Report;
use fullstop_core::signal::Signal;
use std::ffi::{CString, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// A run, as it was asked for.
#[derive(Debug)]
pub struct Spec {
    pub id: Id,
    pub name: Option<String>,
    pub argv: Vec<OsString>,
    pub env: Vec<(OsString, OsString)>,
    pub cwd: Option<OsString>,
    pub plan: Plan,
    pub cage: Wanted,
    pub on_host_exit: HostPolicy,
    pub report: Option<Sink>,
    pub loudness: Loudness,
}

/// What the host's death means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostPolicy {
    /// Stop, unless whoever started us meant it to live on.
    #[default]
    Guess,
    Stop,
    Ignore,
}

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
    /// Argument and environment strings as the kernel takes them. Nothing can hold
    /// a NUL here: it all came from a command line or the environment.
    pub fn kernel_argv(&self) -> Vec<CString> {
        self.argv.iter().filter_map(|word| CString::new(word.as_bytes()).ok()).collect()
    }

    pub fn kernel_env(&self) -> Vec<CString> {
        let pair = |(key, value): &(OsString, OsString)| {
            let mut text = key.as_bytes().to_vec();
            text.push(b'=');
            text.extend_from_slice(value.as_bytes());
            CString::new(text).ok()
        };
        self.env.iter().filter_map(pair).collect()
    }

    /// The command's own PATH, in which it is searched for.
    pub fn path(&self) -> Option<&OsString> {
        self.env.iter().find(|(key, _)| key == "PATH").map(|(_, value)| value)
    }

    /// Writes the report where it was asked for; returns what went wrong.
    pub fn write_report(&self, report: &Report) -> Option<String> {
        let written = self.report.as_ref().map(|sink| sink.write(report))?;
        written.err().map(|why| format!("cannot write the report: {why}"))
    }

    pub fn kernel_cwd(&self) -> Option<CString> {
        self.cwd.clone().and_then(|cwd| CString::new(cwd.into_vec()).ok())
    }
}
