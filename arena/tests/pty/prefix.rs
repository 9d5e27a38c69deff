//! `run --pty` looks and behaves like the command itself.

use std::fs;

use arena::{Context, Ended, Need, Outcome, Registry, World, ensure, millis};

use super::cast::{
    FULL_SCREEN_COMMAND, HERE, NEEDS, PARROT_COMMAND, all_clean, await_asleep, await_who, only_run,
    rehearse, run_words,
};
use super::window::{USUAL, Window};
use crate::actors::{await_actor, script};
use crate::desk::ask_program;
use crate::shell::{CTRL_C, CTRL_D, CTRL_Z, Shell};

pub fn register(registry: &mut Registry) {
    registry.scenario("run::like-the-command", NEEDS, like_the_command);
    registry.scenario("run::an-inner-shell-with-jobs", NEEDS, inner_shell);
    registry.scenario("run::the-size-is-followed", NEEDS, size);
    registry.scenario("run::how-it-ends", NEEDS, statuses);
    registry.scenario("run::a-full-screen-that-leaves-in-order", NEEDS, leaves_in_order);
    let programs = [NEEDS, &[Need::Program("tr"), Need::Program("head")]].concat();
    registry.scenario("run::without-a-terminal", &programs, without_terminal);
}

fn like_the_command(world: &mut World) -> Outcome {
    let mut shell = Shell::start(world)?;
    let said = shell.line("fullstop run --pty -- echo plain")?;
    ensure!(said == "plain\r\n", "more was written than the command wrote: {said:?}");
    let said = shell.line("fullstop run --pty -- sh -c 'exit 5'")?;
    ensure!(said.is_empty(), "more was written than the command wrote: {said:?}");
    shell.expect_status(5)?;
    // What is typed is echoed by the terminal of the run, and by no other.
    shell.begin("fullstop run --pty -- sh -c 'echo go; exec cat'")?;
    shell.tty.expect("go\r\n")?;
    shell.tty.type_keys("wrong\x7f\x7f\x7f\x7f\x7fright\r")?;
    let said = shell.tty.expect("right\r\nright\r\n")?;
    ensure!(said == "wrong\u{8} \u{8}\u{8} \u{8}\u{8} \u{8}\u{8} \u{8}\u{8} \u{8}", "{said:?}");
    shell.tty.type_keys(CTRL_D)?;
    let said = shell.prompt()?;
    ensure!(said.is_empty(), "more was written than the command wrote: {said:?}");
    shell.expect_status(0)?;
    shell.leave(world)
}

fn inner_shell(world: &mut World) -> Outcome {
    const INNER: &str = "<inner> ";
    let mut shell = Shell::start(world)?;
    shell.line("stty -g > before")?;
    shell.begin(&format!("PS1='{INNER}' fullstop run --pty -- bash --noprofile --norc -i"))?;
    shell.tty.expect(INNER)?;
    let mut line = |line: &str| {
        shell.begin(line)?;
        shell.tty.expect(INNER)
    };
    let said = line("tty; stty size")?;
    ensure!(said.contains("24 200"), "another size: {said:?}");
    // The line is edited: home, a letter, and Ctrl-E back to its end.
    shell.tty.type_keys("cho \"ed\"\"ited\"\x01e\x05; echo \"twice\"\"!\"\r")?;
    shell.tty.expect("edited\r\ntwice!\r\n")?;
    shell.tty.expect(INNER)?;
    shell.begin("sleep 61")?;
    for _ in 0..3 {
        asleep_in_front(&mut shell, "sleep 61")?;
        shell.tty.type_keys(CTRL_Z)?;
        shell.tty.expect("Stopped")?;
        shell.tty.expect(INNER)?;
        shell.begin("jobs")?;
        let said = shell.tty.expect(INNER)?;
        ensure!(said.contains("Stopped"), "the inner job is not stopped: {said:?}");
        shell.begin("fg")?;
        shell.tty.expect("sleep 61\r\n")?;
    }
    asleep_in_front(&mut shell, "sleep 61")?;
    shell.tty.type_keys(CTRL_C)?;
    shell.tty.expect(INNER)?;
    shell.begin("echo \"status=$?\"")?;
    let said = shell.tty.expect(INNER)?;
    ensure!(said.contains("status=130"), "the inner job: {said:?}");
    shell.begin("exit 3")?;
    shell.prompt()?;
    shell.expect_status(3)?;
    shell.line("stty -g > after")?;
    let read = |name: &str| fs::read_to_string(world.dir().join(name)).context(name);
    ensure!(read("before")? == read("after")?, "the settings have changed");
    shell.leave(world)
}

/// Waits until this command sleeps in the foreground of whatever terminal it has.
fn asleep_in_front(shell: &mut Shell, command: &str) -> Outcome {
    let pid = await_actor(&mut shell.tty, command)?.pid;
    shell.tty.until(&format!("{command:?} sleeps in front"), || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let rest = stat.rsplit_once(") ").map(|(_, rest)| rest.to_owned()).unwrap_or_default();
        let fields: Vec<&str> = rest.split(' ').collect();
        fields.first() == Some(&"S") && fields.get(2).is_some() && fields.get(2) == fields.get(5)
    })
}

