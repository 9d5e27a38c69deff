//! One crowd, and one that is five times as large.

use fullstop_bench::soak::{Answer, Figure, Job};

use super::{crowd, step};
use crate::Outcome;

const TIMES: usize = 5;
/// The large crowd may take twice as long as five small ones.
const MOST: f64 = 2.0;

pub fn play(job: &Job) -> Outcome<Answer> {
    let of = |runs: usize, name: &str| {
        step(&format!("{runs} runs"));
        let (state, scratch) = (job.state.join(name), job.scratch.join(name));
        crowd::play(&Job { runs, state, scratch, ..job.clone() })
    };
    let small = of(job.runs / TIMES, "small")?;
    let large = of(job.runs, "large")?;
    #[expect(clippy::cast_precision_loss, reason = "it is five")]
    let ratio = seconds(&large).zip(seconds(&small)).map(|(l, s)| l / (s * TIMES as f64));

    let mut answer = Answer::default();
    for (runs, part) in [(job.runs / TIMES, small), (job.runs, large)] {
        let named = |text: String| format!("{runs}: {text}");
        answer.notes.extend(part.notes.into_iter().map(named));
        let figures = part.figures.into_iter();
        answer.figures.extend(figures.map(|figure| Figure { what: named(figure.what), ..figure }));
    }
    let what = format!("{} ÷ {TIMES} of the small crowd", crowd::STOP);
    answer.figures.push(Figure::at_most(&what, ratio, "×", MOST));
    Ok(answer)
}

fn seconds(answer: &Answer) -> Option<f64> {
    answer.figures.iter().find(|figure| figure.what == crowd::STOP)?.measured
}
