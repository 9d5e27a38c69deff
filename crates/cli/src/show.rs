//! `show`: a run's record and report.

use crate::fail::Fail;
use crate::print::{json, print};
use fullstop::{Asker, Host, Run, Runs, Spec, Timestamp, TrackedMember, masked};
use fullstop_cli::format::{age, bytes};
use fullstop_cli::plain;
use serde_json::json as value;
use std::fmt::Write as _;

pub fn show(id: &str, as_json: bool) -> Result<(), Fail> {
    let run = Runs::open()?.find(id)?;
    if as_json {
        let spec = run.spec().ok().map(masked_spec);
        let record = run.record().ok();
        return json(&value!({ "status": run.status()?, "spec": spec, "record": record }));
    }
    print(&text(&run)?)
}

/// Secrets of the environment are not shown, in any form.
fn masked_spec(mut spec: Spec) -> Spec {
    for (key, value) in &mut spec.env {
        let shown = masked(&key.0.to_string_lossy(), &value.0.to_string_lossy());
        *value = shown.as_str().into();
    }
    spec
}

fn text(run: &Run) -> Result<String, Fail> {
    let status = run.status()?;
    let mut text = String::new();
    let mut line = |name: &str, what: String| {
        let _ = writeln!(text, "{name:>12}  {}", plain::line(&what));
    };
    line("run", run.id().to_string());
    if let Some(damage) = &status.damage {
        line("damage", damage.clone());
    }
    status.name.iter().for_each(|name| line("name", name.clone()));
    status.group.iter().for_each(|group| line("group", group.clone()));
    for (key, value) in status.labels.iter() {
        line("label", format!("{key}={value}"));
    }
    if let Some(host) = status.host.as_ref().filter(|host| host.app.is_some()) {
        line("host", named(host));
    }
    line("generation", status.generation.to_string());
    line("command", plain::line(&status.command.join(" ")));
    let reason = status.reason.as_ref().map(|reason| format!(", {reason}")).unwrap_or_default();
    let live = if status.damage.is_some() && status.live { ", live" } else { "" };
    line("state", format!("{}{reason}{live}", status.state));
    if let Some(elsewhere) = status.elsewhere {
        line("elsewhere", format!("{elsewhere} (fullstop rm --forget {})", run.id()));
    }
    if status.started_at > Timestamp::default() {
        let ago = age(since(status.started_at));
        line("started", format!("{} ({ago} ago)", status.started_at));
    }
    line("directory", run.dir().display().to_string());
    if let Ok(record) = run.record() {
        line("cage", record.cage.to_string());
        record.leader.iter().for_each(|leader| line("leader", format!("pid {}", leader.pid)));
    }
    let alive = run.usage().map_or(0, |usage| usage.processes);
    if alive > 0 {
        line("alive", format!("{alive} processes (fullstop tree {})", run.id()));
    }
    for (stream, extent) in run.log_extents().unwrap_or_default() {
        let cut = match extent.cut {
            0 => String::new(),
            cut => format!(", {} cut", bytes(cut)),
        };
        line("log", format!("{stream} {}{cut} (fullstop logs {})", bytes(extent.kept), run.id()));
    }
    if let Some(report) = &status.report {
        for captured in &report.output {
            let why = captured.failure.iter();
            why.for_each(|why| line("log", format!("{} ends early: {why}", captured.stream)));
            let (stream, unshown) = (captured.stream, bytes(captured.unshown));
            let why = captured.refusal.iter();
            why.for_each(|why| line("not shown", format!("{unshown} of {stream}: {why}")));
        }
        if report.drained == Some(false) && report.holders.is_empty() {
            line("held by", "somebody who cannot be seen from here".to_owned());
        }
        for holder in &report.holders {
            let command = plain::line(&holder.command);
            line("held by", format!("pid {} {command}", holder.pid));
        }
    }
    if let Ok(spec) = run.spec() {
        spec.cwd.iter().for_each(|cwd| line("cwd", cwd.0.to_string_lossy().into_owned()));
        line("ladder", spec.ladder.to_string());
    }
    if let Some(report) = &status.report {
        for step in &report.steps {
            let (at, alive, told) = (step.at_ms, step.alive, step.signalled);
            line(
                "step",
                format!("{:<14} after {at} ms, {alive} alive, {told} signalled", step.step),
            );
        }
        report.exit.iter().for_each(|exit| line("exit", crate::print::exit(*exit)));
        let proof = report.proof.as_ref().map_or("none".to_owned(), ToString::to_string);
        line("proof", proof);
        report.asked.iter().for_each(|asker| line("asked by", asked_by(asker)));
        report.error.iter().for_each(|error| line("error", error.clone()));
        for TrackedMember { member, outlived, .. } in &report.survivors {
            let outlived = match outlived.as_slice() {
                [] => String::new(),
                steps => format!(", has outlived {}", steps.join(" and ")),
            };
            let told = format!("pid {} {} {}", member.pid, member.state, member.command);
            line("survivor", format!("{told}{outlived}"));
        }
    }
    if let Ok(spec) = run.spec() {
        for (key, value) in &spec.env {
            let (key, value) = (key.0.to_string_lossy(), value.0.to_string_lossy());
            let shown = plain::line(&masked(&key, &value));
            line("env", format!("{key}={shown}"));
        }
    }
    Ok(text)
}

/// What a program calls itself that a run belongs to, and its process.
pub fn named(host: &Host) -> String {
    let app = host.app.as_deref().map_or("a program without a name".to_owned(), plain::line);
    format!("{app} (pid {})", host.process.pid)
}

/// The process that asked for the end, and on whose behalf.
pub fn asked_by(asker: &Asker) -> String {
    let by = asker.by.as_ref().map(|by| format!("{} (not verified), ", plain::line(by)));
    let program = asker.program.as_deref().map_or("?".to_owned(), plain::line);
    let pid = asker.pid.map(|pid| format!(" pid {pid}")).unwrap_or_default();
    let uid = asker.uid.map(|uid| format!(" uid {uid}")).unwrap_or_default();
    format!("{}{program}{pid}{uid} at {}", by.unwrap_or_default(), asker.at)
}

fn since(at: Timestamp) -> u64 {
    Timestamp::now().unix_ms().saturating_sub(at.unix_ms())
}
