//! `stop`, `kill` and `group stop|close`: ask, show how it goes, return when proven.

use crate::explain::explain;
use crate::fail::{FAILED, Fail, STUCK, at_once, complain};
use crate::forget::hint;
use crate::prepare::prepare_for_many;
use crate::print::{tell, tell_json};
use fullstop::{
    EndUpdate, Error, GroupReport, Id, Labels, Order, Progress, Report, Run, RunState, Runs,
    Status, Timestamp, TrackedMember, Unlisted, Usage, ask_all, end_all_with_ticks,
};
use fullstop_cli::args::{StopOptions, Which};
use fullstop_cli::begun::was_begun_before;
use fullstop_cli::format::seconds;
use fullstop_cli::plain;
use serde_json::json as value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub async fn stop(options: &StopOptions, order: Order) -> Result<(), Fail> {
    prepare_for_many();
    let (runs, begun) = (Runs::open()?, SystemTime::now());
    let (meant, unknown) = meant(&runs, &options.which).await?;
    let mut known: BTreeSet<Id> = meant.iter().map(|run| run.id().clone()).collect();
    let mut status = end(meant, order, options).await?;
    if !matches!(options.which, Which::Ids(_)) {
        while let Some(late) =
            behind_the_list(&runs, &options.which, &known, begun, &mut status).await?
        {
            known.extend(late.iter().map(|run| run.id().clone()));
            let ended = end(late, order, options).await?;
            status = status.or(ended);
        }
    }
    // Those that are not meant are swept behind those that are.
    runs.sweep_in_passing().await;
    status
        .or(if unknown { Some(FAILED) } else { None })
        .map_or(Ok(()), |status| Err(Fail::silent(status)))
}

async fn end(runs: Vec<Run>, order: Order, options: &StopOptions) -> Result<Option<u8>, Fail> {
    match runs.is_empty() {
        true => Ok(None),
        false if options.wait => follow(runs, order, options).await,
        false => ask(runs, order, options).await,
    }
}

/// A run whose listing was removed may have been missed. Its keeper lists it again within a
/// moment: such runs are returned, if they were begun before the order was given. Those that
/// live and stay unlisted are named, in the status too.
async fn behind_the_list(
    runs: &Runs,
    which: &Which,
    known: &BTreeSet<Id>,
    begun: SystemTime,
    status: &mut Option<u8>,
) -> Result<Option<Vec<Run>>, Fail> {
    let is_all = matches!(which, Which::All);
    let is_looked_for = is_all || runs.live_ids().await?.is_empty();
    let unlisted = if is_looked_for { runs.unlisted().await? } else { Vec::new() };
    let begun = begun.duration_since(UNIX_EPOCH).unwrap_or_default();
    let begun_ms = u64::try_from(begun.as_millis()).unwrap_or(u64::MAX);
    // Of one that cannot be read only the id tells when it was begun; one that was restarted
    // since is newer than its id.
    let is_new = |it: Status| it.started_at >= Timestamp::from_unix_ms(begun_ms);
    let mut late = Vec::new();
    for run in meant(runs, which).await?.0 {
        let is_late = !known.contains(run.id()) && was_begun_before(run.id(), begun, known);
        if is_late && !run.status().await.is_ok_and(is_new) {
            late.push(run);
        }
    }
    if !late.is_empty() {
        return Ok(Some(late));
    }
    name(&unlisted);
    if !unlisted.is_empty() {
        status.get_or_insert(STUCK);
    }
    Ok(None)
}

/// The runs meant, and whether there was a word that means none.
pub async fn meant(runs: &Runs, which: &Which) -> Result<(Vec<Run>, bool), Fail> {
    match which {
        Which::All => Ok((runs.live().await?, false)),
        Which::Group(name) => Ok((runs.group(name)?.members().await?, false)),
        Which::Labels(labels) => with_labels(runs, labels).await,
        Which::Ids(words) => {
            let (mut known, mut unknown) = (Vec::new(), false);
            for word in words {
                match runs.find(word).await {
                    Ok(run) => known.push(run),
                    Err(error) => {
                        complain(explain(&error));
                        unknown = true;
                    }
                }
            }
            Ok((known, unknown))
        }
    }
}

