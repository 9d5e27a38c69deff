//! What version 1 wrote, and what it means now.

mod event;
mod record;

pub use event::Event;
pub use record::RecordFile;

use super::Format as _;
use fullstop_core::cage::CagePreference;
use fullstop_core::id::Id;
use fullstop_core::machine::Plan;
use fullstop_protocol::{Ancestry, Drain, Output, SecretFile, Spec, Stdin, Text, Timestamp, World};
use serde::Deserialize;
use std::path::PathBuf;
use std::time::Duration;

/// `spec.json`: what was asked for and what was known of a generation stood side by side.
#[derive(Deserialize)]
pub struct SpecFile {
    id: Id,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    group: Option<String>,
    generation: u32,
    argv: Vec<Text>,
    env: Vec<(Text, Text)>,
    cwd: Option<Text>,
    plan: Plan,
    cage: CagePreference,
    cgroup: Option<PathBuf>,
    #[serde(default)]
    kin: Option<Ancestry>,
    #[serde(default)]
    lock: Option<u64>,
    world: World,
    started_at: u64,
    #[serde(default)]
    streams: Streams,
    #[serde(default)]
    secrets: Vec<(Text, Text)>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Streams {
    stdin: Stdin,
    output: Output,
    log_max: Option<u64>,
    drain: Option<DrainTimes>,
}

#[derive(Deserialize)]
struct DrainTimes {
    quiet: Duration,
    most: Duration,
}

impl From<SpecFile> for super::SpecFile {
    fn from(file: SpecFile) -> super::SpecFile {
        let Plan { ladder, on_exit, timeout, no_output, idle } = file.plan;
        let drain = file.streams.drain;
        let secret = |(name, path): (Text, Text)| SecretFile {
            name: name.0.to_string_lossy().into_owned(),
            path,
            fd: None,
        };
        super::SpecFile {
            version: super::SpecFile::VERSION,
            id: file.id,
            generation: file.generation,
            cgroup: file.cgroup,
            ancestry: file.kin,
            host: None,
            lock: file.lock,
            world: file.world,
            started_at: Timestamp::from_unix_ms(file.started_at),
            unknown: None,
            spec: Spec {
                env: file.env,
                cwd: file.cwd,
                name: file.name,
                group: file.group,
                ladder,
                on_exit,
                cage: file.cage,
                timeout,
                no_output_timeout: no_output,
                idle_timeout: idle,
                stdin: file.streams.stdin,
                output: file.streams.output,
                log_max: file.streams.log_max,
                drain: drain.map_or_else(Drain::default, |drain| Drain {
                    quiet: drain.quiet,
                    most: drain.most,
                }),
                secrets: file.secrets.into_iter().map(secret).collect(),
                ..Spec::new(file.argv)
            },
        }
    }
}
