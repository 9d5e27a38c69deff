//! `ps` and `tree`: who is there.

mod live;

use crate::fail::Fail;
use crate::print::{Colour, coloured, json, lines, print, width};
use crate::stop::name_unlisted;
use fullstop::{Process, Run, Runs, Status, Usage, Whereabouts};
use fullstop_cli::args::{Form, PsOptions};
use fullstop_cli::format::{age, bytes, seconds, table};
use fullstop_cli::plain;
use serde::Serialize;
use std::fmt::Write as _;

pub async fn ps(options: &PsOptions) -> Result<(), Fail> {
    let runs = Runs::open()?;
    if options.watch {
        return live::watch(&runs, options).await;
    }
    let mut listed = listed(&runs, options).await?;
    // While it was looked for, a keeper may have restored what was removed under it.
    if listed.is_empty() && !name_unlisted(&runs).await? {
        listed = self::listed(&runs, options).await?;
    }
    match options.form {
        Form::Json => json(&rows(&listed).await),
        Form::Names => lines(listed.iter().map(|run| &run.id)),
        Form::Table => print(&drawn(&rows(&listed).await)),
    }
}

async fn listed(runs: &Runs, options: &PsOptions) -> Result<Vec<Status>, Fail> {
    let mut listed = runs.sweep_and_list(options.all).await?;
    if let Some(group) = &options.group {
        let group = runs.group(group)?;
        listed.retain(|run| run.group.as_ref().is_some_and(|name| group.contains(name)));
    }
    listed.retain(|run| run.labels.contains_all(&options.labels));
    Ok(listed)
}

/// A run as it is listed.
#[derive(Serialize)]
struct Row<'a> {
    #[serde(flatten)]
    run: &'a Status,
    #[serde(flatten)]
    usage: Usage,
}

async fn rows<'a>(listed: impl IntoIterator<Item = &'a Status>) -> Vec<Row<'a>> {
    let mut rows = Vec::new();
    for run in listed {
        // What cannot be read is shown as damaged, and its usage as nothing.
        let usage = run.usage().await.unwrap_or_default();
        rows.push(Row { run, usage });
    }
    rows
}

fn drawn(rows: &[Row<'_>]) -> String {
    let head = ["ID", "NAME", "STATE", "AGE", "PROCS", "CPU", "MEM", "COMMAND"];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    lines.extend(rows.iter().map(|Row { run, usage }| {
        vec![
            run.id.to_string(),
            run.name.as_deref().map_or("-".to_owned(), plain::line),
            state(run),
            age(run.age_ms),
            usage.processes.to_string(),
            seconds(usage.cpu_ms),
            bytes(usage.memory),
            run.damage.as_deref().map_or_else(|| shown(&run.command), plain::line),
        ]
    }));
    table(&lines, width())
}

/// Fit for one line of a terminal.
fn shown(command: &[String]) -> String {
    plain::line(&command.join(" "))
}

fn state(run: &Status) -> String {
    let left = run.step_left_ms.map(seconds);
    let text = match (&run.step, left, &run.reason) {
        _ if run.elsewhere.is_some() => {
            format!("{} ({})", run.state, run.elsewhere.map_or("", Whereabouts::brief))
        }
        (Some(step), Some(left), _) => format!("stopping {step} {left}"),
        (_, _, Some(reason)) => format!("{} ({reason})", run.state),
        _ if run.damage.is_some() && run.live => format!("{} (live)", run.state),
        _ => run.state.clone(),
    };
    let text = plain::line(&text);
    match run.state.as_str() {
        "running" => coloured(&text, Colour::Green),
        "stopping" | "starting" => coloured(&text, Colour::Yellow),
        "stuck" | "lost" | "damaged" | "newer" => coloured(&text, Colour::Red),
        _ => text,
    }
}

pub async fn tree(id: &str, as_json: bool) -> Result<(), Fail> {
    let run = Runs::open()?.find(id).await?;
    if as_json { json(&run.processes().await?) } else { print(&picture(&run).await?) }
}

/// A picture of who is alive in a run.
pub async fn picture(run: &Run) -> Result<String, Fail> {
    let processes = run.processes().await?;
    let status = run.status().await?;
    let name = status.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
    let head = format!("{}{name}, {}, {} alive", run.id(), status.state, processes.len());
    let mut text = plain::line(&head) + "\n";
    let known = |pid: i32| processes.iter().any(|process| process.pid == pid);
    let tops: Vec<&Process> = processes.iter().filter(|process| !known(process.ppid)).collect();
    draw(&processes, &tops, "", &mut text);
    Ok(text)
}

fn draw(all: &[Process], these: &[&Process], indent: &str, text: &mut String) {
    for (place, process) in these.iter().enumerate() {
        let last = place + 1 == these.len();
        let (branch, below) = if last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        let Process { pid, age_ms, cpu_ms, memory, command, .. } = process;
        let (age, cpu, memory) = (age(*age_ms), seconds(*cpu_ms), bytes(*memory));
        let _ = writeln!(text, "{indent}{branch}{pid} {age} {cpu} {memory} {command}");
        let children: Vec<&Process> = all.iter().filter(|child| child.ppid == *pid).collect();
        draw(all, &children, &format!("{indent}{below}"), text);
    }
}
