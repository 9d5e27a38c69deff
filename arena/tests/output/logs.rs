//! `logs`: what was written, as it was asked for.

use arena::{Context, Need, Outcome, Registry, World, ensure};

use super::tools::{LONG, calls, over};
use crate::desk::{all_clean, ask_program, say, start, tell};
use crate::kit::{ANYWHERE, EVERYWHERE, Lines, Place, add};

pub fn register(registry: &mut Registry) {
    add(registry, "logs::streams", &EVERYWHERE, &[], streams);
    add(registry, "logs::last-lines", &ANYWHERE, &[], last_lines);
    add(registry, "logs::since", &ANYWHERE, &[], since);
    add(registry, "logs::escapes", &ANYWHERE, &[], escapes);
    add(registry, "logs::refused", &ANYWHERE, &[], refused);
    add(registry, "logs::costs", &ANYWHERE, &[Need::Program("strace")], costs);
}

/// In the order of time, although they are two files: each line waits until the one
/// before was seen in its log.
fn streams(world: &mut World, place: Place) -> Outcome {
    let _go = Lines::create(world, "go")?;
    let script = "for i in 1 2 3 4; do echo out $i; read go < go; echo err $i >&2; \
         read go < go; done";
    let id = start(world, place, &[], &["sh", "-c", script])?;
    for number in 1..=4 {
        for name in ["out", "err"] {
            let line = format!("{name} {number}\n");
            let path = crate::desk::dir(world, &id).join(format!("{name}.log"));
            let came = || std::fs::read_to_string(&path).is_ok_and(|all| all.ends_with(&line));
            ensure!(arena::await_until(super::tools::LONG, came), "no {line:?}");
            std::fs::write(world.dir().join("go"), "now\n").context("go")?;
        }
    }
    over(world, place, &id)?.0.expect(0)?;
    let all = "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\nout 4\nerr 4\n";
    let said = tell(world, place, &["logs", &id])?;
    ensure!(said == all, "logs says {said:?}");
    let said = tell(world, place, &["logs", "--stream", "err", &id])?;
    ensure!(said == "err 1\nerr 2\nerr 3\nerr 4\n", "the one stream is {said:?}");
    let said = tell(world, place, &["logs", "-t", &id])?;
    let (mut times, mut told) = (Vec::new(), String::new());
    for line in said.lines() {
        let at = line.find(" out ").or(line.find(" err ")).context(format!("no name: {line:?}"))?;
        times.push(line[..at].to_owned());
        told.push_str(line[at + 5..].trim_start());
        told.push('\n');
    }
    ensure!(told == all, "logs -t says {said:?}");
    ensure!(times.is_sorted() && times.iter().all(|time| !time.is_empty()), "times: {times:?}");
    all_clean(world)
}

fn last_lines(world: &mut World, place: Place) -> Outcome {
    let script = "i=0; while [ $i -lt 500 ]; do i=$((i+1)); echo $i; done; printf end";
    let id = start(world, place, &[], &["sh", "-c", script])?;
    over(world, place, &id)?.0.expect(0)?;
    for (count, should) in [("1", "end\n"), ("3", "499\n500\nend\n"), ("0", "")] {
        let said = tell(world, place, &["logs", "-n", count, &id])?;
        ensure!(said == should, "the last {count}: {said:?}");
    }
    let said = tell(world, place, &["logs", "-n", "10000", &id])?;
    ensure!(said.lines().count() == 501, "{} lines of 501", said.lines().count());
    let raw = tell(world, place, &["logs", "--raw", &id])?;
    ensure!(raw.ends_with("500\nend"), "raw adds something: {:?}", raw.lines().last());
    all_clean(world)
}

fn since(world: &mut World, place: Place) -> Outcome {
    let id = start(world, place, &[], &["echo", "here"])?;
    over(world, place, &id)?.0.expect(0)?;
    for (since, should) in [("1h", "here\n"), ("2001-01-01", "here\n"), ("2999-01-01", "")] {
        let said = tell(world, place, &["logs", "--since", since, &id])?;
        ensure!(said == should, "since {since}: {said:?}");
    }
    all_clean(world)
}

/// Nobody's terminal is played with, unless it is asked for.
fn escapes(world: &mut World, place: Place) -> Outcome {
    let script = r"printf '\033[31mred\033[0m\033]0;title\007 and \033[2Jplain\n'";
    let id = start(world, place, &[], &["sh", "-c", script])?;
    over(world, place, &id)?.0.expect(0)?;
    let said = tell(world, place, &["logs", &id])?;
    ensure!(said == "red and plain\n", "logs says {said:?}");
    let said = tell(world, place, &["logs", "--raw", &id])?;
    let raw = "\x1b[31mred\x1b[0m\x1b]0;title\x07 and \x1b[2Jplain\n";
    ensure!(said == raw, "logs --raw says {said:?}");
    all_clean(world)
}

fn refused(world: &mut World, place: Place) -> Outcome {
    let id = start(world, place, &[], &["true"])?;
    over(world, place, &id)?;
    for words in [
        &["logs", "no-such-run"][..],
        &["logs"],
        &["logs", "--stream", "sea", &id],
        &["logs", "--since", "soon", &id],
        &["logs", "-n", "many", &id],
    ] {
        let said = say(world, place, words)?;
        said.expect(125).context(words.join(" "))?;
        ensure!(said.err.lines().count() == 1, "it said {:?}", said.err);
    }
    all_clean(world)
}

/// All of a log costs its blocks and not its lines, and a tail no more than that.
fn costs(world: &mut World, place: Place) -> Outcome {
    const LINES: u64 = 10_000;
    /// To start, to find the run, to open its logs.
    const CONSTANT: u64 = 250;
    // A line of a hundred bytes a millisecond, so that each has a time of its own.
    let script = format!(
        "i=0; while [ $i -lt {LINES} ]; do i=$((i+1)); printf '%099d\\n' $i; \
         [ $((i % 10)) -gt 0 ] || sleep 0.001; done"
    );
    let id = start(world, place, &[], &["sh", "-c", &script])?;
    over(world, place, &id)?.0.expect(0)?;
    let all = format!("{:099}\n", 0).len() as u64 * LINES;
    let program = world.fullstop();
    let counts = world.out().join("counts");
    for (words, most) in [
        (&["logs"][..], CONSTANT + all / 65_536 * 12),
        (&["logs", "-n", "10"], CONSTANT),
        (&["logs", "--since", "2999-01-01"], CONSTANT),
    ] {
        let asked = ask_program(world, place, "strace", words, |command| {
            command.args(["-f", "-qq", "-c", "-o"]).arg(&counts);
            command.arg(&program).args(words).arg(&id);
        })?;
        asked.hear(world, LONG)?.expect(0)?;
        let calls = calls(&counts)?;
        world.note(format!("{}: {calls} calls", words.join(" ")));
        ensure!(calls <= most, "{}: {calls} calls, and not {most}", words.join(" "));
    }
    all_clean(world)
}
