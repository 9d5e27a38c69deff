//! What the command is given is what a plain exec would give it: signals,
//! limits, descriptors; and nobody but the command holds them.

use std::fs::{self, File};
use std::process::Stdio;

use arena::{
    Context, Drain, Ended, Need, Outcome, Process, Registry, Signal, World, ensure, millis,
    seconds, send_signal,
};

use super::kit::{
    ANYWHERE, AS_ROOT, EVERYWHERE, Launch, Lines, Place, SOON, add, all_clean, keeper,
};

pub fn register(registry: &mut Registry) {
    add(registry, "inherit::as-a-plain-exec", &EVERYWHERE, &[Need::Program("nice")], plain_exec);
    add(registry, "inherit::signals-and-masks", &AS_ROOT, &[], signals);
    add(registry, "inherit::closed-standard-descriptors", &AS_ROOT, &[], closed_standard);
    add(registry, "inherit::descriptors", &EVERYWHERE, &[], descriptors);
    add(registry, "inherit::few-descriptors-allowed", &EVERYWHERE, &[], few_descriptors);
    add(registry, "inherit::sigpipe-kills", &ANYWHERE, &[], sigpipe);
    add(registry, "inherit::no-file-may-grow", &ANYWHERE, &[], no_file_may_grow);
    let perl = [Need::Program("perl")];
    add(registry, "inherit::an-alarm-is-set", &EVERYWHERE, &perl, alarm);
    add(registry, "inherit::sigchld-ignored-by-the-caller", &EVERYWHERE, &[], sigchld_ignored);
    add(registry, "eof::stdout", &EVERYWHERE, &[], |world, place| eof(world, place, "", "1"));
    add(registry, "eof::another-descriptor", &EVERYWHERE, &[], |world, place| {
        eof(world, place, "exec 7>&1 >/dev/null;", "7")
    });
    add(registry, "eof::with-a-guard-of-its-own", &EVERYWHERE, &[], |world, place| {
        eof(world, place, "sleep 50 >/dev/null 2>&1 & exec 7>&1;", "1 7")
    });
    add(registry, "eof::stdin-of-the-writer", &EVERYWHERE, &[], writer_notices);
    add(registry, "eof::stderr-when-run-is-over", &EVERYWHERE, &[], stderr_ends);
}

/// That our own record cannot be written is not the command's fault.
fn no_file_may_grow(world: &mut World, place: Place) -> Outcome {
    let before = ["sh", "-c", "ulimit -f 0; exec \"$@\"", "small"];
    let launch = Launch::new(place).before(&before).without_report();
    let (ended, run) = launch.finish(world, &["sh", "-c", "sleep 0.2; exit 9"])?;
    ensure!(ended == Ended::Code(9), "run ended with {ended}: {}", run.stderr());
    all_clean(world)
}

/// The poor man's timeout: the command dies of it, and so do we.
fn alarm(world: &mut World, place: Place) -> Outcome {
    let before = ["perl", "-e", "alarm 1; exec @ARGV"];
    let (ended, run) = Launch::new(place).before(&before).finish(world, &["sleep", "50"])?;
    ensure!(ended == Ended::Signal(14), "run ended with {ended}");
    run.expect_ended(place, "exited")?;
    all_clean(world)
}

/// Everything the kernel tells of a process that an exec keeps.
const ACCOUNT: &str = "/proc/self/limits /proc/self/oom_score_adj /proc/self/coredump_filter \
                       /proc/self/personality /proc/self/timerslack_ns /proc/self/loginuid \
                       /proc/self/setgroups /proc/self/uid_map";

/// Lines of `status` that differ from process to process.
const PERSONAL: &[&str] = &[
    "Name:",
    "Pid:",
    "Tgid:",
    "Ngid:",
    "PPid:",
    "NStgid:",
    "NSpid:",
    "NSpgid:",
    "NSsid:",
    "Vm",
    "Rss",
    "SigQ:",
    "voluntary",
    "nonvoluntary",
];