/// The live runs with these labels. One that cannot be read may have them.
async fn with_labels(runs: &Runs, labels: &Labels) -> Result<(Vec<Run>, bool), Fail> {
    let (mut meant, mut unknown) = (Vec::new(), false);
    for run in runs.live().await? {
        if let Ok(record) = run.record().await {
            meant.extend(record.labels.contains_all(labels).then_some(run));
        } else if let Some(damage) = run.status().await.ok().and_then(|status| status.damage) {
            complain(format!("{}: it may have this label: {damage}", run.id()));
            unknown = true;
        }
    }
    Ok((meant, unknown))
}

/// Where nothing is listed, all may be well, or the list was removed. Names there the runs
/// that live and are not listed; whether there is any.
pub async fn name_unlisted(runs: &Runs) -> Result<bool, Fail> {
    if !runs.live_ids().await?.is_empty() {
        return Ok(false);
    }
    let found = runs.unlisted().await?;
    name(&found);
    Ok(!found.is_empty())
}

fn name(unlisted: &[Unlisted]) {
    for run in unlisted {
        complain(format!("{run}; {}", run.next()));
    }
}

/// What came of orders to many.
struct Results<'a> {
    options: &'a StopOptions,
    status: Option<u8>,
    /// How many lost runs of elsewhere `--all` has passed over.
    elsewhere: usize,
}

impl Results<'_> {
    fn of(options: &StopOptions) -> Results<'_> {
        Results { options, status: None, elsewhere: 0 }
    }

    fn accepted(&mut self, id: &Id) {
        match self.options {
            options if options.json => tell_json(&value!({ "id": id, "accepted": true })),
            options if options.quiet => {}
            _ => tell(&format!("{id} stopping\n")),
        }
    }

    fn ended(&mut self, report: &Report) {
        match self.options {
            options if options.json => tell_json(report),
            options if options.quiet => {}
            _ => tell(&line(report)),
        }
        name_survivors(report);
        if !report.is_proven() {
            self.status = Some(STUCK);
        }
    }

    /// A run that may live on is stuck, as far as can be told here.
    fn failed(&mut self, id: &Id, error: &Error) {
        if let (Error::LostElsewhere { .. }, Which::All) = (error, &self.options.which) {
            self.elsewhere += 1;
            return;
        }
        complain(format!("{id}: {}", explain(error)));
        let status = if error.may_live_on() { STUCK } else { FAILED };
        self.status = self.status.or(Some(status));
    }

    fn finish(self) -> Option<u8> {
        if self.elsewhere > 0 && !self.options.quiet {
            complain(hint(self.elsewhere));
        }
        self.status
    }
}

async fn ask(runs: Vec<Run>, order: Order, options: &StopOptions) -> Result<Option<u8>, Fail> {
    let mut results = Results::of(options);
    let tell = |id: &Id, asked| match asked {
        Ok(()) => results.accepted(id),
        Err(Error::Ended(report)) => results.ended(&report),
        Err(error) => results.failed(id, &error),
    };
    ask_all(runs, order, tell).await;
    Ok(results.finish())
}

/// Each is shown as it ends.
async fn follow(runs: Vec<Run>, order: Order, options: &StopOptions) -> Result<Option<u8>, Fail> {
    let mut board = Board::new(&runs, options.quiet || options.json);
    let named = matches!(options.which, Which::Ids(_));
    let mut results = Results::of(options);
    let clock = board.draws_every();
    let is_gone = |run: Run| at_once(run.is_gone()).is_some_and(|gone| gone.unwrap_or(false));
    let tell = |news: Option<(&Id, EndUpdate)>| match news {
        Some((id, EndUpdate::Progress(Progress::Now(_)))) => board.latest = Some(id.clone()),
        Some((id, EndUpdate::Progress(progress))) => {
            board.clear();
            going_around(id, &progress);
        }
        Some((id, EndUpdate::Done(ended))) => {
            board.clear();
            let run = board.runs.remove(id);
            match ended {
                Ok(report) => results.ended(&report),
                // It was never born, and was swept away: nothing of it was meant by name.
                Err(_) if !named && run.is_some_and(is_gone) => {}
                Err(error) => results.failed(id, &error),
            }
        }
        _ => board.draw(),
    };
    end_all_with_ticks(runs, order, clock, tell).await;
    Ok(results.finish())
}

/// Says what is done about a keeper that hangs.
pub fn going_around(id: &Id, progress: &Progress) {
    if let Progress::GoingAround(what) = progress {
        complain(format!("{id}: {what}"));
    }
}

