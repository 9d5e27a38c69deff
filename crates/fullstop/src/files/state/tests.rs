use super::*;
use crate::blocking::wait;
use crate::logs::tests::reads;
use fullstop_protocol::Record;
use fullstop_store::{RunDir, world};
use serde_json::json;
use std::fs;
use std::os::unix::fs::MetadataExt as _;

/// A live run with a record, and nothing else that could be read: whoever opens its spec or its
/// events meets a directory.
fn begin(runs: &Runs, chance: u64) -> RunDir {
    let id = Id::new(1_800_000_000_000, chance);
    let dir = runs.store().create(&id).expect("a run");
    let path = runs.store().run_path(&id);
    let record: Record = serde_json::from_value(json!({
        "version": 2, "id": id, "generation": 1, "command": ["sleep", "60"], "name": "research",
        "state": "running", "at": "2027-01-15T08:00:00.000Z", "cage": "tree",
        "world": world::here(), "started_at": "2027-01-15T08:00:00.000Z",
        "lock": fs::metadata(path.join("lock")).expect("its lock").ino(),
    }))
    .expect("a record");
    dir.write_record(&record).expect("written");
    for other in ["spec.json", "events.jsonl", "members.json", "out.log"] {
        let _ = fs::remove_file(path.join(other));
        fs::create_dir(path.join(other)).expect("nothing to be read");
    }
    dir
}

#[test]
fn a_list_reads_records_and_nothing_else() {
    const RUNS: u64 = 50;
    /// Of the record.
    const READS: u64 = 1;
    let path = std::env::temp_dir().join(format!("fullstop-list-{}", std::process::id()));
    let runs = Runs::at(&path).expect("a directory");
    let held: Vec<RunDir> = (0..RUNS).map(|chance| begin(&runs, chance)).collect();
    wait(runs.list(true)).expect("a list");
    let before = reads();
    let listed = wait(runs.list(true)).expect("a list");
    let count = reads() - before;
    assert_eq!(listed.len() as u64, RUNS);
    let is_whole = |run: &Status| {
        run.state == "running" && run.damage.is_none() && run.name.as_deref() == Some("research")
    };
    assert!(listed.iter().all(is_whole), "{:?}", listed[0]);
    assert!(count <= RUNS * READS + 10, "{count} reads for {RUNS} runs");
    assert!(wait(runs.run(listed[0].id.clone()).spec()).is_err(), "there is a spec to be read");
    held.into_iter().for_each(RunDir::abandon);
    let _ = fs::remove_dir_all(&path);
}