/// Runs `before… cat …` plainly and under fullstop, and compares.
fn compare(world: &mut World, place: Place, before: &[&str]) -> Outcome {
    let script = format!("cat /proc/self/status; cat {ACCOUNT} 2>/dev/null; nice; ulimit -a");
    // The shell may not stand between: it changes signals. `cat` is the command.
    for command in [&["cat", "/proc/self/status"][..], &["sh", "-c", &script]] {
        let plain = account(world, place, before, command, false)?;
        let caged = account(world, place, before, command, true)?;
        for (plain, caged) in plain.lines().zip(caged.lines()) {
            let personal = PERSONAL.iter().any(|word| plain.starts_with(word));
            let sampled = plain.starts_with("Cpus_allowed") || plain.starts_with("Speculation");
            ensure!(
                personal || sampled || plain == caged,
                "after {before:?}: plainly {plain:?}, caged {caged:?}"
            );
        }
        let lengths = (plain.lines().count(), caged.lines().count());
        ensure!(lengths.0 == lengths.1 && lengths.0 > 20, "{lengths:?} lines");
    }
    Ok(())
}

fn account(
    world: &mut World,
    place: Place,
    before: &[&str],
    command: &[&str],
    caged: bool,
) -> Outcome<String> {
    let path = world.out().join("account");
    let out = File::create(&path).context("account")?;
    let ended = if caged {
        Launch::new(place).before(before).stdout(out).finish(world, command)?.0
    } else {
        let words = [before, command].concat();
        let mut plain = world.command(words[0]);
        plain.args(&words[1..]).stdout(out);
        place.user.apply(&mut plain);
        let spawned = world.spawn("plain", &mut plain)?;
        world.wait(&spawned, SOON)?
    };
    ensure!(ended == Ended::Code(0), "{command:?} (caged: {caged}) ended with {ended}");
    fs::read_to_string(&path).context("account")
}

fn plain_exec(world: &mut World, place: Place) -> Outcome {
    let shell = |script: &'static str| ["sh", "-c", script, "sh"];
    compare(world, place, &shell("umask 027; exec \"$@\""))?;
    compare(world, place, &shell("ulimit -c 0; ulimit -Sn 33; ulimit -Ht 77; exec \"$@\""))?;
    compare(world, place, &shell("ulimit -n 44; ulimit -Ss 1000; exec \"$@\""))?;
    compare(world, place, &["nice", "-n", "7"])?;
    all_clean(world)
}

fn signals(world: &mut World, place: Place) -> Outcome {
    let ignored = ["PIPE", "CHLD", "INT", "HUP,QUIT", "TERM", "USR1,TSTP,TTOU", "RTMIN+3"];
    for names in ignored {
        compare(world, place, &["env", &format!("--ignore-signal={names}")])?;
    }
    for names in ["TERM", "PIPE,USR2", "CHLD", "CONT,TSTP", "RTMAX"] {
        compare(world, place, &["env", &format!("--block-signal={names}")])?;
    }
    compare(world, place, &["env", "--ignore-signal", "--block-signal"])?;
    compare(world, place, &["env", "--default-signal"])?;
    all_clean(world)
}

/// The links of the command's own descriptors.
fn links(world: &mut World, place: Place, before: &str, caged: bool) -> Outcome<Vec<String>> {
    // `ls` sees the directory it lists as one descriptor more, in either case.
    let redirect = format!("{before}; exec \"$@\"");
    let list = "ls -l /proc/$$/fd > list 2>/dev/null; chmod 666 list";
    let command = ["sh", "-c", list];
    let ended = if caged {
        Launch::new(place).before(&["sh", "-c", &redirect, "sh"]).finish(world, &command)?.0
    } else {
        let mut plain = world.command("sh");
        plain.args(["-c", &redirect, "sh"]).args(command);
        // The same stderr as a run has.
        plain.stderr(File::create(world.out().join("stderr")).context("stderr")?);
        place.user.apply(&mut plain);
        let spawned = world.spawn("plain", &mut plain)?;
        world.wait(&spawned, SOON)?
    };
    ensure!(ended == Ended::Code(0), "listing after {before:?} ended with {ended}");
    let list = fs::read_to_string(world.dir().join("list")).context("list")?;
    let link = |line: &str| {
        let (before, target) = line.split_once(" -> ")?;
        let number = before.rsplit(' ').next()?;
        let mode = before.split(' ').next()?;
        Some(format!("{mode} {number} {target}"))
    };
    Ok(list.lines().filter_map(link).collect())
}