pub fn line(report: &Report) -> String {
    let name = report.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
    let proof = report.proof.as_ref().map_or("no proof".to_owned(), ToString::to_string);
    let told = format!("{}{name} {}: {}, {proof}", report.id, report.state.word(), report.reason());
    plain::line(&told) + "\n"
}

/// Why nothing is proven, on stderr.
fn name_survivors(report: &Report) {
    if report.state == RunState::Released {
        let count = report.released.len();
        let processes =
            if count == 1 { "1 process".to_owned() } else { format!("{count} processes") };
        complain(format!(
            "{}: it was released, not stopped: {processes} let go when its leader exited, and no \
             proof that they have ended",
            report.id
        ));
    }
    for TrackedMember { member, .. } in &report.survivors {
        let wchan = member.wchan.as_deref().unwrap_or("?");
        complain(format!(
            "{}: still alive: pid {} state {} in {wchan}: {}",
            report.id, member.pid, member.state, member.command
        ));
    }
}

pub async fn group(runs: &Runs, report: &GroupReport, as_json: bool) -> Result<(), Fail> {
    if as_json {
        tell_json(report);
    } else {
        let lines: String = report.reports.iter().map(line).collect();
        let done = if report.closed { "closed" } else { "stopped" };
        tell(&format!("{lines}group {} {done}: {}\n", report.group, counts(report)));
        report.errors.iter().for_each(complain);
    }
    report.reports.iter().for_each(name_survivors);
    match report {
        report if !report.is_proven() => Err(Fail::silent(STUCK)),
        report if !report.is_clean() => Err(Fail::silent(FAILED)),
        report if report.reports.is_empty() && name_unlisted(runs).await? => {
            Err(Fail::silent(STUCK))
        }
        _ => Ok(()),
    }
}

/// How many have ended, and how many have not.
fn counts(report: &GroupReport) -> String {
    let count = |word| report.reports.iter().filter(|it| it.state.word() == word).count();
    let mut text = format!("{} ended", count("ended"));
    for state in ["stuck", "released"] {
        if count(state) > 0 {
            let _ = write!(text, ", {} {state}", count(state));
        }
    }
    if !report.may_live_on.is_empty() {
        let _ = write!(text, ", {} may live on", report.may_live_on.len());
    }
    text
}

/// One line that shows how those stand that are not over yet, on a terminal.
struct Board {
    shown: bool,
    all: usize,
    runs: BTreeMap<Id, Run>,
    /// The run that was last told of.
    latest: Option<Id>,
    drawn: bool,
}

impl Board {
    fn new(runs: &[Run], quiet: bool) -> Board {
        Board {
            shown: !quiet && std::io::stderr().is_terminal(),
            all: runs.len(),
            runs: runs.iter().map(|run| (run.id().clone(), run.clone())).collect(),
            latest: None,
            drawn: false,
        }
    }

    /// The seconds that are left go by also if nothing happens.
    fn draws_every(&self) -> Option<Duration> {
        self.shown.then_some(Duration::from_millis(200))
    }

    /// A few are shown each with its own step and count, and of many the latest: what
    /// is counted here costs as much as is shown.
    fn draw(&mut self) {
        const FEW: usize = 3;
        if !self.shown || self.runs.is_empty() {
            return;
        }
        let mut line = format!("stopping {} of {}", self.runs.len(), self.all);
        let latest = self.latest.as_ref().filter(|_| self.runs.len() > FEW);
        let few = self.runs.values().filter(|run| latest.is_none_or(|id| id == run.id()));
        for run in few.take(FEW) {
            if let (Some(Ok(status)), Some(Ok(usage))) =
                (at_once(run.status()), at_once(run.usage()))
            {
                let _ = write!(line, " | {}", told(&status, usage));
            }
        }
        let width = crate::print::width_of(std::io::stderr()).unwrap_or(usize::MAX);
        let line: String = line.chars().take(width.saturating_sub(1)).collect();
        let _ = write!(std::io::stderr(), "\r\x1b[K{line}");
        self.drawn = true;
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.drawn) {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

fn told(status: &Status, usage: Usage) -> String {
    let name = status.name.clone().unwrap_or_else(|| status.id.to_string());
    let step = status.step.as_deref().unwrap_or(&status.state);
    let left = status.step_left_ms.map(|left| format!(" {}", seconds(left))).unwrap_or_default();
    format!("{name} {step}{left}, {} alive", usage.processes)
}
