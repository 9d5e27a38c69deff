//! What the vectors are made of.

use super::coverage::Coverage;
use super::generated;
use fullstop_core::cage::Member;
use fullstop_core::id::Id;
use fullstop_core::identity::Identity;
use fullstop_core::words::Reason;
use fullstop_protocol::{Asker, RunState, Text, Timestamp, Word};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::time::Duration;

/// Every word that a choice can be, and no choice that carries something.
pub fn words<T: JsonSchema + DeserializeOwned>() -> Vec<T> {
    let schema = generated::of::<T>().to_value();
    let words = Coverage::of_schema(&schema).words.into_iter();
    let words = words.filter(|(field, _)| field.is_empty());
    words.map(|(_, word)| serde_json::from_value(Value::String(word)).expect("a word")).collect()
}

/// The word as it is written.
pub fn written<T: serde::Serialize>(word: &T) -> String {
    let json = serde_json::to_value(word).expect("it can be written");
    json.as_str().expect("it is a word").to_owned()
}

/// Every state, one after the other. A new one does not compile until it has its place here.
pub fn states() -> impl Iterator<Item = RunState> {
    std::iter::successors(Some(RunState::Starting), |state| {
        Some(match state {
            RunState::Starting => RunState::Running,
            RunState::Running => RunState::Stopping {
                reason: Reason::Stopped.into(),
                step: "term@leader".to_owned(),
                left: Duration::from_millis(2100),
                alive: Some(4),
            },
            RunState::Stopping { .. } => RunState::Stuck {
                reason: Reason::Stopped.into(),
                alive: Some(1),
                tries: 3,
                tried_at: at(9_000),
            },
            RunState::Stuck { .. } => RunState::Ended { reason: Reason::Exited.into() },
            RunState::Ended { .. } => RunState::Released,
            RunState::Released => later_state(),
            RunState::Other(_) => return None,
        })
    })
}

pub fn later_state() -> RunState {
    RunState::Other("paused".to_owned())
}

/// A word that this version does not know.
pub fn later<T>(word: &str) -> Word<T> {
    Word::Other(word.to_owned())
}

pub fn id() -> Id {
    "0r3v8x2k7m4pq".parse().expect("an id")
}

/// So many milliseconds after all began.
pub fn at(ms: u64) -> Timestamp {
    Timestamp::from_unix_ms(1_800_000_000_000 + ms)
}

pub fn bytes(bytes: &[u8]) -> Text {
    Text(OsString::from_vec(bytes.to_vec()))
}

pub fn process(pid: i32) -> Identity {
    Identity { pid, start_ticks: 555, inode: Some(7) }
}

/// On a kernel that cannot tell more of it.
pub fn older_process(pid: i32) -> Identity {
    Identity { pid, start_ticks: 555, inode: None }
}

pub fn asker() -> Asker {
    Asker {
        at: at(7_000),
        uid: Some(1000),
        pid: Some(4711),
        program: Some("fullstop".to_owned()),
        by: Some("Ada".to_owned()),
    }
}

pub fn member() -> Member {
    Member {
        pid: 4242,
        ppid: 4241,
        pgid: 4240,
        sid: 4239,
        uid: 1000,
        state: 'D',
        threads: 3,
        start_ticks: 555,
        inode: Some(7),
        command: "dd if=/dev/sr0".to_owned(),
        age_ms: 8_000,
        cpu_ms: 12,
        memory_bytes: 1 << 20,
        wchan: Some("folio_wait_bit".to_owned()),
    }
}

/// Of which no more is known.
pub fn plain_member() -> Member {
    Member {
        state: 'S',
        inode: None,
        age_ms: 0,
        cpu_ms: 0,
        memory_bytes: 0,
        wchan: None,
        ..member()
    }
}
