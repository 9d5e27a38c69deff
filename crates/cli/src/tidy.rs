//! `rm`, `prune`, `sweep` and the listing of groups.

use crate::each::{each, failed};
use crate::explain::explain;
use crate::fail::{FAILED, Fail, STUCK, complain};
use crate::forget::hint;
use crate::prepare::prepare_for_many;
use crate::print::{json, lines, print, tell, tell_json, width};
use crate::stop;
use fullstop::{Id, Runs, SweepFinding, Swept, Unlisted};
use fullstop_cli::args::{Form, GroupCall, PruneOptions};
use fullstop_cli::format::table;
use serde_json::{Value, json as value};
use std::time::Duration;

pub async fn rm(ids: &[String], as_json: bool) -> Result<(), Fail> {
    each(ids, failed, async |run| {
        run.remove().await?;
        if as_json {
            tell_json(&value!({ "id": run.id(), "removed": true }));
        }
        Ok(())
    })
    .await
}

/// Without a word on age or number everything that is over goes.
pub async fn prune(options: &PruneOptions) -> Result<(), Fail> {
    let (older, keep) = (options.older.unwrap_or(Duration::ZERO), options.keep.unwrap_or(0));
    let runs = Runs::open()?;
    // Looked for first: what fails after a removal would keep it from being told.
    let elsewhere: Vec<Id> = runs.lost_elsewhere().await?.into_iter().map(|lost| lost.id).collect();
    let pruned = runs.prune(older, keep, options.dry_run).await?;
    if options.json {
        let runs = pruned.runs_left.iter();
        let runs = runs.map(|(id, why)| value!({ "id": id, "why": why.to_string() }));
        let groups = pruned.groups_left.iter();
        let groups = groups.map(|(name, why)| value!({ "group": name, "why": why.to_string() }));
        let left: Vec<_> = runs.chain(groups).collect();
        let (removed, dry_run) = (&pruned.removed, options.dry_run);
        tell_json(&value!({
            "removed": removed, "left": left, "elsewhere": elsewhere, "dry_run": dry_run,
        }));
    } else {
        let verb = if options.dry_run { "would remove" } else { "removed" };
        let runs = if pruned.removed.len() == 1 { "run" } else { "runs" };
        tell(&format!("{verb} {} {runs}\n", pruned.removed.len()));
        let runs = pruned.runs_left.iter().map(|(_, why)| why);
        runs.chain(pruned.groups_left.iter().map(|(_, why)| why))
            .for_each(|why| complain(explain(why)));
        if !elsewhere.is_empty() {
            complain(hint(elsewhere.len()));
        }
    }
    if pruned.is_whole() { Ok(()) } else { Err(Fail::silent(FAILED)) }
}

pub async fn sweep(dry_run: bool, as_json: bool) -> Result<(), Fail> {
    let runs = Runs::open()?;
    let swept = if dry_run { runs.sweep_dry().await? } else { runs.sweep().await? };
    let emptied = if dry_run { Vec::new() } else { runs.remove_empty_cgroups().await? };
    let looked = runs.unlisted().await;
    let unlisted = looked.as_deref().unwrap_or_default();
    if as_json {
        let unlisted = unlisted.iter().map(as_swept);
        let all: Vec<_> = swept.iter().map(|swept| value!(swept)).chain(unlisted).collect();
        tell_json(&all);
    } else {
        let unlisted = unlisted.iter().map(|run| format!("{run}; {}\n", run.next()));
        let emptied =
            emptied.iter().map(|path| format!("removed the empty cgroup {}\n", path.display()));
        let text: String = swept.iter().map(line).chain(unlisted).chain(emptied).collect();
        tell(if text.is_empty() && looked.is_ok() { "nothing to sweep\n" } else { &text });
    }
    let is_elsewhere =
        |swept: &&Swept| matches!(swept.found, SweepFinding::LeftAlone { elsewhere: Some(_), .. });
    let elsewhere = swept.iter().filter(is_elsewhere).count();
    if elsewhere > 0 && !as_json {
        complain(hint(elsewhere));
    }
    let stuck = swept.iter().any(|swept| may_live(&swept.found));
    // What was swept is told by now, also where the look for others has failed.
    let status = if stuck { STUCK } else { FAILED };
    let unlisted = looked.map_err(|error| Fail { why: error.to_string(), status })?;
    if stuck || !unlisted.is_empty() { Err(Fail::silent(STUCK)) } else { Ok(()) }
}

/// Whether processes may live that belong here and that nobody has proven dead. What would be
/// ended by a sweep that is not dry is no finding.
fn may_live(found: &SweepFinding) -> bool {
    matches!(found, SweepFinding::Stuck { .. } | SweepFinding::LeftAlone { elsewhere: None, .. })
}

/// In the form of the others that a sweep has found.
fn as_swept(run: &Unlisted) -> Value {
    let Unlisted { id, keeper, cgroup, processes } = run;
    let found = value!({
        "found": "unlisted", "keeper": keeper, "cgroup": cgroup, "processes": processes,
    });
    value!({ "id": id, "name": null, "found": found })
}

fn line(swept: &Swept) -> String {
    let name = swept.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
    let what = match &swept.found {
        SweepFinding::Ended { killed, report } => {
            let proof = report.proof.as_ref().map_or("no proof".to_owned(), ToString::to_string);
            format!("ended: {killed} killed, {proof}")
        }
        SweepFinding::Stuck { report } => format!("stuck: {} still alive", report.survivors.len()),
        SweepFinding::PutAway => "was over, put away".to_owned(),
        SweepFinding::WouldEnd { alive } => format!("would end it: {alive} alive"),
        SweepFinding::LeftAlone { why, .. } => format!("left alone: {why}"),
    };
    format!("{}{name} {what}\n", swept.id)
}

pub async fn group(call: &GroupCall) -> Result<(), Fail> {
    let runs = Runs::open()?;
    match call {
        GroupCall::Ls { form } => list_groups(&runs, *form).await,
        GroupCall::Stop { name, json } => {
            prepare_for_many();
            let group = runs.group(name)?;
            let stopped = group.stop_with(|id, progress| stop::going_around(id, &progress));
            stop::group(&runs, &stopped.await?, *json).await
        }
        GroupCall::Close { name, json } => {
            prepare_for_many();
            let group = runs.group(name)?;
            let closed = group.close_with(|id, progress| stop::going_around(id, &progress));
            stop::group(&runs, &closed.await?, *json).await
        }
        GroupCall::Open { name, json } => {
            let group = runs.group(name)?;
            group.open().await?;
            if *json {
                // One above it may be closed still.
                let closed = group.closed_by().await?;
                tell_json(&value!({ "name": group.name(), "closed_by": closed }));
            }
            Ok(())
        }
    }
}

async fn list_groups(runs: &Runs, form: Form) -> Result<(), Fail> {
    let mut rows = vec![["GROUP", "STATE", "LIVE"].map(str::to_owned).to_vec()];
    let mut all = Vec::new();
    for group in runs.groups().await? {
        let (closed, live) = (group.closed_by().await?, group.registered().await?.len());
        let state = match &closed {
            None => "open".to_owned(),
            Some(by) if by == group.name() => "closed".to_owned(),
            Some(by) => format!("closed by {by}"),
        };
        all.push(value!({ "name": group.name(), "closed_by": closed, "live": live }));
        rows.push(vec![group.name().to_owned(), state, live.to_string()]);
    }
    match form {
        Form::Json => json(&all),
        Form::Names => lines(rows[1..].iter().map(|row| &row[0])),
        Form::Table => print(&table(&rows, width())),
    }
}
