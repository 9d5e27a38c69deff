//! The results as Markdown: ratios first, times only as a note.

use std::fmt::Write;

use fullstop_bench::plan::{Contender, Plan, Role};
use fullstop_bench::results::{FLOOR_PROGRAM, FLOOR_REAPED, FLOORS, Results, SpawnKind, proven};

use super::judge::{Cast, Figure};

pub const NOTHING: &str = "–";
/// With more than this going on beside the bench, its figures are noise.
const BUSY_PERCENT: u64 = 10;

pub fn markdown(plan: &Plan, results: &Results, figures: &[Figure]) -> String {
    let Plan { contenders, capturers, quick, .. } = plan;
    let cast = Cast::new(contenders, results);
    let mut text = String::new();
    let machine = &results.machine;
    text += "# fullstop, side by side\n\n";
    let _ = write!(
        text,
        "Linux {}, {} CPUs. Ratios of medians, everything interleaved in one run.",
        machine.kernel, machine.cpus,
    );
    if !machine.cgroup {
        text += " No cgroup v2 could be had.";
    }
    if machine.busy_percent > BUSY_PERCENT {
        let busy = machine.busy_percent;
        let _ = write!(text, " **The machine was {busy} % busy with other things: mostly noise.**");
    }
    if *quick {
        text += " **A quick run: not to be quoted.**";
    }
    text += "\n\n";
    text += &overview(contenders, results, &cast);
    text += &stops(results, &cast);
    text += &peers_stopping(contenders, results, &cast);
    text += &animals(contenders, results);
    text += &super::kept::markdown(contenders, results, &cast);
    text += &super::flow::markdown(capturers, results);
    text += &notes(contenders, results);
    text += &verdicts(figures);
    text
}

pub fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let mut text = format!("| {} |\n|---|", head.join(" | "));
    text += &"---:|".repeat(head.len() - 1);
    text.push('\n');
    for row in rows {
        let _ = writeln!(text, "| {} |", row.join(" | "));
    }
    text.push('\n');
    text
}

pub fn times(ratio: Option<f64>) -> String {
    ratio.map_or(NOTHING.to_owned(), |ratio| format!("{ratio:.2} ×"))
}

fn overview(contenders: &[Contender], results: &Results, cast: &Cast) -> String {
    let mut rows = Vec::new();
    for contender in contenders {
        let name = contender.name.as_str();
        let ratio = |kind, to: Role| {
            let to = cast.name(to).and_then(|name| cast.spawn(name, kind))?;
            Some(cast.spawn(name, kind)?.ratio_to(to))
        };
        let memory = results.memory.iter().find(|row| row.contender == name);
        let mut row = vec![name.to_owned()];
        if let Some(why) = &contender.missing {
            row.push(format!("not here: {why}"));
            row.resize(9, NOTHING.to_owned());
            rows.push(row);
            continue;
        }
        for kind in [SpawnKind::Exec, SpawnKind::Exit, SpawnKind::ExitSystem] {
            row.push(times(ratio(kind, Role::Floor)));
            row.push(times(ratio(kind, Role::Tini)));
        }
        row.push(memory.map_or(NOTHING.to_owned(), |row| format!("{:.0}", row.pss_kib_per_run)));
        row.push(survivors(results, name));
        rows.push(row);
    }
    let head = [
        "way of running a command",
        "spawn to exec, × posix_spawn",
        "× tini",
        "run `true` to exit, × posix_spawn",
        "× tini",
        "run /bin/true to exit, × posix_spawn",
        "× tini",
        "PSS per run, KiB",
        "survivors",
    ];
    format!("## Running\n\n{}", table(&head, &rows))
}

fn survivors(results: &Results, name: &str) -> String {
    let rows: Vec<_> = results.survivors.iter().filter(|row| row.contender == name).collect();
    if rows.is_empty() {
        return NOTHING.to_owned();
    }
    let processes: usize = rows.iter().map(|row| row.survivors).sum();
    let trees = rows.iter().filter(|row| row.survivors > 0).count();
    if processes == 0 {
        return format!("**0** of {} trees", rows.len());
    }
    format!("{processes}, in {trees} of {} trees", rows.len())
}

