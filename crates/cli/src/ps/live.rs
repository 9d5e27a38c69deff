//! `ps --watch`: the list, as it changes.

use super::{drawn, rows};
use crate::fail::Fail;
use crate::following::{Looking, until_unread};
use crate::print::{height, json, lines, print};
use fullstop::{Change, Id, Runs, Status, Watch};
use fullstop_cli::args::{Form, PsOptions};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// On a terminal, ages, times and usage are shown anew this often.
const TICK: Duration = Duration::from_secs(1);
/// Changes that come so soon after another are shown together with it.
const TOGETHER: Duration = Duration::from_millis(50);

pub async fn watch(runs: &Runs, options: &PsOptions) -> Result<(), Fail> {
    // What is lost is not told of by anybody.
    runs.sweep_in_passing().await;
    let watch = chosen(runs, options)?;
    let followed = match options.form {
        Form::Json => until_unread(each(watch)).await,
        Form::Names | Form::Table => until_unread(list(watch, options)).await,
    };
    followed.unwrap_or(Ok(()))
}

fn chosen(runs: &Runs, options: &PsOptions) -> Result<Watch, Fail> {
    let mut watch = runs.watch();
    for (key, value) in options.labels.iter() {
        watch = watch.label(key, value);
    }
    if let Some(group) = &options.group {
        watch = watch.group(runs.group(group)?.name());
    }
    Ok(if options.all { watch.all() } else { watch })
}

/// Each change as it comes, on a line of its own.
async fn each(mut watch: Watch) -> Result<(), Fail> {
    let mut looking = Looking::default();
    loop {
        json(&watch.next().await?)?;
        looking.tell("changes", watch.why_polling());
    }
}

/// The whole list, after every change.
async fn list(mut watch: Watch, options: &PsOptions) -> Result<(), Fail> {
    let is_drawn = options.form == Form::Table && std::io::stdout().is_terminal();
    let mut listed = Listed { all: options.all, ..Listed::default() };
    let mut looking = Looking::default();
    listed.apply(watch.next().await?);
    loop {
        while let Ok(change) = timeout(TOGETHER, watch.next()).await {
            listed.apply(change?);
        }
        show(&listed, options.form, is_drawn).await?;
        looking.tell("changes", watch.why_polling());
        let patience = if is_drawn { TICK.saturating_sub(TOGETHER) } else { Duration::MAX };
        if let Ok(change) = timeout(patience, watch.next()).await {
            listed.apply(change?);
        }
    }
}

async fn show(listed: &Listed, form: Form, is_drawn: bool) -> Result<(), Fail> {
    if form == Form::Names {
        return lines(listed.runs.keys());
    }
    let now = listed.now();
    // The head of the table, a line about those that have no room, and the cursor's.
    let room = if is_drawn { height().map(|height| height.saturating_sub(3)) } else { None };
    let shown = room.unwrap_or(usize::MAX).min(now.len());
    let mut text = drawn(&rows(&now[..shown]).await);
    if now.len() > shown {
        let _ = writeln!(text, "and {} more", now.len() - shown);
    }
    print(&if is_drawn { format!("\x1b[H\x1b[2J{text}") } else { text })
}

/// What a watch has told of so far.
#[derive(Default)]
struct Listed {
    all: bool,
    /// With the time when it was told.
    runs: BTreeMap<Id, (Status, Instant)>,
}

impl Listed {
    fn apply(&mut self, change: Change) {
        let now = Instant::now();
        match change {
            Change::Snapshot { runs, .. } => {
                let entries = runs.into_iter().map(|run| (run.id.clone(), (run, now)));
                self.runs = entries.collect();
            }
            Change::Run { run } if run.is_over() && !self.all => drop(self.runs.remove(&run.id)),
            Change::Run { run } => drop(self.runs.insert(run.id.clone(), (*run, now))),
            Change::Removed { id } => drop(self.runs.remove(&id)),
            _ => {}
        }
    }

    /// Time has gone by since they were told of.
    fn now(&self) -> Vec<Status> {
        let now = |(run, told): &(Status, Instant)| {
            let mut run = run.clone();
            let since = u64::try_from(told.elapsed().as_millis()).unwrap_or(u64::MAX);
            if !run.is_over() {
                run.age_ms = run.age_ms.saturating_add(since);
            }
            run.step_left_ms = run.step_left_ms.map(|left| left.saturating_sub(since));
            run
        };
        self.runs.values().map(now).collect()
    }
}
