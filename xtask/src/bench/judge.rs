//! The acceptance figures: what was promised, what was measured.

use fullstop_bench::plan::{Contender, Role};
use fullstop_bench::results::{FLOOR_PROGRAM, FLOORS, Results, Sample, SpawnKind};
use serde::Serialize;

const STOP_CGROUP: f64 = 1.2;
const STOP_TREE: f64 = 2.5;
const SINGLE_MS: f64 = 2.0;
const RUN_TRUE: f64 = 1.2;
const PSS_KIB: f64 = 512.0;

#[derive(Serialize)]
pub struct Figure {
    pub what: String,
    pub unit: &'static str,
    pub measured: Option<f64>,
    pub at_most: f64,
    /// None when it could not be measured, which is no pass.
    pub pass: Option<bool>,
}

/// What the figures are taken from: one contender of each role at most.
pub struct Cast<'a> {
    contenders: &'a [Contender],
    results: &'a Results,
}

impl<'a> Cast<'a> {
    pub fn new(contenders: &'a [Contender], results: &'a Results) -> Self {
        Self { contenders, results }
    }

    pub fn name(&self, role: Role) -> Option<&'a str> {
        self.contenders
            .iter()
            .find(|contender| contender.role == role)
            .map(|contender| contender.name.as_str())
    }

    pub fn spawn(&self, name: &str, kind: SpawnKind) -> Option<&'a Sample> {
        self.results
            .spawn
            .iter()
            .find(|row| row.contender == name && row.kind == kind)
            .map(|row| &row.sample)
    }

    pub fn stop(&self, name: &str, size: u32, young: bool) -> Option<&'a Sample> {
        self.results
            .stop
            .iter()
            .find(|row| row.contender == name && row.size == size && row.young == young)
            .map(|row| &row.sample)
    }

    /// The fastest of the raw ways, so that nobody is compared with a slow one.
    pub fn floor(&self, size: u32, young: bool) -> Option<&'a Sample> {
        FLOORS
            .iter()
            .filter_map(|name| self.stop(name, size, young))
            .min_by_key(|sample| sample.median_ns)
    }
}

pub fn figures(contenders: &[Contender], results: &Results) -> Vec<Figure> {
    let cast = Cast::new(contenders, results);
    let mut figures = Vec::new();
    for (role, cage, at_most) in
        [(Role::FullstopCgroup, "cgroup", STOP_CGROUP), (Role::FullstopTree, "tree", STOP_TREE)]
    {
        for size in [100, 1000] {
            let run = cast.name(role).and_then(|name| cast.stop(name, size, false));
            let ratio = run.zip(cast.floor(size, false)).map(|(a, b)| a.ratio_to(b));
            let what = format!("stop-to-proof of {size}, {cage}, against the floor");
            figures.push(figure(what, "×", ratio, at_most));
            // The floor does not wake up on a signal and does not exit, as every
            // program must; this one does nothing else.
            let program = cast.stop(FLOOR_PROGRAM, size, false);
            let ratio = run.zip(program).map(|(a, b)| a.ratio_to(b));
            let what = format!("stop-to-proof of {size}, {cage}, against the floor as a program");
            figures.push(figure(what, "×", ratio, at_most));
        }
    }
    for (role, cage) in [(Role::FullstopCgroup, "cgroup"), (Role::FullstopTree, "tree")] {
        for (young, when) in [(false, ""), (true, ", just started")] {
            let run = cast.name(role).and_then(|name| cast.stop(name, 1, young));
            let more = run
                .zip(cast.floor(1, young))
                .map(|(run, floor)| run.median_ms() - floor.median_ms());
            let what = format!("stop-to-proof of one process{when}, {cage}, above the floor");
            figures.push(figure(what, "ms", more, SINGLE_MS));
        }
    }
    for (kind, what) in [(SpawnKind::Exit, "a static true"), (SpawnKind::ExitSystem, "/bin/true")] {
        let run = cast.name(Role::FullstopCgroup).and_then(|name| cast.spawn(name, kind));
        let tini = cast.name(Role::Tini).and_then(|name| cast.spawn(name, kind));
        let ratio = run.zip(tini).map(|(run, tini)| run.ratio_to(tini));
        let what = format!("run {what}, cgroup, against tini -s -g");
        figures.push(figure(what, "×", ratio, RUN_TRUE));
    }
    for role in [Role::FullstopCgroup, Role::FullstopTree] {
        let Some(name) = cast.name(role) else {
            continue;
        };
        let row = results.memory.iter().find(|row| row.contender == name);
        let what = format!("PSS of keeper and guard, {name}");
        figures.push(figure(what, "KiB", row.map(|row| row.pss_kib_per_run), PSS_KIB));
    }
    for role in [Role::FullstopCgroup, Role::FullstopTree] {
        let Some(name) = cast.name(role) else {
            continue;
        };
        let mut rows = results.survivors.iter().filter(|row| row.contender == name).peekable();
        #[expect(clippy::cast_precision_loss, reason = "a few hundred processes")]
        let survivors =
            rows.peek().is_some().then(|| rows.map(|row| row.survivors).sum::<usize>() as f64);
        figures.push(figure(format!("survivors, {name}"), "processes", survivors, 0.0));
    }
    figures
}

fn figure(what: String, unit: &'static str, measured: Option<f64>, at_most: f64) -> Figure {
    Figure { what, unit, measured, at_most, pass: measured.map(|measured| measured <= at_most) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstop_bench::results::Stop;

    fn stop(contender: &str, millis: u64) -> Stop {
        let sample = Sample::of(vec![millis * 1_000_000]).unwrap();
        Stop {
            contender: contender.to_owned(),
            size: 100,
            young: false,
            sample,
            alive_at_return: 0,
        }
    }

    #[test]
    fn the_fastest_floor_is_the_measure() {
        let contender = Contender {
            name: "fullstop".to_owned(),
            role: Role::FullstopCgroup,
            prefix: Vec::new(),
            prefix_at_once: Vec::new(),
            host: None,
            echoes: false,
            missing: None,
        };
        let results = Results {
            stop: vec![stop(FLOORS[0], 20), stop(FLOORS[1], 10), stop("fullstop", 13)],
            ..Results::default()
        };
        let figures = figures(&[contender], &results);
        let judged = figures.iter().find(|figure| figure.what.contains("of 100, cgroup")).unwrap();
        assert_eq!(judged.pass, Some(false));
        assert!((judged.measured.unwrap() - 1.3).abs() < 1e-9);
    }
}