fn stops(results: &Results, cast: &Cast) -> String {
    let mut courses: Vec<(u32, bool)> = results.stop.iter().map(|r| (r.size, r.young)).collect();
    courses.sort_unstable();
    courses.dedup();
    let mut rows = Vec::new();
    for (size, young) in courses {
        let floor = cast.floor(size, young);
        let ratio = |name: &str| {
            let sample = cast.stop(name, size, young)?;
            Some((sample.ratio_to(floor?), sample.median_ms() - floor?.median_ms()))
        };
        let cell = |name: &str| {
            ratio(name)
                .map_or(NOTHING.to_owned(), |(ratio, more)| format!("{ratio:.2} × ({more:+.2} ms)"))
        };
        let role = |role| cast.name(role).map_or(NOTHING.to_owned(), cell);
        let mut row = vec![format!("{size}{}", if young { ", just started" } else { "" })];
        row.push(floor.map_or(NOTHING.to_owned(), |floor| format!("{:.2} ms", floor.median_ms())));
        row.extend(FLOORS.map(|name| times(ratio(name).map(|(ratio, _)| ratio))));
        row.push(cell(FLOOR_REAPED));
        row.push(cell(FLOOR_PROGRAM));
        let proof = cast.name(Role::FullstopCgroup).map(proven);
        row.push(proof.map_or(NOTHING.to_owned(), |name| cell(&name)));
        row.push(role(Role::FullstopCgroup));
        row.push(role(Role::FullstopTree));
        rows.push(row);
    }
    let head = [
        "processes",
        "the floor (a note)",
        "spin",
        "nap",
        "poll",
        "leader, nap",
        "the last one, and all reaped",
        "the same as a program, until it exited",
        "fullstop run (cgroup), until the proof",
        "until it returned",
        "fullstop run (tree), until it returned",
    ];
    format!(
        "## Stopping, from the order to the proof\n\n\
         Against the floor: `cgroup.kill`, then `populated 0`, watched in the fastest of four ways.\n\n{}",
        table(&head, &rows)
    )
}

fn peers_stopping(contenders: &[Contender], results: &Results, cast: &Cast) -> String {
    let mut rows = Vec::new();
    for contender in contenders {
        let found =
            results.stop.iter().find(|row| row.contender == contender.name && row.size == 100);
        if let Some(row) = found {
            let ratio = cast.floor(100, false).map(|floor| row.sample.ratio_to(floor));
            rows.push(vec![contender.name.clone(), times(ratio), row.alive_at_return.to_string()]);
        }
    }
    let head = ["told to stop 100 processes", "returned after, × floor", "alive then, at most"];
    format!(
        "All of them obey SIGTERM here. fullstop is told to kill at once; each peer stops in its own way.\n\n{}",
        table(&head, &rows)
    )
}

fn animals(contenders: &[Contender], results: &Results) -> String {
    let mut names: Vec<&str> = Vec::new();
    for row in &results.survivors {
        if !names.contains(&row.animal.as_str()) {
            names.push(&row.animal);
        }
    }
    if names.is_empty() {
        return String::new();
    }
    let mut rows = Vec::new();
    let stopped = |c: &&Contender| c.takes_part() && !c.prefix.is_empty() && !c.is_engine();
    for contender in contenders.iter().filter(stopped) {
        let mut row = vec![contender.name.clone()];
        row.extend(names.iter().map(|animal| {
            let found = results
                .survivors
                .iter()
                .find(|row| row.contender == contender.name && row.animal == *animal);
            found.map_or(NOTHING.to_owned(), |found| {
                let waits = if found.returned { "" } else { " †" };
                format!("{} of {}{waits}", found.survivors, found.before)
            })
        }));
        rows.push(row);
    }
    let mut head = vec!["told to stop"];
    head.extend(&names);
    format!(
        "## Survivors\n\n\
         Alive one second after the stop was over, of those alive when it was ordered. \
         † had not returned after ten seconds.\n\n{}",
        table(&head, &rows)
    )
}

