//! The results about output as Markdown.

use fullstop_bench::plan::Capturer;
use fullstop_bench::results::{BARE, Output, Results};

use super::judge::to_cat;
use super::show::{NOTHING, table, times};

pub fn markdown(capturers: &[Capturer], results: &Results) -> String {
    let output = &results.output;
    if output.filesystem.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "## Output\n\nA flood of {} MiB, in writes of 64 KiB, captured into a file on {}. \
         Times, so that less is better.\n\n",
        output.bytes >> 20,
        output.filesystem
    );
    text += &captures(capturers, output);
    text += &keys(output);
    text += &memory(output);
    text
}

fn captures(capturers: &[Capturer], output: &Output) -> String {
    let mut rows = Vec::new();
    for capturer in capturers {
        let name = match &capturer.note {
            Some(note) => format!("{} ({note})", capturer.name),
            None => capturer.name.clone(),
        };
        if let Some(why) = &capturer.missing {
            let nothing = NOTHING.to_owned();
            rows.push(vec![name, format!("not here: {why}"), nothing.clone(), nothing]);
            continue;
        }
        let ratios = to_cat(capturers, output, &capturer.name);
        rows.push(vec![
            name,
            times(ratios.as_ref().map(|ratios| ratios.flow)),
            times(ratios.as_ref().map(|ratios| ratios.whole)),
            times(ratios.as_ref().and_then(|ratios| ratios.cpu)),
        ]);
    }
    let head = [
        "`flood`, captured by",
        "first byte to last byte, × cat",
        "order to end, × cat",
        "processor time without the flood's, × cat",
    ];
    table(&head, &rows)
}

fn keys(output: &Output) -> String {
    let bare = output.keys.iter().find(|keys| keys.way == BARE).map(|keys| keys.sample);
    let row = |keys: &fullstop_bench::results::Keys| {
        let ratio = bare.map(|bare| keys.sample.ratio_to(&bare));
        let more = bare.map(|bare| (keys.sample.median_ms() - bare.median_ms()) * 1000.0);
        let more = more.map_or(NOTHING.to_owned(), |more| format!("{more:+.0} µs"));
        vec![keys.way.clone(), times(ratio), more]
    };
    let rows: Vec<_> = output.keys.iter().map(row).collect();
    table(&["a key until its echo by `cat`", "× a bare pty", "more (a note)"], &rows)
}

fn memory(output: &Output) -> String {
    let row = |memory: &fullstop_bench::results::Memory| {
        #[expect(clippy::cast_precision_loss, reason = "a few hundred processes")]
        let processes = memory.processes as f64 / memory.runs as f64;
        let name = memory.contender.clone();
        vec![name, format!("{processes:.1}"), format!("{:.0}", memory.pss_kib_per_run)]
    };
    let rows: Vec<_> = output.memory.iter().map(row).collect();
    table(&["idle", "processes per run", "PSS per run, KiB"], &rows)
}
