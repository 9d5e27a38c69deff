//! How long a command takes to start, and `true` to be over.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::Duration;

use fullstop_bench::clock::now_ns;
use fullstop_bench::plan::{Contender, Plan};
use fullstop_bench::results::{Failure, Results, Sample, Spawn, SpawnKind};

use crate::Outcome;
use crate::child::{command, reap_the_dead};
use crate::fifo::Fifo;

const KINDS: [SpawnKind; 3] = [SpawnKind::Exec, SpawnKind::Exit, SpawnKind::ExitSystem];
const ROUNDS: usize = 300;
const ROUNDS_QUICK: usize = 40;
/// The first rounds fill caches and are not counted.
const WARM_UP: usize = 3;
/// How long the kernel needs to forget a migration between cgroups.
const ECHO: Duration = Duration::from_millis(30);
const PATIENCE: Duration = Duration::from_secs(10);

struct Runner<'a> {
    contender: &'a Contender,
    host: Option<Host>,
    times: HashMap<SpawnKind, Vec<u64>>,
    broken: Option<String>,
}

pub fn measure(plan: &Plan, found: &mut Results) -> Outcome<()> {
    let contenders: Vec<&Contender> =
        plan.contenders.iter().filter(|contender| contender.takes_part()).collect();
    for (contender, kind, sample) in race(plan, &contenders, &KINDS, "spawn", found)? {
        found.spawn.push(Spawn { contender: contender.name.clone(), kind, sample });
    }
    Ok(())
}

/// Lets them all start these commands in turn.
pub fn race<'a>(
    plan: &Plan,
    contenders: &[&'a Contender],
    kinds: &[SpawnKind],
    part: &str,
    found: &mut Results,
) -> Outcome<Vec<(&'a Contender, SpawnKind, Sample)>> {
    let mut fifo = Fifo::make(&plan.scratch.join("stamp"))?;
    let stamp = vec![utf8(&plan.bits.stamp)?, fifo.path().to_owned()];
    let tiny = vec![utf8(&plan.bits.true_)?];
    let system = vec!["/bin/true".to_owned()];
    let mut runners: Vec<Runner> =
        contenders.iter().map(|contender| Runner::new(contender)).collect();
    let rounds = if plan.quick { ROUNDS_QUICK } else { ROUNDS };
    for round in 0..WARM_UP + rounds {
        for &kind in kinds {
            let words = match kind {
                SpawnKind::Exec => &stamp,
                SpawnKind::Exit => &tiny,
                SpawnKind::ExitSystem => &system,
            };
            // Interleaved, so that noise hits all alike, and each time beginning
            // with another one, so that nobody always follows the same
            // neighbour.
            let count = runners.len();
            for turn in 0..count {
                let runner = &mut runners[(round + turn) % count];
                runner.run(kind, words, &mut fifo, round >= WARM_UP);
                if runner.contender.echoes {
                    std::thread::sleep(ECHO);
                }
            }
        }
    }
    let mut timed = Vec::new();
    for mut runner in runners {
        if let Some(why) = runner.broken {
            let contender = runner.contender.name.clone();
            found.failures.push(Failure { contender, part: part.to_owned(), why });
            continue;
        }
        for &kind in kinds {
            let times = runner.times.remove(&kind).unwrap_or_default();
            timed.extend(Sample::of(times).map(|sample| (runner.contender, kind, sample)));
        }
    }
    Ok(timed)
}

impl<'a> Runner<'a> {
    fn new(contender: &'a Contender) -> Self {
        let (host, broken) = match contender.host.as_deref().map(Host::start) {
            None => (None, None),
            Some(Ok(host)) => (Some(host), None),
            Some(Err(error)) => (None, Some(error.to_string())),
        };
        Self { contender, host, times: HashMap::new(), broken }
    }

    fn run(&mut self, kind: SpawnKind, words: &[String], fifo: &mut Fifo, counts: bool) {
        if self.broken.is_some() {
            return;
        }
        match self.time(kind, words, fifo) {
            Ok(time) if counts => self.times.entry(kind).or_default().push(time),
            Ok(_) => {}
            Err(error) => self.broken = Some(error.to_string()),
        }
    }

    fn time(&mut self, kind: SpawnKind, words: &[String], fifo: &mut Fifo) -> Outcome<u64> {
        let (start, end) = if let Some(host) = &mut self.host {
            host.ask(words)?
        } else {
            let words = [&self.contender.prefix, words].concat();
            let mut command = command(&words, &self.contender.env)?;
            let start = now_ns();
            let mut child = command.spawn()?;
            let status = child.wait()?;
            let end = now_ns();
            if !status.success() {
                return Err(format!("`{}` ended with {status}", words.join(" ")).into());
            }
            (start, end)
        };
        reap_the_dead();
        if kind != SpawnKind::Exec {
            return Ok(end - start);
        }
        let mut stamp = [0; 8];
        fifo.read_exact(&mut stamp, PATIENCE)?;
        Ok(u64::from_le_bytes(stamp).saturating_sub(start))
    }
}

/// A library's host: told a command line, it answers with two clock readings,
/// before the spawn and after the wait.
struct Host {
    child: Child,
    ask: ChildStdin,
    answer: BufReader<ChildStdout>,
}

impl Host {
    fn start(words: &[String]) -> Outcome<Self> {
        let mut child =
            command(words, &[])?.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let ask = child.stdin.take().ok_or("the host has no stdin")?;
        let answer = child.stdout.take().ok_or("the host has no stdout")?;
        Ok(Self { child, ask, answer: BufReader::new(answer) })
    }

    fn ask(&mut self, words: &[String]) -> Outcome<(u64, u64)> {
        writeln!(self.ask, "{}", words.join("\t"))?;
        let mut line = String::new();
        self.answer.read_line(&mut line)?;
        let (start, end) =
            line.trim().split_once(' ').ok_or_else(|| format!("the host answered {line:?}"))?;
        Ok((start.parse()?, end.parse()?))
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // It is our child, not reaped yet, so that the number is still its own.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn utf8(path: &std::path::Path) -> Outcome<String> {
    Ok(path.to_str().ok_or("the build directory's name is not UTF-8")?.to_owned())
}
