//! Whatever a command writes to its terminal, its keeper stands, and hears a stop.

use arena::{Context, Ended, Need, Outcome, Registry, World, await_until, ensure, seconds};

use super::cast::{
    self, HERE, NEEDS, SOON_ENOUGH, all_clean, await_who, expect_reason, log_length,
};
use super::window::{USUAL, Window};
use crate::actors::script;
use crate::desk::say;
use crate::kit::Lines;

pub fn register(registry: &mut Registry) {
    let needs = [NEEDS, &[Need::Program("head")]].concat();
    for (name, text) in FLOODS {
        registry.scenario(format!("flood::{name}"), &needs, move |world| flooded(world, text));
    }
    registry.scenario("flood::questions", &needs, questions);
    registry.scenario("flood::nothing-is-lost-of-a-costly-screen", NEEDS, nothing_lost);
}

/// What is written again and again.
const FLOODS: &[(&str, &str)] = &[
    (
        "costly-sequences",
        "printf 'x\\e[65535b\\e[2J\\e[65535;65535H\\e[65535L\\e[65535@\\e[65535S'",
    ),
    ("chance", "head -c 65536 /dev/urandom"),
    ("other-screens", "printf '\\e[?1049h\\e[2J\\e[?1049l\\e[?47h\\ec\\e[500;1000Hx\\e[1;499r\\n'"),
    ("resets", "printf '\\ec%.0s' {1..2000}"),
];

/// The last step and five seconds: the command does not resist.
const BOUND: std::time::Duration = seconds(8);

fn flooded(world: &mut World, text: &str) -> Outcome {
    script(world, "flood", &format!("stty -echo\nwhile :; do\n{text}\ndone"))?;
    // Nobody looks; then somebody does.
    for looked_at in [false, true] {
        let id = cast::start(world, &["--size", "500x1000"], &["bash", "./flood"])?;
        let mut window =
            if looked_at { Some(Window::opened(world, USUAL, &["attach", &id])?) } else { None };
        let begun = || log_length(world, &id) > 0;
        match &mut window {
            Some(window) => window.tty.until_within(SOON_ENOUGH, "the flood has begun", begun)?,
            None => ensure!(await_until(SOON_ENOUGH, begun), "there is no flood"),
        }
        say(world, HERE, &["ps"])?.expect(0)?;
        let said = say(world, HERE, &["stop", &id])?;
        said.expect(0)?;
        ensure!(said.took.within(BOUND), "the stop took {:?}", said.took);
        let report = expect_reason(world, &id, "stopped")?;
        ensure!(report["drained"] == true, "the last of it is lost: {report}");
        if let Some(mut window) = window {
            window.ends(world, Ended::Code(143))?;
        }
        world.expect_extinct(SOON_ENOUGH)?;
    }
    all_clean(world)
}

/// A command that asks its terminal without end, and reads no answer: nobody keeps the
/// answers for it.
fn questions(world: &mut World) -> Outcome {
    const ASKED: u64 = 2_000_000;
    let asks = "stty raw -echo\nask=$(printf '\\e[c%.0s' {1..1000})\n\
        for n in {1..2000}; do printf '%s' \"$ask\"; done\nprintf asked\n: > asked\nread -r n < never";
    script(world, "asks", asks)?;
    let _never = Lines::create(world, "never")?;
    let id = cast::start(world, &[], &["bash", "./asks"])?;
    let asked = world.dir().join("asked");
    ensure!(await_until(seconds(40), || asked.exists()), "the keeper does not read");
    let all = || log_length(world, &id) == ASKED * 3 + 5;
    ensure!(await_until(SOON_ENOUGH, all), "only {} bytes came", log_length(world, &id));
    // The answers alone would be more than this.
    let used = memory(await_who(world, &id)?.keeper.pid)?;
    world.note(format!("the keeper holds {used} KiB"));
    ensure!(used < 8 << 10, "the keeper holds {used} KiB");
    // There may be no room for it, but there is an answer.
    let said = say(world, HERE, &["send", &id, "hello"])?;
    ensure!(matches!(said.ended, Ended::Code(0 | 124 | 125)), "send ended with {}", said.ended);
    cast::stop(world, &id)?;
    all_clean(world)
}

/// The memory of a process's own, in KiB.
fn memory(pid: i32) -> Outcome<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).context("status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.context(format!("no memory in {status}"))
}

/// However long the screen takes for what was written last, all of it is kept.
fn nothing_lost(world: &mut World) -> Outcome {
    let costly = "stty raw -echo\nagain=$(printf '\\e[65535b%.0s' {1..1500})\n\
        printf '宽%sEND' \"$again\"";
    script(world, "costly", costly)?;
    let id = cast::start(world, &[], &["bash", "./costly"])?;
    let said = crate::desk::ask(world, HERE, &["wait", &id])?.hear(world, seconds(40))?;
    said.expect(0)?;
    let report = expect_reason(world, &id, "exited")?;
    let log = cast::log_text(world, &id);
    ensure!(log.ends_with("bEND"), "the end is lost; there are {} bytes", log.len());
    ensure!(report["drained"] == true, "{report}");
    all_clean(world)
}
