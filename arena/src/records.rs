//! What fullstop has written down, read as anybody could: by names and JSON.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::ensure;
use crate::outcome::{Context, Outcome};
use crate::world::World;

/// Every run is finished: unlisted, without lock and socket, with a true last word.
pub fn expect_finished(world: &World) -> Outcome {
    let live = names(&world.state().join("live"));
    ensure!(live.is_empty(), "runs are still listed as live: {}", live.join(", "));
    for id in names(&world.state().join("runs")) {
        let dir = world.state().join("runs").join(&id);
        for left in ["lock", "control.sock", "members", "record.json.new", "spec.json.new"] {
            ensure!(!dir.join(left).exists(), "run {id} has left its {left}");
        }
        let text = fs::read_to_string(dir.join("record.json"));
        let text = text.context(format!("run {id} has no record"))?;
        let record: Value = serde_json::from_str(&text).context("a record")?;
        let state = record["state"].as_str().unwrap_or_default();
        ensure!(matches!(state, "ended" | "released"), "run {id} is written down as {state:?}");
        let report = &record["report"];
        ensure!(report["id"] == id.as_str(), "run {id} has another's report: {report}");
    }
    Ok(())
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}
