//! `stop`, `kill` and `group stop|close`: ask, show how it goes, return when proven.

use crate::fail::{FAILED, Fail, STUCK, complain};
use crate::print::{json, print};
use fullstop::{
    GroupReport, Id, Order, Phase, Progress, Report, Run, Runs, Verdict, blocking, end_all,
};
use fullstop_cli::args::{StopOptions, Which};
use fullstop_cli::format::seconds;
use std::collections::BTreeMap;
use std::io::{IsTerminal, Write as _};
use std::path::PathBuf;

pub fn stop(options: &StopOptions, order: Order) -> Result<(), Fail> {
    let runs = Runs::open()?;
    let (meant, unknown) = meant(&runs, &options.which)?;
    let ended =
        if options.wait { follow(meant, order, options)? } else { ask(meant, order, options)? };
    // Those that are not meant are swept behind those that are.
    runs.sweep_in_passing();
    ended
        .or(if unknown { Some(FAILED) } else { None })
        .map_or(Ok(()), |status| Err(Fail::silent(status)))
}

/// The runs meant, and whether there was a word that means none.
fn meant(runs: &Runs, which: &Which) -> Result<(Vec<Run>, bool), Fail> {
    match which {
        Which::All => Ok((runs.live()?, false)),
        Which::Group(name) => Ok((runs.group(name)?.members()?, false)),
        Which::Ids(words) => {
            let found: Vec<_> = words.iter().map(|word| runs.find(word)).collect();
            let unknown = found.iter().any(Result::is_err);
            let known = found.into_iter().filter_map(|found| found.map_err(complain).ok());
            Ok((known.collect(), unknown))
        }
    }
}

fn ask(runs: Vec<Run>, order: Order, options: &StopOptions) -> Result<Option<u8>, Fail> {
    let mut failed = None;
    for run in runs {
        match blocking::wait(order.ask(&run)) {
            Ok(()) if options.json => {
                json(&serde_json::json!({ "id": run.id(), "accepted": true }))?;
            }
            Ok(()) if options.quiet => {}
            Ok(()) => print(&format!("{} stopping\n", run.id()))?,
            Err(error) => {
                complain(format!("{}: {error}", run.id()));
                failed = Some(FAILED);
            }
        }
    }
    Ok(failed)
}

fn follow(runs: Vec<Run>, order: Order, options: &StopOptions) -> Result<Option<u8>, Fail> {
    let mut board = Board::new(options.quiet || options.json);
    let dirs: BTreeMap<Id, PathBuf> =
        runs.iter().map(|run| (run.id().clone(), run.dir())).collect();
    let named = matches!(options.which, Which::Ids(_));
    let all = blocking::wait(async {
        Ok(end_all(runs, order, |id, progress| board.tell(id, progress)).await)
    })?;
    board.clear();
    let mut status = None;
    for (id, ended) in all {
        match ended {
            Ok(report) => {
                if options.json {
                    json(&report)?;
                } else if !options.quiet {
                    print(&line(&report))?;
                }
                if is_stuck(&report) {
                    name_survivors(&report);
                    status = Some(STUCK);
                }
            }
            // It was never born, and was swept away: nothing of it was meant by name.
            Err(_) if !named && dirs.get(&id).is_some_and(|dir| !dir.exists()) => {}
            Err(error) => {
                complain(format!("{id}: {error}"));
                status = status.or(Some(FAILED));
            }
        }
    }
    Ok(status)
}

pub fn line(report: &Report) -> String {
    let name = report.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
    let proof = report.proof.map_or("no proof".to_owned(), |proof| proof.to_string());
    format!("{}{name} {}: {}, {proof}\n", report.id, report.state, report.reason)
}

fn name_survivors(report: &Report) {
    for member in &report.survivors {
        let wchan = member.wchan.as_deref().unwrap_or("?");
        complain(format!(
            "{}: still alive: pid {} state {} in {wchan}: {}",
            report.id, member.pid, member.state, member.command
        ));
    }
}

fn is_stuck(report: &Report) -> bool {
    report.state == Verdict::Stuck
}

pub fn group(report: &GroupReport, as_json: bool) -> Result<(), Fail> {
    if as_json {
        json(report)?;
    } else {
        let lines: String = report.reports.iter().map(line).collect();
        let done = if report.closed { "closed" } else { "stopped" };
        print(&format!("{lines}group {} {done}: {} ended\n", report.group, report.reports.len()))?;
        report.errors.iter().for_each(complain);
    }
    report.reports.iter().filter(|report| is_stuck(report)).for_each(name_survivors);
    match report {
        report if report.is_clean() => Ok(()),
        report if report.reports.iter().any(is_stuck) => Err(Fail::silent(STUCK)),
        _ => Err(Fail::silent(FAILED)),
    }
}

/// One line that shows how all of them stand, on a terminal.
struct Board {
    quiet: bool,
    terminal: bool,
    runs: BTreeMap<Id, (Phase, usize)>,
}

impl Board {
    fn new(quiet: bool) -> Board {
        Board { quiet, terminal: std::io::stderr().is_terminal(), runs: BTreeMap::new() }
    }

    fn tell(&mut self, id: &Id, progress: Progress) {
        match progress {
            Progress::GoingAround(what) => {
                self.clear();
                complain(format!("{id}: {what}"));
            }
            Progress::Now { phase, alive } => {
                self.runs.insert(id.clone(), (phase, alive));
                self.draw();
            }
        }
    }

    fn draw(&self) {
        if self.quiet || !self.terminal {
            return;
        }
        let alive: usize = self.runs.values().map(|(_, alive)| alive).sum();
        let latest = self.runs.values().filter_map(|(phase, _)| match phase {
            Phase::Stopping { step, until, .. } => Some((fullstop::left(*until), step)),
            _ => None,
        });
        let step = latest.max().map(|(left, step)| {
            let left = u64::try_from(left.as_millis()).unwrap_or_default();
            format!(", {step} {}", seconds(left))
        });
        let count = self.runs.len();
        let runs = if count == 1 { "run" } else { "runs" };
        let step = step.unwrap_or_default();
        let _ = write!(std::io::stderr(), "\r\x1b[Kstopping {count} {runs}{step}, {alive} alive");
    }

    fn clear(&self) {
        if !self.quiet && self.terminal && !self.runs.is_empty() {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
