//! A store of one's own, and what to put into it.

use fullstop_core::cage::CageKind;
use fullstop_core::id::Id;
use fullstop_core::words::Reason;
use fullstop_protocol::{Event, EventKind, Record, RunState, Spec, Timestamp};
use fullstop_store::format::{Format as _, SpecFile};
use fullstop_store::{RunDir, Store, world};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The first instant that an id can tell.
const EPOCH_MS: u64 = 1_767_225_600_000;

/// A directory that goes with the test.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Scratch {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("fullstop-store-{}-{next}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).expect("a scratch directory");
        Scratch(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A store in a directory that goes with the test.
pub struct Home {
    store: Store,
    _scratch: Scratch,
}

impl Home {
    pub fn new() -> Home {
        let scratch = Scratch::new();
        let store = Store::at(&scratch.path().join("state")).expect("a store");
        Home { store, _scratch: scratch }
    }

    /// Another one who looks at the same directory.
    pub fn again(&self) -> Store {
        Store::at(self.store.path()).expect("the store again")
    }
}

impl Deref for Home {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.store
    }
}

/// The id of a run that began so many days after the first one.
pub fn id(day: u64) -> Id {
    Id::new(EPOCH_MS + day * 24 * 3600 * 1000, day)
}

pub fn spec(id: &Id, name: Option<&str>) -> SpecFile {
    SpecFile {
        version: SpecFile::VERSION,
        id: id.clone(),
        generation: 1,
        cgroup: None,
        ancestry: None,
        host: None,
        lock: None,
        world: world::here().clone(),
        started_at: Timestamp::from_unix_ms(EPOCH_MS),
        unknown: None,
        spec: Spec {
            name: name.map(str::to_owned),
            env: vec![("TOKEN".into(), "secret".into())],
            cwd: Some("/".into()),
            ladder: "kill".parse().expect("a ladder"),
            ..Spec::new(vec!["sleep".into(), "60".into()])
        },
    }
}

pub fn record(id: &Id, state: RunState) -> Record {
    Record {
        command: vec!["sleep".to_owned(), "60".to_owned()],
        state,
        cage: CageKind::Tree.into(),
        lock: Some(4711),
        ..spec(id, None).first_record()
    }
}

fn named(id: &Id, name: Option<&str>, state: RunState) -> Record {
    Record { name: name.map(str::to_owned), ..record(id, state) }
}

pub fn event(id: &Id, at: u64) -> Event {
    Event {
        number: at,
        at: Timestamp::from_unix_ms(at),
        id: id.clone(),
        generation: 1,
        kind: EventKind::Stuck { survivors: 1 },
    }
}

/// A run that is live for as long as this is held.
pub fn begin(store: &Store, id: &Id, name: Option<&str>) -> RunDir {
    let run = store.create(id).expect("a run directory");
    run.write_spec(&spec(id, name)).expect("a spec");
    run.write_record(&named(id, name, RunState::Running)).expect("a record");
    run
}

/// A run that is over.
pub fn live_and_end(store: &Store, id: &Id, name: Option<&str>) {
    let mut run = begin(store, id, name);
    let over = RunState::Ended { reason: Reason::Exited.into() };
    run.write_record(&named(id, name, over)).expect("a record");
    run.finish().expect("finished");
}

/// The names in a directory of the store, hidden ones too.
pub fn names(store: &Store, below: &str) -> Vec<String> {
    let entries = std::fs::read_dir(store.path().join(below)).expect("a directory");
    let name = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.expect("an entry").file_name().to_string_lossy().into_owned()
    };
    let mut names: Vec<String> = entries.map(name).collect();
    names.sort();
    names
}

/// Ends the loops of a test's other threads, also when it fails.
#[derive(Default)]
pub struct Over(AtomicBool);

impl Over {
    pub fn is_said(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// Says so once it is dropped.
    pub fn at_end(&self) -> impl Drop + '_ {
        struct AtEnd<'a>(&'a Over);
        impl Drop for AtEnd<'_> {
            fn drop(&mut self) {
                self.0.0.store(true, Ordering::SeqCst);
            }
        }
        AtEnd(self)
    }
}
