//! The acceptance figures: what was promised, what was measured.

use fullstop_bench::plan::{CaptureRole, Capturer, Contender, Role};
use fullstop_bench::results::{FLOOR_PROGRAM, FLOORS, Output, Results, Sample, SpawnKind, proven};
use serde::Serialize;

const STOP_CGROUP: f64 = 1.2;
const STOP_TREE: f64 = 2.5;
const SINGLE_MS: f64 = 2.0;
const RUN_TRUE: f64 = 1.2;
const RUN_TRUE_RECORDED: f64 = 1.5;
const PSS_KIB: f64 = 512.0;
/// The one promise that is a time: nobody likes to wait for a list.
const PS_MS: f64 = 200.0;
const SWEEP: f64 = 1.2;
/// Of the time that `cat` takes: four fifths of its speed.
const CAPTURE: f64 = 1.25;
const CAPTURE_CPU: f64 = 1.0;
/// The counters are the whole machine's, and something else always moves.
const KEPT_PERCENT: f64 = 5.0;

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

    /// `ended` is how many ended runs stood beside it.
    pub fn recorded(&self, name: &str, ended: usize, kind: SpawnKind) -> Option<&'a Sample> {
        self.results
            .records
            .recorded
            .iter()
            .find(|row| row.contender == name && row.ended == ended && row.kind == kind)
            .map(|row| &row.sample)
    }

    /// Against tini, in the same race.
    pub fn recorded_to_tini(&self, role: Role, ended: usize, kind: SpawnKind) -> Option<f64> {
        let tini = self.recorded(self.name(Role::Tini)?, 0, kind)?;
        Some(self.recorded(self.name(role)?, ended, kind)?.ratio_to(tini))
    }

    pub fn spawn_to_tini(&self, role: Role, kind: SpawnKind) -> Option<f64> {
        let tini = self.spawn(self.name(Role::Tini)?, kind)?;
        Some(self.spawn(self.name(role)?, kind)?.ratio_to(tini))
    }

    /// How many ended runs there were in the directory that was full of them.
    pub fn ended(&self) -> usize {
        self.results.records.recorded.iter().map(|row| row.ended).max().unwrap_or(0)
    }

    /// The fastest of the raw ways, so that nobody is compared with a slow one.
    pub fn floor(&self, size: u32, young: bool) -> Option<&'a Sample> {
        FLOORS
            .iter()
            .filter_map(|name| self.stop(name, size, young))
            .min_by_key(|sample| sample.median_ns)
    }
}

