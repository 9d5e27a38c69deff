//! `wait`, `events` and `signal`.

use crate::each::{each_meant, failed};
use crate::explain::explain;
use crate::fail::{FAILED, Fail, complain};
use crate::following::{Looking, until_unread};
use crate::print::{exit, json, json_line, print, tell_json};
use crate::show::{asked_by, named};
use crate::stop::{line, meant};
use fullstop::{Error, Event, EventKind, HostPolicy, Id, Report, Run, Runs, Signal};
use fullstop_cli::args::{EventsOptions, WaitOptions, Which};
use fullstop_cli::plain;
use fullstop_keeper::Ending;
use serde_json::{Value, json as value};
use std::time::Instant;

/// Waits for all of them. The status is that of the first one given that has failed, as
/// `run` would have given it.
pub async fn wait(options: &WaitOptions) -> Result<(), Fail> {
    let runs = Runs::open()?;
    let (found, unknown) = match &options.which {
        Which::Ids(ids) => (found(&runs, ids).await?, false),
        which => meant(&runs, which).await?,
    };
    let until = options.timeout.map(|timeout| Instant::now() + timeout);
    let mut failed = unknown.then_some(FAILED);
    for run in found {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let status = match (run.wait_for(left).await, options.timeout) {
            (Ok(report), _) => {
                if options.json {
                    json(&report)?;
                } else {
                    print(&line(&report))?;
                }
                status_of(&report)
            }
            // What was asked for, and not what was left of it.
            (Err(Error::NotEnded { id, .. }), Some(patience)) => {
                return Err(Error::NotEnded { id, patience }.into());
            }
            // What goes wrong with one is said, and the others are waited for.
            (Err(error), _) => {
                complain(format!("{}: {}", run.id(), explain(&error)));
                error.status()
            }
        };
        failed = failed.or(Some(status).filter(|status| *status != 0));
    }
    failed.map_or(Ok(()), |status| Err(Fail::silent(status)))
}

async fn found(runs: &Runs, words: &[String]) -> Result<Vec<Run>, Fail> {
    let mut found = Vec::new();
    for word in words {
        found.push(runs.find(word).await?);
    }
    Ok(found)
}

pub fn status_of(report: &Report) -> u8 {
    /// A shell shows a death by a signal so.
    const SIGNALLED: i32 = 128;
    match Ending::of_report(report) {
        Ending::Code(code) => code,
        Ending::Signal(signal) => u8::try_from(SIGNALLED + signal.number()).unwrap_or(FAILED),
    }
}

pub async fn signal(signal: Signal, which: &Which, as_json: bool) -> Result<(), Fail> {
    each_meant(which, failed, async |run| {
        run.signal(signal).await?;
        if as_json {
            tell_json(&value!({ "id": run.id(), "signal": signal, "accepted": true }));
        }
        Ok(())
    })
    .await
}

/// The events of some runs or of all, in order of time.
pub async fn events(options: &EventsOptions) -> Result<(), Fail> {
    let runs = Runs::open()?;
    let found = found(&runs, &options.ids).await?;
    let named: Vec<Id> = found.iter().map(|run| run.id().clone()).collect();
    if !options.follow {
        return show(&runs.past_events(&named).await?, options.json);
    }
    let mut events = runs.follow_events(&named);
    let mut looking = Looking::default();
    let follow = async {
        loop {
            show(&events.next().await?, options.json)?;
            looking.tell("events", events.why_polling());
        }
    };
    until_unread(follow).await.unwrap_or(Ok(()))
}

fn show(events: &[Event], as_json: bool) -> Result<(), Fail> {
    let mut text = String::new();
    for event in events {
        text += &if as_json { json_line(event)? } else { told(event) };
    }
    if text.is_empty() { Ok(()) } else { print(&text) }
}

fn told(event: &Event) -> String {
    let what = match &event.kind {
        EventKind::Started { command, leader } => {
            let leader = leader.map(|pid| format!(" (leader {pid})")).unwrap_or_default();
            format!("started{leader}: {}", plain::line(&command.join(" ")))
        }
        EventKind::Asked { asker } => format!("asked to end by {}", asked_by(asker)),
        EventKind::Other(fields) => plain::line(&Value::Object(fields.clone()).to_string()),
        EventKind::Step { step, alive, signalled, reason } => {
            format!("step {step} ({reason}): {alive} alive, {signalled} signalled")
        }
        EventKind::LeaderExited { exit: how } => format!("leader exited: {}", exit(*how)),
        EventKind::LogFailed { stream, why } => format!("the log of {stream} ends here: {why}"),
        EventKind::Restored { restored, lost } => {
            let lost = if lost.is_empty() {
                String::new()
            } else {
                format!("; lost: {}", lost.join(", "))
            };
            format!("removed while it was live, restored: {}{lost}", restored.join(", "))
        }
        EventKind::Adopted { host, on_host_exit } => {
            let policy = match on_host_exit {
                HostPolicy::Stop => "is stopped when that ends",
                HostPolicy::Ignore => "outlives that",
            };
            format!("adopted by {}: it {policy}", named(host))
        }
        EventKind::Stuck { survivors } => format!("stuck: {survivors} still alive"),
        EventKind::Released { released } => format!("released {released}"),
        EventKind::Ended { reason, exit: how, proof } => {
            let how = how.map(|how| format!(", {}", exit(how))).unwrap_or_default();
            let proof = proof.as_ref().map_or("no proof".to_owned(), ToString::to_string);
            format!("ended: {reason}{how}, {proof}")
        }
    };
    let generation =
        if event.generation > 1 { format!("#{}", event.generation) } else { String::new() };
    plain::line(&format!("{} {}{generation} {what}", event.at, event.id)) + "\n"
}
