//! A ticker of a millisecond beside runs that start and stop, in one program that embeds the
//! library on one thread.

use std::process::{Command, Stdio};

use fullstop_bench::soak::{Answer, Figure, Job, Lateness, Ticked};

use super::{notes, step};
use crate::{Outcome, proc};

/// What is handed over in a poll, and no more: neither files nor `/proc` are read there.
const LONGEST_POLL_MS: f64 = 1.0;
/// A thread beside, which does nothing but tick, tells what a machine that starts so many
/// processes does to any ticker; a thread that hands them over as well gets no worse by more.
const LATER: f64 = 2.0;

pub fn play(job: &Job) -> Outcome<Answer> {
    step(&format!("a ticker, and {} runs that start and stop", job.runs));
    let told = Command::new(&job.ticker)
        .arg(&job.state)
        .arg(job.runs.to_string())
        .stdout(Stdio::piped())
        .spawn()?
        .wait_with_output()?;
    let ticked: Ticked = serde_json::from_slice(&told.stdout)?;
    let later = ms(ticked.beside.most_us) / ms(ticked.control.most_us);
    let mut figures = vec![
        Figure::count("stopped, and proven", ticked.proven, job.runs),
        Figure::at_most(
            "longest poll of a run's future, processor time",
            Some(ms(ticked.longest_poll_us)),
            "ms",
            LONGEST_POLL_MS,
        ),
        Figure::at_most("99 % of ticks, late ÷ on a thread beside", Some(later), "×", LATER),
    ];
    for (whose, late) in [
        ("alone", ticked.alone),
        ("beside the runs", ticked.beside),
        ("on a thread beside", ticked.control),
    ] {
        figures.extend(told_of(whose, late));
    }
    figures.push(Figure::count("processes left", proc::living().len(), 0));
    Ok(Answer { figures, notes: notes("not stopped", &ticked.failures) })
}

fn told_of(whose: &str, late: Lateness) -> [Figure; 3] {
    let figure =
        |what: &str, us| Figure::noted(&format!("late {whose}, {what}"), Some(ms(us)), "ms");
    [figure("median", late.median_us), figure("99 %", late.most_us), figure("most", late.worst_us)]
}

#[expect(clippy::cast_precision_loss, reason = "durations far below 2^52 µs")]
fn ms(us: u64) -> f64 {
    us as f64 / 1e3
}
