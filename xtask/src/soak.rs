//! `cargo xtask soak`: what issues ask for in large counts, seconds and ratios, which
//! no test asserts. Here it is built, shown and judged; it is played by `bench-measure`,
//! in a closed world.

use std::fmt::Write as _;

use fullstop_bench::soak::{Answer, Figure, Job, Scenario, Wanted};

use crate::cargo::{Metadata, build};
use crate::table::{Side, aligned};
use crate::workshop::{enclosed, fresh_dir, installed, program, state_dir};
use crate::{Outcome, needs};

#[derive(Debug, PartialEq, Eq)]
pub struct Options {
    list: bool,
    scenarios: Vec<Scenario>,
    runs: Option<usize>,
    busy: Option<usize>,
}

impl Options {
    pub fn parse(words: &[&str]) -> Outcome<Self> {
        let mut options = Self { list: false, scenarios: Vec::new(), runs: None, busy: None };
        let mut words = words.iter();
        while let Some(&word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} takes a value"));
            let number = |text: &str| {
                text.parse().map_err(|_| format!("{word} takes a number, not {text:?}"))
            };
            match word {
                "--list" => options.list = true,
                "--only" => options.scenarios.push(scenario(value()?)?),
                "--runs" => options.runs = Some(number(value()?)?),
                "--busy" => options.busy = Some(number(value()?)?),
                _ => return Err(format!("there is no option {word}").into()),
            }
        }
        if options.runs == Some(0) {
            return Err("--runs takes a number of runs".into());
        }
        if options.scenarios.is_empty() {
            options.scenarios = Scenario::ALL.into();
        }
        Ok(options)
    }
}

fn scenario(name: &str) -> Outcome<Scenario> {
    let names = Scenario::ALL.map(Scenario::name);
    Scenario::ALL
        .into_iter()
        .find(|scenario| scenario.name() == name)
        .ok_or_else(|| format!("--only takes one of {}", names.join(", ")).into())
}

pub fn run(options: &Options) -> Outcome<bool> {
    if options.list {
        print!("{}", list(&options.scenarios));
        return Ok(true);
    }
    if !needs::is_root() {
        return Err("a soak needs root: it runs in a pid namespace and a cgroup".into());
    }
    needs::provide(needs::SOAK);
    let programs = build(&["-p", "fullstop-cli", "-p", "fullstop-bench"], None)?;
    let workshop = Metadata::ask()?.target_directory.join("soak");
    let fullstop = installed(&program(&programs, "fullstop")?, &workshop)?;
    let measurer = program(&programs, "bench-measure")?;
    let host = program(&programs, "bench-host")?;
    let follower = program(&programs, "bench-follow")?;
    let window = program(&programs, "bench-window")?;
    let ticker = program(&programs, "bench-ticker")?;

    let mut missed = 0;
    for &scenario in &options.scenarios {
        let scratch = fresh_dir(&workshop.join("scratch"))?;
        let state = state_dir(&scratch)?;
        let job = Job {
            scenario,
            runs: options.runs.unwrap_or(scenario.runs()),
            busy: options.busy.unwrap_or(scenario.busy()),
            fullstop: fullstop.clone(),
            host: host.clone(),
            follower: follower.clone(),
            window: window.clone(),
            ticker: ticker.clone(),
            state: state.clone(),
            scratch: scratch.join("agents"),
            answer: scratch.join("answer.json"),
        };
        let file = scratch.join("job.json");
        std::fs::write(&file, serde_json::to_vec(&job)?)?;
        let played = enclosed(&measurer, "soak", &[&file]);
        std::fs::remove_dir_all(&state)?;
        played?;
        let answer: Answer = serde_json::from_slice(&std::fs::read(&job.answer)?)?;
        std::fs::remove_dir_all(&scratch)?;
        println!("\n{}", shown(&job, &answer));
        missed += answer.figures.iter().filter(|figure| figure.is_missed()).count();
    }
    println!(
        "{}",
        if missed == 0 { "all as wanted".to_owned() } else { format!("missed: {missed}") }
    );
    Ok(missed == 0)
}

fn list(scenarios: &[Scenario]) -> String {
    let row = |scenario: &Scenario| {
        let with = format!("{} runs, {} busy loops", scenario.runs(), scenario.busy());
        [scenario.name().to_owned(), scenario.about().to_owned(), with]
    };
    let rows: Vec<_> = scenarios.iter().map(row).collect();
    aligned(&[Side::Left; 3], &rows)
}

fn shown(job: &Job, answer: &Answer) -> String {
    let Job { scenario, runs, busy, .. } = job;
    let mut rows = vec![["", "measured", "wanted", ""].map(ToOwned::to_owned)];
    rows.extend(answer.figures.iter().map(row));
    let sides = [Side::Left, Side::Right, Side::Right, Side::Left];
    let mut text =
        format!("{}: {runs} runs, {busy} busy loops\n{}", scenario.name(), aligned(&sides, &rows));
    for note in &answer.notes {
        let _ = writeln!(text, "  note: {note}");
    }
    text
}

fn row(figure: &Figure) -> [String; 4] {
    let number = |value: f64| {
        let whole = figure.unit.is_empty();
        if whole { format!("{value:.0}") } else { format!("{value:.2} {}", figure.unit) }
    };
    let wanted = match figure.wanted {
        None => String::new(),
        Some(Wanted::Exactly(wanted)) => number(wanted),
        Some(Wanted::AtMost(most)) => format!("≤ {}", number(most)),
    };
    let verdict = if figure.is_missed() { "MISSED" } else { "" };
    let measured = figure.measured.map_or("–".to_owned(), number);
    [figure.what.clone(), measured, wanted, verdict.to_owned()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_understood() {
        let options = Options::parse(&["--only", "crowd", "--runs", "200", "--busy", "3"]);
        let crowd = vec![Scenario::Crowd];
        let wanted = Options { list: false, scenarios: crowd, runs: Some(200), busy: Some(3) };
        assert_eq!(options.unwrap(), wanted);
        assert_eq!(Options::parse(&[]).unwrap().scenarios, Scenario::ALL);
    }

    #[test]
    fn mistakes_are_refused() {
        for words in [&["--only", "flood"][..], &["--runs", "many"], &["--runs", "0"], &["--busy"]]
        {
            assert!(Options::parse(words).is_err(), "{words:?}");
        }
    }

    #[test]
    fn a_missed_bound_is_told() {
        let row = |figure: Figure| row(&figure).join("|");
        assert_eq!(row(Figure::count("saved", 999, 1000)), "saved|999|1000|MISSED");
        assert_eq!(row(Figure::at_most("ps", Some(0.1), "s", 0.4)), "ps|0.10 s|≤ 0.40 s|");
        assert_eq!(row(Figure::noted("start", Some(4.5), "ms")), "start|4.50 ms||");
    }
}