fn same_links(world: &mut World, place: Place, before: &str) -> Outcome {
    let plain = links(world, place, before, false)?;
    let caged = links(world, place, before, true)?;
    ensure!(plain == caged, "after {before:?}: plainly {plain:#?}, caged {caged:#?}");
    Ok(())
}

fn closed_standard(world: &mut World, place: Place) -> Outcome {
    for set in 1..8 {
        let close = |fd: u8| {
            if set & (1 << fd) == 0 { "" } else { ["<&-", ">&-", "2>&-"][usize::from(fd)] }
        };
        same_links(world, place, &format!("exec {} {} {}", close(0), close(1), close(2)))?;
    }
    all_clean(world)
}

fn descriptors(world: &mut World, place: Place) -> Outcome {
    for before in [
        "exec 3</dev/null 5>/dev/zero 9<>/dev/full",
        "exec 4</dev/null 5</ 6>>/dev/null; exec 8<&4 4<&-",
        "exec <&- 7>/dev/null",
        "exec >&- 3>/dev/null 4>/dev/zero",
    ] {
        same_links(world, place, before)?;
    }
    all_clean(world)
}

/// Where the command has hardly a descriptor left, the census still works.
fn few_descriptors(world: &mut World, place: Place) -> Outcome {
    // Whoever started these tests may have left some open.
    let closed = "exec 3<&- 4<&- 5<&- 6<&- 7<&- 8<&- 9<&-";
    for allowed in [3, 6, 8, 10, 12, 16, 24] {
        let limit = format!("{closed}; ulimit -n {allowed}; exec \"$@\"");
        let deep = "sh -c 'sh -c \"trap \\\"\\\" TERM; sleep 50 & sleep 50; true\"; true' & sleep 50; true";
        let launch = Launch::new(place).before(&["sh", "-c", &limit, "sh"]);
        let launch = launch.options(&["--ladder", "term@leader:50ms,kill", "--timeout", "300ms"]);
        let (ended, run) = launch.finish(world, &["sh", "-c", deep])?;
        let said = run.stderr();
        world.expect_extinct(millis(0)).context(format!("{allowed} allowed, {ended}, {said}"))?;
        match ended {
            Ended::Code(124) => drop(run.expect_ended(place, "overall-timeout")?),
            // Too few to begin with, which must be said.
            Ended::Code(125 | 126) if allowed < 16 => {
                ensure!(said.contains("fullstop: "), "{allowed} allowed, and nothing was said");
            }
            _ => {
                let how = format!("{allowed} allowed, and run ended with {ended}: {said}");
                return Err(how.into());
            }
        }
    }
    all_clean(world)
}

fn sigpipe(world: &mut World, place: Place) -> Outcome {
    let mut run = Launch::new(place).stdout(Stdio::piped()).start(world, &["yes"])?;
    drop(run.child.stdout.take());
    let ended = world.wait(&run.spawned, SOON)?;
    ensure!(ended == Ended::Signal(13), "a command whose reader has gone ended with {ended}");
    all_clean(world)
}

