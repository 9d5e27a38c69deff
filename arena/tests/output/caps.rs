//! `--log-max`: the head and the tail are kept, never more than that, and the rest is
//! owned up to.

use std::fs;

use arena::{Context, Need, Outcome, Ready, Registry, World, ensure};

use super::tools::{LONG, calls, lines, log, over, same, stream, trace};
use crate::desk::{all_clean, dir, names, say, start, tell, who, zoo};
use crate::kit::{ANYWHERE, AS_ROOT, Lines, Place, add};

pub fn register(registry: &mut Registry) {
    add(registry, "caps::head-and-tail", &AS_ROOT, &[], head_and_tail);
    add(registry, "caps::just-enough", &ANYWHERE, &[], just_enough);
    add(registry, "caps::refused", &ANYWHERE, &[], refused);
    add(registry, "caps::flood", &ANYWHERE, &[Need::Program("strace")], flood);
}

const CAP: usize = 64 << 10;

/// The files of a log, by where they begin.
pub fn parts(world: &World, id: &str, stream: &str) -> Outcome<Vec<(usize, Vec<u8>)>> {
    let dir = dir(world, id);
    let first = format!("{stream}.log");
    let mut parts = Vec::new();
    for name in names(&dir) {
        let Some(rest) = name.strip_prefix(&first) else { continue };
        let start = match rest.strip_prefix('.') {
            None => 0,
            Some(start) => start.parse().context(format!("a part called {name}"))?,
        };
        parts.push((start, fs::read(dir.join(&name)).context("a part")?));
    }
    parts.sort();
    Ok(parts)
}

/// What the files of a log take, as far as anybody can tell while they change.
fn size(world: &World, id: &str) -> u64 {
    let dir = dir(world, id);
    let logs = names(&dir).into_iter().filter(|name| name.starts_with("out.log"));
    logs.filter_map(|name| Some(fs::metadata(dir.join(name)).ok()?.len())).sum()
}

fn head_and_tail(world: &mut World, place: Place) -> Outcome {
    const COUNT: u64 = 150_000;
    let mut ready = Ready::create(&world.dir())?;
    let words = [zoo(world, "count"), vec![COUNT.to_string()]].concat();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let id = start(world, place, &["--log-max", "64KB"], &words)?;
    ready.wait(LONG).context("it does not count")?;
    let asked = crate::desk::ask(world, place, &["wait", &id])?;
    // While it is looked, one file may go and another come.
    let part = CAP as u64 / 8;
    let mut most = 0;
    while world.ended(&asked.spawned).is_none() {
        most = most.max(size(world, &id));
        ensure!(most <= CAP as u64 + 2 * part, "the log has grown to {most} bytes");
    }
    asked.hear(world, LONG)?.expect(0)?;
    let (_, report) = over(world, place, &id)?;
    let all = lines(COUNT);
    let parts = parts(world, &id, "out")?;
    let kept: usize = parts.iter().map(|(_, bytes)| bytes.len()).sum();
    ensure!(kept <= CAP && kept > CAP / 2, "{kept} bytes are kept");
    ensure!(parts[0].0 == 0 && parts[0].1.len() == CAP / 2, "the head is not whole");
    for (start, bytes) in &parts {
        same(bytes, &all[*start..start + bytes.len()]).context(format!("the part at {start}"))?;
    }
    let end = parts.last().map_or(0, |(start, bytes)| start + bytes.len());
    ensure!(end == all.len(), "the log ends at {end} of {}", all.len());
    let told = stream(&report, "out")?;
    let cut = all.len() - kept;
    ensure!(told["bytes"] == all.len() && told["cut"] == cut, "{cut} are cut, told is {told}");
    let shown = tell(world, place, &["show", &id])?;
    ensure!(shown.contains("cut"), "show does not say that something is cut: {shown}");
    let said = say(world, place, &["logs", &id])?;
    said.expect(0)?;
    ensure!(said.err.contains(&format!("{cut} bytes cut")), "logs says {:?}", said.err);
    ensure!(said.err.lines().count() == 1, "logs says {:?}", said.err);
    let tail: usize = parts[1..].iter().map(|(_, bytes)| bytes.len()).sum();
    let mut seen = parts[0].1.clone();
    // A line that was cut in two is ended before it is said.
    if seen.last() != Some(&b'\n') && said.out.len() > kept {
        seen.push(b'\n');
    }
    seen.extend(&all[all.len() - tail..]);
    same(said.out.as_bytes(), &seen).context("logs")?;
    all_clean(world)
}

/// What fits is not cut, to the last byte.
fn just_enough(world: &mut World, place: Place) -> Outcome {
    let data = vec![b'a'; CAP / 2];
    fs::write(world.dir().join("data"), &data).context("data")?;
    let id = start(world, place, &["--log-max", "64KB"], &["cat", "data"])?;
    let (said, report) = over(world, place, &id)?;
    said.expect(0)?;
    same(&log(world, &id, "out.log")?, &data)?;
    ensure!(stream(&report, "out")?["cut"] == 0, "{report}");
    all_clean(world)
}

fn refused(world: &mut World, place: Place) -> Outcome {
    for value in ["0", "-1", "much", "1XB", ""] {
        let said = say(world, place, &["start", "--log-max", value, "--", "touch", "born"])?;
        said.expect(125)?;
        ensure!(said.err.contains("log-max"), "it said {:?}", said.err);
    }
    ensure!(!world.dir().join("born").exists(), "it was born");
    all_clean(world)
}

/// A flood costs its keeper about as many calls with a cap as without one: hardly any of it
/// is written only to be removed.
fn flood(world: &mut World, place: Place) -> Outcome {
    const BYTES: u64 = 64 << 20;
    let _go = Lines::create(world, "go")?;
    let script = format!("read go < go; head -c {BYTES} /dev/zero");
    let id = start(world, place, &["--log-max", "64KB"], &["sh", "-c", &script])?;
    let counts = world.out().join("counts");
    let keeper = who(world, &id)?.keeper.pid;
    let words = ["-f", "-c", "-o", counts.to_str().context("a path")?];
    let tracer = trace(world, keeper, &words)?;
    fs::write(world.dir().join("go"), "now\n").context("go")?;
    let (said, report) = over(world, place, &id)?;
    said.expect(0)?;
    world.wait(&tracer, LONG)?;
    let told = stream(&report, "out")?;
    let kept: usize = parts(world, &id, "out")?.iter().map(|(_, bytes)| bytes.len()).sum();
    ensure!(told["bytes"] == BYTES && told["cut"] == BYTES - kept as u64, "kept {kept}: {told}");
    let calls = calls(&counts)?;
    world.note(format!("{calls} calls for {BYTES} bytes"));
    // Before, a part of eight KiB was made and removed for each eight KiB: 14 calls each.
    let most = BYTES / (8 << 10) * 2;
    ensure!(calls < most, "{calls} calls, and not {most}");
    all_clean(world)
}
