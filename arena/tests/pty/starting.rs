//! `start --pty`: a terminal of its own that nobody looks at, and what is typed into
//! it by `send`.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use arena::{Context, Ended, Outcome, Registry, World, ensure};

use super::cast::{
    self, HERE, NEEDS, SOON_ENOUGH, all_clean, await_asleep, await_log, await_log_times, await_who,
    expect_reason, log, log_text, say_to_parrot, start_parrot,
};
use super::limits::{own_terminals, terminals};
use crate::actors::script;
use crate::desk::{self, dir, say, tell};
use crate::kit::{EVERYWHERE, Place, add};

pub fn register(registry: &mut Registry) {
    add(registry, "start::a-terminal-of-its-own", &EVERYWHERE, NEEDS, own_terminal);
    registry.scenario("start::what-is-sent-arrives", NEEDS, sent);
    registry.scenario("start::keys-as-a-terminal-sends-them", NEEDS, keys);
    registry.scenario("start::end-of-input", NEEDS, end_of_input);
    registry.scenario("start::questions-are-answered", NEEDS, questions);
    registry.scenario("start::last-words", NEEDS, last_words);
}

const LOOKS: &str = "[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && : < /dev/tty && echo \"all of it\"\n\
    echo \"tty=$(tty) size=$(stty size) term=$TERM\"\necho ready\nread -r gone";

fn own_terminal(world: &mut World, place: Place) -> Outcome {
    own_terminals(10)?;
    script(world, "looks", LOOKS)?;
    for (options, size, term) in [
        (&[][..], "24 80", "xterm-256color"),
        (&["--size", "41x123", "--env", "TERM=vt220"], "41 123", "vt220"),
    ] {
        let mut all = vec!["--pty"];
        all.extend(options);
        let id = desk::start(world, place, &all, &["bash", "./looks"])?;
        await_log(world, &id, "ready\r\n")?;
        let text = log_text(world, &id);
        ensure!(text.contains("all of it\r\n"), "not all of it is the terminal: {text:?}");
        ensure!(text.contains(&format!("size={size} term={term}\r\n")), "it says {text:?}");
        let tty = text.split_once("tty=").and_then(|(_, rest)| rest.split_once(' '));
        let tty = tty.context("it does not know its terminal")?.0;
        let leader = await_who(world, &id)?.leader;
        ensure!(leader.sid == leader.pid && leader.pgid == leader.pid, "no session: {leader}");
        let (tty_nr, tpgid) = terminal_of(leader.pid)?;
        let device = fs::metadata(tty).context(tty)?;
        ensure!(tty_nr == device.rdev(), "its terminal is not {tty}: {tty_nr:x}");
        ensure!(tpgid == leader.pid, "it is not in the foreground: {tpgid}");
        ensure!(device.uid() == place.user.uid(), "the terminal is another's: {}", device.uid());
        for stream in ["out.log", "err.log"] {
            ensure!(!dir(world, &id).join(stream).exists(), "there is a {stream}");
        }
        tell(world, place, &["stop", &id])?;
        expect_reason(world, &id, "stopped")?;
        world.expect_extinct(SOON_ENOUGH)?;
        ensure!(terminals() == 0, "{tty} is still there");
    }
    all_clean(world)
}

/// The device of the controlling terminal, as `stat` gives it, and the process group
/// in its foreground.
fn terminal_of(pid: i32) -> Outcome<(u64, i32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).context("stat")?;
    let rest = stat.rsplit_once(") ").context("stat")?.1;
    let fields: Vec<&str> = rest.split(' ').collect();
    let tty: u64 = fields[4].parse().context("tty_nr")?;
    // In this file the minor number is around the major one.
    let (major, minor) = ((tty >> 8) & 0xfff, (tty & 0xff) | ((tty >> 12) & 0xfff00));
    let (major, minor) = (u32::try_from(major), u32::try_from(minor));
    let device = rustix::fs::makedev(major.context("tty_nr")?, minor.context("tty_nr")?);
    Ok((device, fields[5].parse().context("tpgid")?))
}

