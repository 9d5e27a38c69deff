//! What programs are told of orders that say nothing to people.

use arena::{Context, Outcome, Registry, World, ensure};
use serde_json::{Value, json};

use super::desk::{QUIET, all_clean, start, tell};
use crate::kit::{ANYWHERE, Lines, Place, add};

pub fn register(registry: &mut Registry) {
    add(registry, "json::orders", &ANYWHERE, &[], orders);
}

/// The one line that is printed.
fn line(world: &mut World, place: Place, words: &[&str]) -> Outcome<Value> {
    let out = tell(world, place, words)?;
    ensure!(out.ends_with('\n') && out.lines().count() == 1, "{words:?} printed {out:?}");
    serde_json::from_str(&out).context(format!("{words:?} printed {out:?}"))
}

fn orders(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let options = ["--name", "one", "--stdin", "pipe"];
    let id = start(world, place, &options, &["sh", "-c", &format!("trap : USR1; {QUIET}")])?;
    for (words, wanted) in [
        (&["send", "--json", "one", "hello", "--enter"][..], json!({"id": id, "sent": 6})),
        (&["close-stdin", "--json", "one"], json!({"id": id, "closed": true})),
        (
            &["signal", "--json", "usr1", "one"],
            json!({"id": id, "signal": "usr1", "accepted": true}),
        ),
    ] {
        let told = line(world, place, words)?;
        ensure!(told == wanted, "{words:?}: {told}");
    }
    let again = line(world, place, &["restart", "--json", "one"])?;
    ensure!(again["id"] == id && again["generation"] == 2, "restart: {again}");
    tell(world, place, &["stop", &id])?;
    let gone = line(world, place, &["rm", "--json", "one"])?;
    ensure!(gone == json!({"id": id, "removed": true}), "rm: {gone}");
    tell(world, place, &["group", "close", "plan"])?;
    tell(world, place, &["group", "close", "plan/research"])?;
    let below = line(world, place, &["group", "open", "--json", "plan/research"])?;
    ensure!(below == json!({"name": "plan/research", "closed_by": "plan"}), "open: {below}");
    let above = line(world, place, &["group", "open", "--json", "plan"])?;
    ensure!(above == json!({"name": "plan", "closed_by": null}), "open: {above}");
    all_clean(world)
}
