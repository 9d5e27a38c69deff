//! What was removed, damaged or hidden under live runs: none of it makes a run that lives
//! one that is not there.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use arena::{Context as _, Ended, Outcome, Registry, User, World, ensure};
use serde_json::Value;

use super::desk::{
    QUIET, alive, all_clean, dir, expect_over, live_ids, proof, say, start, tell, who,
};
use crate::kit::{Cage, EVERYWHERE, Lines, Place, add};

/// Where a directory can be closed to its owner.
const PLAIN: [Place; 1] = [Place { cage: Cage::Tree, user: User::Plain }];

pub fn register(registry: &mut Registry) {
    add(registry, "vanished::damaged-record", &EVERYWHERE, &[], damaged_record);
    add(registry, "vanished::unreadable", &PLAIN, &[], unreadable);
}

/// The rows of `ps --json`.
fn listed(world: &mut World, place: Place) -> Outcome<Vec<Value>> {
    let said = say(world, place, &["ps", "--json"])?;
    said.expect(0)?;
    said.json()?.as_array().cloned().context("no list")
}

/// A live run is shown and can be ended whatever its record looks like, and its keeper
/// writes a whole one again.
fn damaged_record(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    for (order, reason) in [("stop", "stopped"), ("kill", "killed")] {
        let id = start(world, place, &["--name", order], &["sh", "-c", QUIET])?;
        let leader = who(world, &id)?.leader;
        fs::write(dir(world, &id).join("record.json"), "{ \"version\": 1, \"id\"").context("it")?;
        let rows = listed(world, place)?;
        ensure!(rows.len() == 1, "{} are listed: {rows:?}", rows.len());
        let row = &rows[0];
        ensure!(row["id"] == id.as_str() && row["state"] == "damaged", "it is {row}");
        ensure!(row["live"] == true && row["name"] == order, "it is {row}");
        let shown = tell(world, place, &["show", &id])?;
        ensure!(shown.contains("damaged, live"), "it is shown as {shown}");
        ensure!(alive(&leader), "looking has hurt it");
        say(world, place, &[order, &id])?.expect(0)?;
        ensure!(!alive(&leader), "{order} left it alive");
        expect_over(world, &id, reason, proof(place))?;
    }
    all_clean(world)
}

/// Closes a directory to everybody, as long as that is done.
fn closed<T>(path: &Path, act: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    fs::set_permissions(path, Permissions::from_mode(0o000)).context("close it")?;
    let done = act();
    fs::set_permissions(path, Permissions::from_mode(0o700)).context("open it again")?;
    done
}

/// What cannot be read is an error or is shown as damaged, and never an absence.
fn unreadable(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let id = start(world, place, &[], &["sh", "-c", QUIET])?;
    let leader = who(world, &id)?.leader;
    let state = world.state().clone();
    closed(&dir(world, &id), || {
        let rows = listed(world, place)?;
        ensure!(rows.len() == 1 && rows[0]["state"] == "damaged", "it is listed as {rows:?}");
        ensure!(rows[0]["live"] == true, "it is listed as {rows:?}");
        let shown = tell(world, place, &["show", &id])?;
        ensure!(shown.contains("damaged, live"), "it is shown as {shown}");
        let doctor = say(world, place, &["doctor"])?;
        ensure!(doctor.out.contains(&format!("runs/{id}")), "a doctor says {}", doctor.out);
        let said = say(world, place, &["stop", "--all"])?;
        ensure!(said.ended != Ended::Code(0), "stop --all: {said:?}");
        ensure!(said.err.contains(&id), "stop --all does not name it: {said:?}");
        Ok(())
    })?;
    closed(&state.join("live"), || {
        for words in [&["ps"][..], &["stop", "--all"], &["sweep"]] {
            let said = say(world, place, words)?;
            said.expect(125)?;
            ensure!(said.err.contains("live"), "{words:?} said {:?}", said.err);
        }
        let doctor = say(world, place, &["doctor"])?;
        doctor.expect(1)?;
        ensure!(doctor.out.contains("/live"), "a doctor says {}", doctor.out);
        Ok(())
    })?;
    ensure!(alive(&leader) && live_ids(world) == [id.clone()], "it was hurt");
    say(world, place, &["stop", &id])?.expect(0)?;
    expect_over(world, &id, "stopped", proof(place))?;
    all_clean(world)
}