pub fn figures(contenders: &[Contender], capturers: &[Capturer], results: &Results) -> Vec<Figure> {
    let cast = Cast::new(contenders, results);
    let mut figures = Vec::new();
    for (role, cage, at_most) in
        [(Role::FullstopCgroup, "cgroup", STOP_CGROUP), (Role::FullstopTree, "tree", STOP_TREE)]
    {
        for size in [100, 1000] {
            let name = cast.name(role);
            let run = name.and_then(|name| cast.stop(name, size, false));
            // Without a cgroup the proof cannot be seen from outside before the return.
            let proof = name.and_then(|name| cast.stop(&proven(name), size, false)).or(run);
            let ratio = proof.zip(cast.floor(size, false)).map(|(a, b)| a.ratio_to(b));
            let what = format!("stop-to-proof of {size}, {cage}, against the floor");
            figures.push(figure(what, "×", ratio, at_most));
            // Who returns has written down what happened, and has exited, as every
            // program must; this one does nothing else.
            let program = cast.stop(FLOOR_PROGRAM, size, false);
            let ratio = run.zip(program).map(|(a, b)| a.ratio_to(b));
            let what = format!("stop-to-return of {size}, {cage}, against the floor as a program");
            figures.push(figure(what, "×", ratio, at_most));
        }
    }
    for (role, cage) in [(Role::FullstopCgroup, "cgroup"), (Role::FullstopTree, "tree")] {
        for (young, when) in [(false, ""), (true, ", just started")] {
            let run = cast.name(role).and_then(|name| cast.stop(name, 1, young));
            let more = run
                .zip(cast.floor(1, young))
                .map(|(run, floor)| run.median_ms() - floor.median_ms());
            let what = format!("stop-to-return of one process{when}, {cage}, above the floor");
            figures.push(figure(what, "ms", more, SINGLE_MS));
        }
    }
    for (kind, what) in TRUE {
        // Both races have it; that of the spawns is the longer one.
        let ratio = cast
            .spawn_to_tini(Role::EngineCgroup, kind)
            .or_else(|| cast.recorded_to_tini(Role::EngineCgroup, 0, kind));
        let what = format!("run {what}, no record, cgroup, against tini -s -g");
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
    records(&cast, &mut figures);
    output(capturers, results, &mut figures);
    figures
}

const TRUE: [(SpawnKind, &str); 2] =
    [(SpawnKind::Exit, "a static true"), (SpawnKind::ExitSystem, "/bin/true")];

fn records(cast: &Cast, figures: &mut Vec<Figure>) {
    for (role, cage) in [(Role::FullstopCgroup, "cgroup"), (Role::FullstopTree, "tree")] {
        for (kind, what) in TRUE {
            let ratio = cast.recorded_to_tini(role, 0, kind);
            let what = format!("run {what}, with its record, {cage}, against tini -s -g");
            figures.push(figure(what.clone(), "×", ratio, RUN_TRUE_RECORDED));
            let ended = Some(cast.ended()).filter(|&ended| ended > 0);
            let ratio = ended.and_then(|ended| cast.recorded_to_tini(role, ended, kind));
            let many = ended.map_or("many".to_owned(), |ended| ended.to_string());
            let what = format!("{what}, beside {many} ended runs");
            figures.push(figure(what, "×", ratio, RUN_TRUE_RECORDED));
        }
    }
    let crowd = cast.results.records.crowd.as_ref();
    let many = crowd.map_or("many".to_owned(), |crowd| crowd.runs.to_string());
    let ps = crowd.map(|crowd| crowd.ps.median_ms());
    figures.push(figure(format!("ps of {many} live runs"), "ms", ps, PS_MS));
    #[expect(clippy::cast_precision_loss, reason = "a few thousand at most")]
    let left = crowd.map(|crowd| crowd.left() as f64);
    let what = format!("unproven or left over, stop --all of {many} live runs");
    figures.push(figure(what, "of them", left, 0.0));
    let kept = crowd.and_then(|crowd| crowd.memory_kib.kept_percent());
    let what = format!("memory of {many} live runs, not given back");
    figures.push(figure(what, "%", kept, KEPT_PERCENT));
    let kept = crowd.and_then(|crowd| crowd.descriptors.kept_percent());
    let what = format!("descriptors of {many} live runs, not given back");
    figures.push(figure(what, "%", kept, KEPT_PERCENT));

    let sweep = cast.results.records.sweep.as_ref();
    let many = sweep.map_or("many".to_owned(), |sweep| sweep.processes.to_string());
    let ratio = sweep.map(|sweep| sweep.dry_run.ratio_to(&sweep.raw_read));
    let what = format!("sweep --dry-run among {many} processes, against reading stat and environ");
    figures.push(figure(what, "×", ratio, SWEEP));
    #[expect(clippy::cast_precision_loss, reason = "one or two")]
    let left = sweep.map(|sweep| sweep.left as f64);
    figures.push(figure("left over by the sweep of a lost run".to_owned(), "of it", left, 0.0));
}

fn output(capturers: &[Capturer], results: &Results, figures: &mut Vec<Figure>) {
    let start = capturers.iter().find(|capturer| capturer.role == CaptureRole::Start);
    let ratios = start.and_then(|start| to_cat(capturers, &results.output, &start.name));
    let whole = ratios.as_ref().map(|ratios| ratios.whole);
    let what = "a flood captured by start, order to end, against cat > file";
    figures.push(figure(what.to_owned(), "×", whole, CAPTURE));
    let cpu = ratios.as_ref().and_then(|ratios| ratios.cpu);
    let what = "processor time to capture a flood by start, against cat > file";
    figures.push(figure(what.to_owned(), "×", cpu, CAPTURE_CPU));
    let memory = results.output.memory.iter().find(|row| row.contender == "fullstop start");
    let what = "PSS of keeper and guard, fullstop start, idle".to_owned();
    figures.push(figure(what, "KiB", memory.map(|row| row.pss_kib_per_run), PSS_KIB));
}

/// What capturing takes, against `cat`.
pub struct ToCat {
    pub flow: f64,
    pub whole: f64,
    pub cpu: Option<f64>,
}

pub fn to_cat(capturers: &[Capturer], output: &Output, name: &str) -> Option<ToCat> {
    let of = |name: &str| output.captures.iter().find(|row| row.capturer == name);
    let cat = capturers.iter().find(|capturer| capturer.role == CaptureRole::Cat)?;
    let (row, cat) = (of(name)?, of(&cat.name)?);
    Some(ToCat {
        flow: row.flow.ratio_to(&cat.flow),
        whole: row.whole.ratio_to(&cat.whole),
        cpu: row.cpu.zip(cat.cpu).map(|(row, cat)| row.ratio_to(&cat)),
    })
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
            env: Vec::new(),
            host: None,
            echoes: false,
            missing: None,
        };
        let results = Results {
            stop: vec![stop(FLOORS[0], 20), stop(FLOORS[1], 10), stop("fullstop", 13)],
            ..Results::default()
        };
        let figures = figures(&[contender], &[], &results);
        let judged = figures.iter().find(|figure| figure.what.contains("of 100, cgroup")).unwrap();
        assert_eq!(judged.pass, Some(false));
        assert!((judged.measured.unwrap() - 1.3).abs() < 1e-9);
    }
}
