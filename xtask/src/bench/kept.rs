//! The results about records as Markdown.

use fullstop_bench::plan::{Contender, Role};
use fullstop_bench::results::{Crowd, Levels, Results, SpawnKind, Sweep};

use super::judge::Cast;
use super::show::{NOTHING, table, times};

pub fn markdown(contenders: &[Contender], results: &Results, cast: &Cast) -> String {
    let records = &results.records;
    if records.filesystem.is_empty() {
        return String::new();
    }
    let mut text = format!("## Records\n\nThe state directory was on {}.\n\n", records.filesystem);
    text += &cost(contenders, results, cast);
    text += &records.crowd.as_ref().map_or(String::new(), crowd);
    text += &records.sweep.as_ref().map_or(String::new(), sweep);
    text
}

fn cost(contenders: &[Contender], results: &Results, cast: &Cast) -> String {
    let tini = |kind| cast.name(Role::Tini).and_then(|name| cast.recorded(name, 0, kind));
    let mut rows: Vec<Vec<String>> = Vec::new();
    for contender in contenders {
        let name = contender.name.as_str();
        for row in results.records.recorded.iter().filter(|row| row.contender == name) {
            // Both kinds stand in one row of the table.
            if row.kind != SpawnKind::Exit {
                continue;
            }
            let ratio = |kind| {
                let sample = cast.recorded(name, row.ended, kind)?;
                tini(kind).map(|tini| sample.ratio_to(tini))
            };
            let beside = match row.ended {
                0 => name.to_owned(),
                ended => format!("{name}, beside {ended} ended runs"),
            };
            let kinds = [SpawnKind::Exit, SpawnKind::ExitSystem];
            rows.push([vec![beside], kinds.map(|kind| times(ratio(kind))).to_vec()].concat());
        }
    }
    table(&["run to exit", "`true`, × tini", "/bin/true, × tini"], &rows)
}

fn crowd(crowd: &Crowd) -> String {
    #[expect(clippy::cast_precision_loss, reason = "durations far below 2^52 ns")]
    let stop_ms = crowd.stop_ns as f64 / 1e6;
    let row = vec![
        crowd.runs.to_string(),
        format!("{:.0} ms", crowd.ps.median_ms()),
        format!("{stop_ms:.0} ms"),
        crowd.unproven.to_string(),
        format!("{}, {}", crowd.alive_at_return, crowd.processes_left),
        format!("{}, {}", crowd.listed_left, crowd.cgroups_left),
        levels(&crowd.memory_kib),
        levels(&crowd.descriptors),
    ];
    let head = [
        "live runs",
        "`ps`",
        "`stop --all` (a note)",
        "without a proof",
        "alive at its return, later",
        "names and cgroups left",
        "memory of the machine, KiB",
        "open files of the machine",
    ];
    table(&head, &[row])
}

/// What was there before, what came and what stayed.
fn levels(levels: &Levels) -> String {
    let Levels { before, during, after } = levels;
    let change = |now: &u64| i128::from(*now) - i128::from(*before);
    let kept = levels.kept_percent().map_or(NOTHING.to_owned(), |kept| format!("{kept:.1} %"));
    format!("{before} {:+} → {:+} ({kept} kept)", change(during), change(after))
}

fn sweep(sweep: &Sweep) -> String {
    #[expect(clippy::cast_precision_loss, reason = "durations far below 2^52 ns")]
    let real = sweep.sweep_ns as f64 / sweep.raw_read.median_ns as f64;
    let row = vec![
        sweep.processes.to_string(),
        format!("{:.1} ms", sweep.raw_read.median_ms()),
        times(Some(sweep.dry_run.ratio_to(&sweep.raw_read))),
        times(Some(real)),
        sweep.left.to_string(),
    ];
    let head = [
        "a lost run among processes",
        "reading stat and environ of all (a note)",
        "`sweep --dry-run`",
        "`sweep`, once",
        "left of it",
    ];
    table(&head, &[row])
}