fn size(world: &mut World) -> Outcome {
    rehearse(world)?;
    let mut window = Window::open(world, (31, 101), &run_words(&[], PARROT_COMMAND))?;
    window.shows("ready 31 101")?;
    let id = only_run(world)?;
    let leader = await_who(world, &id)?.leader;
    for n in 1..=5 {
        await_asleep(&leader)?;
        window.resize((31 + n, 101 - n))?;
        window.shows(&format!("size {} {}", 31 + n, 101 - n))?;
    }
    window.types("exit 0\r")?;
    window.ends(world, Ended::Code(0))?;
    window.expect_given_back()?;
    // One that keeps its size.
    let words = run_words(&["--size", "20x70"], PARROT_COMMAND);
    let mut window = Window::open(world, USUAL, &words)?;
    window.shows("ready 20 70")?;
    window.resize((30, 100))?;
    window.types("still there\r")?;
    window.shows("heard still there")?;
    window.types("exit 0\r")?;
    window.ends(world, Ended::Code(0))?;
    let said = window.tty.seen();
    ensure!(!said.contains("size "), "it was told another size: {said:?}");
    all_clean(world)
}

fn statuses(world: &mut World) -> Outcome {
    for (options, command, wanted) in [
        (&[][..], "exit 0", Ended::Code(0)),
        (&[], "exit 77", Ended::Code(77)),
        (&[], "kill -TERM $$", Ended::Signal(15)),
        (&[], "kill -INT $$", Ended::Signal(2)),
        (&[], "kill -KILL $$", Ended::Code(137)),
        (&["--timeout", "200ms", "--grace", "100ms"], "exec sleep 100", Ended::Code(124)),
    ] {
        let mut window = Window::open(world, USUAL, &run_words(options, &["sh", "-c", command]))?;
        window.ends(world, wanted).context(command)?;
        window.expect_given_back().context(command)?;
    }
    for (command, wanted) in [("./nothing", 127), ("/dev/null", 126)] {
        let mut window = Window::open(world, USUAL, &run_words(&[], &[command]))?;
        window.ends(world, Ended::Code(wanted)).context(command)?;
        window.shows(command)?;
        window.expect_given_back().context(command)?;
    }
    all_clean(world)
}

/// A command that leaves by itself has the last word about the terminal.
fn leaves_in_order(world: &mut World) -> Outcome {
    rehearse(world)?;
    let mut window = Window::open(world, USUAL, &run_words(&[], FULL_SCREEN_COMMAND))?;
    window.shows("full screen")?;
    ensure!(window.look().alternate_screen(), "it is not on the other screen");
    window.types("q")?;
    window.ends(world, Ended::Code(6))?;
    window.expect_given_back()?;
    let said = window.tty.seen();
    ensure!(said.ends_with("\x1b[?25h\x1b[?1049l"), "more was written at the end: {said:?}");
    all_clean(world)
}

/// In a pipeline there is a terminal for the command and none for us.
fn without_terminal(world: &mut World) -> Outcome {
    let bin = world.fullstop();
    let bin = bin.to_string_lossy();
    let line = |world: &mut World, line: &str| -> Outcome<String> {
        let asked = ask_program(world, HERE, "bash", &[line], |command| {
            command.args(["-c", line]);
        })?;
        let said = asked.hear(world, arena::seconds(30))?;
        said.expect(0)?;
        Ok(said.out)
    };
    let said = line(world, &format!("echo hello | {bin} run --pty -- cat | cat"))?;
    ensure!(said == "hello\r\nhello\r\n", "{said:?}");
    let said = line(world, &format!("{bin} run --pty -- tty < /dev/null | cat"))?;
    ensure!(said.starts_with("/dev/pts/"), "{said:?}");
    script(world, "flood", "stty -onlcr\nhead -c 3000000 /dev/zero | tr '\\0' x\necho; echo end")?;
    let flood = format!("{bin} run --pty -- bash ./flood < /dev/null");
    let said = line(world, &format!("{flood} | wc -c"))?;
    ensure!(said.trim() == "3000005", "{said:?} bytes came through");
    // A reader that is slow gets everything, too: it reads when it is let.
    let slow = format!("{flood} | {{ until [ -e go ]; do sleep 0.05; done; wc -c; }}");
    let asked = ask_program(world, HERE, "bash", &[&slow], |command| {
        command.args(["-c", &slow]);
    })?;
    let id = only_run(world)?;
    await_who(world, &id)?;
    let held = arena::await_until(millis(300), || asked_ended(world, &asked));
    ensure!(!held, "it ended though nobody read");
    fs::write(world.dir().join("go"), "").context("go")?;
    let said = asked.hear(world, arena::seconds(30))?;
    ensure!(said.out.trim() == "3000005", "{:?} bytes came through", said.out);
    all_clean(world)
}

fn asked_ended(world: &World, asked: &crate::desk::RunningCommand) -> bool {
    world.ended(&asked.spawned).is_some()
}