fn notes(contenders: &[Contender], results: &Results) -> String {
    let cast = Cast::new(contenders, results);
    let absolute = |role, kind| {
        cast.name(role)
            .and_then(|name| cast.spawn(name, kind))
            .map_or(NOTHING.to_owned(), |sample| format!("{:.2} ms", sample.median_ms()))
    };
    let mut text = format!(
        "Note: posix_spawn reached exec after {}, its `true` was over after {}; tini's after {}.\n",
        absolute(Role::Floor, SpawnKind::Exec),
        absolute(Role::Floor, SpawnKind::Exit),
        absolute(Role::Tini, SpawnKind::Exit),
    );
    for failure in &results.failures {
        let _ = writeln!(
            text,
            "Not measured: {}, {}: {}",
            failure.contender, failure.part, failure.why
        );
    }
    text.push('\n');
    text
}

fn verdicts(figures: &[Figure]) -> String {
    let mut text = String::from("## Promised figures\n\n```\n");
    for figure in figures {
        let verdict = match figure.pass {
            Some(true) => "pass",
            Some(false) => "MISS",
            None => "none",
        };
        let measured =
            figure.measured.map_or(NOTHING.to_owned(), |measured| format!("{measured:.2}"));
        let _ = writeln!(
            text,
            "{verdict}  {measured:>8} {} (at most {})  {}",
            figure.unit, figure.at_most, figure.what
        );
    }
    text += "```\n";
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::judge::figures;
    use fullstop_bench::plan::{Bits, CaptureRole, Capturer};
    use std::path::PathBuf;

    fn contender(name: &str, role: Role) -> Contender {
        Contender {
            name: name.to_owned(),
            role,
            prefix: Vec::new(),
            prefix_at_once: Vec::new(),
            env: Vec::new(),
            host: None,
            echoes: false,
            missing: None,
        }
    }

    fn capturer(name: &str, role: CaptureRole, missing: Option<String>) -> Capturer {
        let (name, script) = (name.to_owned(), String::new());
        Capturer { name, role, before: None, script, note: None, missing }
    }

    fn plan(contenders: Vec<Contender>) -> Plan {
        let no = PathBuf::new;
        Plan {
            quick: true,
            parts: Vec::new(),
            scratch: no(),
            state: no(),
            fullstop: no(),
            bits: Bits { stamp: no(), true_: no(), tree: no(), floor: no(), flood: no() },
            zoo: None,
            contenders,
            capturers: vec![
                capturer("cat", CaptureRole::Cat, None),
                capturer("absent", CaptureRole::Peer, Some("there is no such thing".to_owned())),
            ],
            tmux: None,
        }
    }

    #[test]
    fn every_row_has_a_cell_for_every_column() {
        let mut absent = contender("absent", Role::Peer);
        absent.missing = Some("it is not installed".to_owned());
        let plan = plan(vec![contender("posix_spawn", Role::Floor), absent]);
        let mut results = Results::default();
        results.output.filesystem = "ext4".to_owned();
        let figures = figures(&plan.contenders, &plan.capturers, &results);
        let text = markdown(&plan, &results, &figures);
        assert!(text.contains("not here: it is not installed"));
        assert!(text.contains("not here: there is no such thing"));
        let mut width = 0;
        for line in text.lines() {
            let cells = line.matches('|').count();
            assert!(cells == 0 || width == 0 || cells == width, "{line}");
            width = cells;
        }
    }

    #[test]
    fn what_was_not_measured_is_no_pass() {
        let plan = plan(vec![contender("f", Role::FullstopCgroup)]);
        let figures = figures(&plan.contenders, &plan.capturers, &Results::default());
        assert!(figures.iter().all(|figure| figure.pass.is_none()));
        assert!(!verdicts(&figures).contains("pass"));
    }
}
