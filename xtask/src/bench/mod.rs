//! `cargo xtask bench`: fullstop and its peers, side by side, in one run.
//!
//! Here everything is built, installed, shown and judged; what is timed is
//! timed by `bench-measure`, in a closed world of its own.

mod capturers;
mod flow;
mod judge;
mod kept;
mod peers;
mod show;

use std::path::{Path, PathBuf};

use fullstop_bench::plan::{Bits, Capturer, Contender, Part, Plan, Role};
use fullstop_bench::results::Results;
use serde::Serialize;

use crate::cargo::{Metadata, build, root};
use crate::workshop::{enclosed, fresh_dir, installed, program, state_dir};
use crate::{Outcome, needs};

/// No state directory can be made here, so that a run goes on without a record.
const NOWHERE: &str = "/proc/none";

pub struct Options {
    quick: bool,
    check: bool,
    parts: Vec<Part>,
    json: Option<PathBuf>,
    markdown: Option<PathBuf>,
}

impl Options {
    pub fn parse(words: &[&str]) -> Outcome<Self> {
        let mut options =
            Self { quick: false, check: false, parts: Vec::new(), json: None, markdown: None };
        let mut words = words.iter();
        while let Some(&word) = words.next() {
            let mut value = || {
                let value = words.next().copied();
                value.ok_or_else(|| format!("{word} takes a value"))
            };
            match word {
                "--quick" => options.quick = true,
                "--check" => options.check = true,
                "--only" => options.parts.push(part(value()?)?),
                "--json" => options.json = Some(value()?.into()),
                "--markdown" => options.markdown = Some(value()?.into()),
                _ => return Err(format!("unknown option {word}").into()),
            }
        }
        if options.parts.is_empty() {
            options.parts = Part::ALL.into();
        }
        Ok(options)
    }
}

fn part(name: &str) -> Outcome<Part> {
    let names = Part::ALL.map(Part::name);
    Part::ALL
        .into_iter()
        .find(|part| part.name() == name)
        .ok_or_else(|| format!("--only takes one of {}", names.join(", ")).into())
}

/// The whole of a bench, as it is written to the JSON file.
#[derive(Serialize)]
struct Report<'a> {
    quick: bool,
    contenders: &'a [Contender],
    capturers: &'a [Capturer],
    results: &'a Results,
    figures: &'a [judge::Figure],
}

pub fn run(options: &Options) -> Outcome<bool> {
    if !needs::is_root() {
        return Err("the bench needs root: it runs in a pid namespace and a cgroup".into());
    }
    needs::provide(needs::PEERS);
    let target = Metadata::ask()?.target_directory;
    let programs =
        build(&["-p", "fullstop-cli", "-p", "fullstop-zoo", "-p", "fullstop-bench"], None)?;
    let workshop = target.join("bench");
    let scratch = fresh_dir(&workshop.join("scratch"))?;
    let state = state_dir(&scratch)?;
    let fullstop = installed(&program(&programs, "fullstop")?, &workshop)?;
    // Records are compared with tini alone, and output with others; nobody else need
    // be built for that.
    let few = |part: &Part| matches!(part, Part::Records | Part::Output);
    let peers = if options.parts.iter().all(few) {
        peers::prefixes()
    } else {
        peers::all(&root(), &workshop)
    };
    let capturers = if options.parts.contains(&Part::Output) {
        capturers::all(&fullstop, &root(), &workshop)
    } else {
        Vec::new()
    };
    let plan = Plan {
        quick: options.quick,
        parts: options.parts.clone(),
        scratch: scratch.clone(),
        state: state.clone(),
        bits: Bits {
            stamp: program(&programs, "bench-stamp")?,
            true_: program(&programs, "bench-true")?,
            tree: program(&programs, "bench-tree")?,
            floor: program(&programs, "bench-floor")?,
            flood: program(&programs, "bench-flood")?,
        },
        zoo: Some(program(&programs, "zoo")?),
        contenders: contenders(&fullstop, &state, peers),
        capturers,
        tmux: needs::find("tmux"),
        fullstop,
    };
    let results = measure(&program(&programs, "bench-measure")?, &plan);

    std::fs::remove_dir_all(&state)?;
    let results = results?;
    std::fs::remove_dir_all(&scratch)?;
    let figures = judge::figures(&plan.contenders, &plan.capturers, &results);
    let text = show::markdown(&plan, &results, &figures);
    println!("{text}");
    let markdown = options.markdown.clone().unwrap_or(target.join("bench.md"));
    let json = options.json.clone().unwrap_or(target.join("bench.json"));
    std::fs::write(&markdown, &text)?;
    let report = Report {
        quick: options.quick,
        contenders: &plan.contenders,
        capturers: &plan.capturers,
        results: &results,
        figures: &figures,
    };
    std::fs::write(&json, serde_json::to_vec_pretty(&report)?)?;
    eprintln!("written: {}, {}", markdown.display(), json.display());
    Ok(!options.check || figures.iter().all(|figure| figure.pass == Some(true)))
}

fn contenders(fullstop: &Path, state: &Path, peers: Vec<Contender>) -> Vec<Contender> {
    let fullstop = fullstop.display().to_string();
    let state = state.join("contenders").display().to_string();
    let run = |name: &str, role, cage: &str, quiet: &[&str], state: &str| {
        let run = [&[&fullstop, "run"], quiet, &["--cage", cage]].concat();
        Contender {
            name: name.to_owned(),
            role,
            prefix: words(&[&run, &["--"][..]].concat()),
            prefix_at_once: words(&[&run, &["--ladder", "kill", "--"][..]].concat()),
            env: vec![("FULLSTOP_DIR".to_owned(), state.to_owned())],
            host: None,
            echoes: false,
            missing: None,
        }
    };
    // Records belong to the bench, never to the person who runs it.
    let caged = |name: &str, role, cage: &str| run(name, role, cage, &[], &state);
    let engine = |name: &str, role, cage: &str| run(name, role, cage, &["-q"], NOWHERE);
    let mut all = vec![
        Contender {
            name: "posix_spawn".to_owned(),
            role: Role::Floor,
            prefix: Vec::new(),
            prefix_at_once: Vec::new(),
            env: Vec::new(),
            host: None,
            echoes: false,
            missing: None,
        },
        caged("fullstop run (cgroup)", Role::FullstopCgroup, "cgroup"),
        caged("fullstop run (tree)", Role::FullstopTree, "tree"),
        engine("fullstop run (cgroup), no record", Role::EngineCgroup, "cgroup"),
        engine("fullstop run (tree), no record", Role::EngineTree, "tree"),
    ];
    all.extend(peers);
    all
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

fn measure(measurer: &Path, plan: &Plan) -> Outcome<Results> {
    let plan_file = plan.scratch.join("plan.json");
    let results_file = plan.scratch.join("results.json");
    std::fs::write(&plan_file, serde_json::to_vec(plan)?)?;
    enclosed(measurer, "measure", &[&plan_file, &results_file])?;
    Ok(serde_json::from_slice(&std::fs::read(&results_file)?)?)
}