fn sent(world: &mut World) -> Outcome {
    let id = start_parrot(world, &[])?;
    let leader = await_who(world, &id)?.leader;
    say_to_parrot(world, &id, "one")?;
    say_to_parrot(world, &id, "ä ö ü €")?;
    // Many at once: all arrive, whole and in order.
    let lines: Vec<String> = (0..200).map(|n| format!("line {n}")).collect();
    let text = lines.join("\n") + "\n";
    fs::write(world.dir().join("text"), text).context("text")?;
    let from = fs::File::open(world.dir().join("text")).context("text")?;
    let asked = desk::ask_with(world, HERE, &["send", &id, "-"], |command| {
        command.stdin(from);
    })?;
    asked.hear(world, arena::seconds(30))?.expect(0)?;
    await_log(world, &id, "heard line 199\r\n")?;
    let heard = log_text(world, &id);
    let heard: Vec<&str> =
        heard.lines().filter_map(|line| line.strip_prefix("heard ")).skip(2).collect();
    ensure!(heard == lines, "not all lines, or not in order: {heard:?}");
    await_asleep(&leader)?;
    tell(world, HERE, &["send", &id, "--key", "C-c"])?;
    await_log(world, &id, "got INT\r\n")?;
    await_asleep(&leader)?;
    tell(world, HERE, &["send", &id, "--key", "C-\\"])?;
    await_log(world, &id, "got QUIT\r\n")?;
    await_asleep(&leader)?;
    tell(world, HERE, &["send", &id, "--key", "C-c"])?;
    await_log_times(world, &id, "got INT\r\n", 2)?;
    tell(world, HERE, &["send", &id, "exit 7", "--enter"])?;
    let report = expect_reason(world, &id, "exited")?;
    ensure!(report["exit"]["code"] == 7, "it ended with {}", report["exit"]);
    let said = say(world, HERE, &["send", &id, "more"])?;
    said.expect_one_line(125, "ended")?;
    // A program that has no say in it is interrupted.
    let id = cast::start(world, &[], &["sh", "-c", "echo ready; exec sleep 100"])?;
    await_log(world, &id, "ready\r\n")?;
    tell(world, HERE, &["send", &id, "--key", "C-c"])?;
    let report = expect_reason(world, &id, "exited")?;
    ensure!(report["exit"]["signal"] == "int", "it ended with {}", report["exit"]);
    all_clean(world)
}

fn keys(world: &mut World) -> Outcome {
    // As many bytes as are sent, taken as they come.
    script(world, "raw", "stty raw -echo\necho ready\nhead -c 13 > keys\nstty sane\necho done")?;
    let id = cast::start(world, &[], &["bash", "./raw"])?;
    await_log(world, &id, "ready")?;
    let keys = ["Up", "C-c", "Enter", "F1", "M-x", "Tab", "Escape", "C-z"];
    let mut words = vec!["send", id.as_str()];
    words.extend(keys.iter().flat_map(|key| ["--key", *key]));
    tell(world, HERE, &words)?;
    await_log(world, &id, "done")?;
    expect_reason(world, &id, "exited")?;
    let typed = fs::read(world.dir().join("keys")).context("keys")?;
    let wanted = b"\x1b[A\x03\r\x1bOP\x1bx\t\x1b\x1a";
    ensure!(typed == wanted, "the keys were {typed:?}, not {wanted:?}");
    all_clean(world)
}

fn end_of_input(world: &mut World) -> Outcome {
    script(world, "reads", "stty -echo\necho ready\ncat\necho \"cat is $?\"\nexit 4")?;
    let id = cast::start(world, &[], &["bash", "./reads"])?;
    await_log(world, &id, "ready\r\n")?;
    tell(world, HERE, &["send", &id, "a line", "--enter"])?;
    await_log(world, &id, "a line\r\n")?;
    tell(world, HERE, &["close-stdin", &id])?;
    await_log(world, &id, "cat is 0\r\n")?;
    let report = expect_reason(world, &id, "exited")?;
    ensure!(report["exit"]["code"] == 4, "it ended with {}", report["exit"]);
    all_clean(world)
}

/// A program that asks the terminal something waits for the answer, though nobody is
/// there who could give it.
fn questions(world: &mut World) -> Outcome {
    let asks = "stty raw -echo min 1\nprintf '\\e[3;5H\\e[6n'\nIFS= read -r -d R where\n\
        printf '\\e[5n'\nIFS= read -r -d n how\nprintf '\\e[c'\nIFS= read -r -d c what\n\
        stty sane\nprintf 'where %q how %q what %q\\n' \"$where\" \"$how\" \"$what\"";
    script(world, "asks", asks)?;
    let id = cast::start(world, &[], &["bash", "./asks"])?;
    expect_reason(world, &id, "exited")?;
    let text = log_text(world, &id);
    let wanted = "where $'\\E[3;5' how $'\\E[0' what $'\\E[?1;2'";
    ensure!(text.contains(wanted), "the answers are {text:?}");
    all_clean(world)
}

/// What is written just before the end is kept, byte by byte.
fn last_words(world: &mut World) -> Outcome {
    let mut wanted = Vec::new();
    for n in 0..20_000 {
        wanted.extend(format!("{n} of many\r\n").into_bytes());
    }
    for round in 0..3 {
        let many = "i=0; while [ $i -lt 20000 ]; do echo \"$i of many\"; i=$((i + 1)); done";
        let id = cast::start(world, &[], &["sh", "-c", many])?;
        expect_reason(world, &id, "exited")?;
        let log = log(world, &id);
        ensure!(log == wanted, "round {round}: {} bytes of {}", log.len(), wanted.len());
        let said = say(world, HERE, &["wait", &id])?;
        ensure!(said.ended == Ended::Code(0), "waiting ended with {}", said.ended);
    }
    all_clean(world)
}