fn sigchld_ignored(world: &mut World, place: Place) -> Outcome {
    let ignore = ["env", "--ignore-signal=CHLD"];
    let (ended, run) =
        Launch::new(place).before(&ignore).finish(world, &["cat", "/nonexistent"])?;
    ensure!(ended == Ended::Code(1), "run ended with {ended}");
    run.expect_ended(place, "exited")?;
    let mut ready = Lines::create(world, "ready")?;
    let launch = Launch::new(place).before(&ignore).options(&["--grace", "200ms"]);
    let run = launch
        .start(world, &["sh", "-c", "trap '' TERM; sleep 50 & echo up > ready; sleep 50; true"])?;
    ready.expect("up")?;
    send_signal(run.pid(), Signal::TERM)?;
    let ended = world.wait(&run.spawned, SOON)?;
    ensure!(ended == Ended::Code(137), "a killed run ended with {ended}");
    run.expect_ended(place, "stopped")?;
    all_clean(world)
}

/// A reader sees the end as soon as the command has closed its side, though
/// everybody lives on.
fn eof(world: &mut World, place: Place, before: &str, closes: &str) -> Outcome {
    let mut ready = Lines::create(world, "ready")?;
    let before = format!("{before} exec \"$@\"");
    let close: Vec<String> = closes.split(' ').map(|fd| format!("exec {fd}>&-;")).collect();
    let close = close.join(" ");
    // Without the leader's children, or they would hold it.
    let command = format!("{close} echo closed > ready; exec sleep 50");
    let mut run = Launch::new(place)
        .before(&["sh", "-c", &before, "sh"])
        .stdout(Stdio::piped())
        .start(world, &["sh", "-c", &command])?;
    let output = Drain::start(run.child.stdout.take().context("stdout")?);
    ready.expect("closed")?;
    output.expect_end(seconds(1))?;
    keeper(world)?;
    ensure!(world.ended(&run.spawned).is_none(), "run ended with its output");
    for process in Process::all().into_iter().filter(|p| p.comm == "sleep" && p.ppid == run.pid()) {
        world.adopt_bystander("foreign", process.pid)?;
    }
    send_signal(run.pid(), Signal::TERM)?;
    let ended = world.wait(&run.spawned, SOON)?;
    ensure!(ended == Ended::Signal(15), "run ended with {ended}");
    all_clean(world)
}

/// Whoever writes to a command that has closed its stdin hears of it.
fn writer_notices(world: &mut World, place: Place) -> Outcome {
    use std::io::{ErrorKind, Write};
    let mut ready = Lines::create(world, "ready")?;
    let command = "exec <&-; echo closed > ready; exec sleep 50";
    let mut run = Launch::new(place).stdin(Stdio::piped()).start(world, &["sh", "-c", command])?;
    let mut stdin = run.child.stdin.take().context("stdin")?;
    ready.expect("closed")?;
    keeper(world)?;
    let gone = arena::await_until(seconds(1), || {
        stdin.write_all(b"x").is_err_and(|error| error.kind() == ErrorKind::BrokenPipe)
    });
    ensure!(gone, "somebody of ours holds the command's stdin");
    send_signal(run.pid(), Signal::TERM)?;
    world.wait(&run.spawned, SOON)?;
    all_clean(world)
}

/// `run` speaks on stderr, so it keeps it; but not beyond its end, and not its
/// keeper.
fn stderr_ends(world: &mut World, place: Place) -> Outcome {
    let mut ready = Lines::create(world, "ready")?;
    let command = "exec 2>&-; echo closed > ready; exec sleep 50";
    let mut run = Launch::new(place)
        .options(&["-v"])
        .stderr(Stdio::piped())
        .start(world, &["sh", "-c", command])?;
    let output = Drain::start(run.child.stderr.take().context("stderr")?);
    ready.expect("closed")?;
    send_signal(run.pid(), Signal::TERM)?;
    world.wait(&run.spawned, SOON)?;
    let said = output.expect_end(millis(500))?;
    ensure!(said.beginning.contains("term@leader"), "-v says nothing of the step: {said:?}");
    all_clean(world)
}
