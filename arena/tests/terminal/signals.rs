//! Signals sent to `run` by hand, on a terminal: which begin a stop, which
//! join one, which hurry it, and which are nothing to it.

use arena::report::Report;
use arena::{Outcome, Process, Registry, Signal, World, ensure, send_signal};

use super::actors::{Run, await_actor, await_asleep, await_foreground, await_run, find, script};
use super::prefix::run;
use super::shell::{CTRL_C, Shell};

pub fn register(registry: &mut Registry) {
    run(registry, "signals::term-twice-joins", term_twice);
    run(registry, "signals::term-later-kills", term_later);
    run(registry, "signals::int-by-hand-begins-with-int", int_by_hand);
    run(registry, "signals::int-by-key-begins-nothing", int_by_key);
    run(registry, "signals::key-during-a-stop-joins", key_joins);
    run(registry, "signals::key-later-kills", key_later);
    run(registry, "signals::hup-and-quit-by-hand", hup_and_quit);
    run(registry, "signals::hup-typed-at-the-prompt", hup_typed);
    run(registry, "signals::what-was-ignored-stays-ignored", stays_ignored);
    run(registry, "signals::window-change-by-hand-is-passed-on", passed_on);
    run(registry, "signals::host-exit-is-ignored-on-a-terminal", host_exit_ignored);
    run(registry, "signals::host-exit-stops-if-asked-to", host_exit_stops);
}

/// Says what it hears, once each, and after 1.2 s that it is still there.
const SLOW: &str = "mkfifo pause\n\
    hear() { trap '' TERM INT HUP QUIT; echo \"heard $1\"; \
    read -r -t \"$SOON\" <> pause; echo soon; read -r -t \"$LATER\" <> pause; echo saved; exit 9; }\n\
    for s in TERM INT HUP QUIT; do trap \"hear $s\" $s; done\n\
    echo up\n\
    while :; do read -r <> pause; done";

fn begin(shell: &mut Shell, world: &World, soon: &str, later: &str) -> Outcome<Run> {
    script(world, "slow", SLOW)?;
    let line = format!(
        "rm -f pause; SOON={soon} LATER={later} fullstop run -q --report report.json -- bash ./slow"
    );
    shell.begin(&line)?;
    shell.tty.expect("up")?;
    await_foreground(&mut shell.tty, "bash ./slow")?;
    await_run(&mut shell.tty, "bash ./slow")
}

fn report(world: &World) -> Outcome<Report> {
    Report::read(&world.dir().join("report.json"))
}

fn term_twice(world: &mut World) -> Outcome {
    let mut shell = Shell::start(world)?;
    let run = begin(&mut shell, world, "0.01", "0.5")?;
    send_signal(run.guard.pid, Signal::TERM)?;
    shell.tty.expect("heard TERM")?;
    send_signal(run.guard.pid, Signal::TERM)?;
    shell.tty.expect("saved")?;
    shell.prompt()?;
    shell.expect_status(9)?;
    let report = report(world)?;
    ensure!(report.steps.len() == 1, "the second asked for more: {:?}", report.steps);
    ensure!(report.reason == "stopped", "its reason was {}", report.reason);
    shell.leave(world)
}

fn term_later(world: &mut World) -> Outcome {
    let mut shell = Shell::start(world)?;
    let run = begin(&mut shell, world, "1.2", "1.5")?;
    send_signal(run.guard.pid, Signal::TERM)?;
    shell.tty.expect("soon")?;
    send_signal(run.guard.pid, Signal::TERM)?;
    let said = shell.prompt()?;
    ensure!(!said.contains("saved"), "it was not killed: {said:?}");
    shell.expect_status(137)?;
    let report = report(world)?;
    let steps: Vec<&str> = report.steps.iter().map(|step| step.step.as_str()).collect();
    ensure!(steps == ["term@leader", "kill"], "not its steps: {steps:?}");
    ensure!(report.reason == "stopped", "the first reason changed to {}", report.reason);
    shell.leave(world)
}

/// The command has not got it, unlike a key's: so it gets it from us.
fn int_by_hand(world: &mut World) -> Outcome {
    let mut shell = Shell::start(world)?;
    let run = begin(&mut shell, world, "0.1", "0.1")?;
    send_signal(run.guard.pid, Signal::INT)?;
    shell.tty.expect("heard INT")?;
    shell.tty.expect("saved")?;
    shell.prompt()?;
    shell.expect_status(9)?;
    let report = report(world)?;
    ensure!(report.steps[0].step == "int@leader", "not its step: {:?}", report.steps);
    ensure!(report.steps[0].signalled == 1, "not told: {:?}", report.steps);
    ensure!(report.reason == "stopped", "its reason was {}", report.reason);
    shell.leave(world)
}

fn int_by_key(world: &mut World) -> Outcome {
    let mut shell = Shell::start(world)?;
    begin(&mut shell, world, "0.1", "0.1")?;
    shell.tty.type_keys(CTRL_C)?;
    shell.tty.expect("heard INT")?;
    shell.tty.expect("saved")?;
    shell.prompt()?;
    shell.expect_status(9)?;
    let report = report(world)?;
    ensure!(report.steps.is_empty(), "the key began a stop: {:?}", report.steps);
    ensure!(report.reason == "exited", "its reason was {}", report.reason);
    shell.leave(world)
}

fn key_joins(world: &mut World) -> Outcome {
    let mut shell = Shell::start(world)?;
    let run = begin(&mut shell, world, "0.01", "0.5")?;
    send_signal(run.guard.pid, Signal::TERM)?;
    shell.tty.expect("heard TERM")?;
    shell.tty.type_keys(CTRL_C)?;
    shell.tty.expect("saved")?;
    shell.prompt()?;
    shell.expect_status(9)?;
    let report = report(world)?;
    ensure!(report.steps.len() == 1, "the key asked for more: {:?}", report.steps);
    shell.leave(world)
}

fn key_later(world: &mut World) -> Outcome {
    let mut shell = Shell::start(world)?;
    let run = begin(&mut shell, world, "1.2", "1.5")?;
    send_signal(run.guard.pid, Signal::TERM)?;
    shell.tty.expect("soon")?;
    shell.tty.type_keys(CTRL_C)?;
    let said = shell.prompt()?;
    ensure!(!said.contains("saved"), "it was not killed: {said:?}");
    shell.expect_status(137)?;
    shell.leave(world)
}

fn hup_and_quit(world: &mut World) -> Outcome {
    let mut shell = Shell::start(world)?;
    for (signal, name, step) in
        [(Signal::HUP, "HUP", "hup@leader"), (Signal::QUIT, "QUIT", "quit@leader")]
    {
        let run = begin(&mut shell, world, "0.1", "0.1")?;
        send_signal(run.guard.pid, signal)?;
        shell.tty.expect(&format!("heard {name}"))?;
        shell.tty.expect("saved")?;
        shell.prompt()?;
        shell.expect_status(9)?;
        let report = report(world)?;
        ensure!(report.steps[0].step == step, "not its step: {:?}", report.steps);
    }
    shell.leave(world)
}

/// The shell leads the session, and a HUP of its may be the word that the
/// window is closed, which every member of the job has got. This one is not.
fn hup_typed(world: &mut World) -> Outcome {
    script(world, "slow", SLOW)?;
    let mut shell = Shell::start(world)?;
    shell.begin_behind("SOON=0.1 LATER=0.1 fullstop run -q -- bash ./slow &", "up")?;
    await_asleep(&mut shell.tty, "bash ./slow")?;
    shell.begin("kill -HUP $!")?;
    shell.tty.expect("heard HUP")?;
    shell.tty.expect("saved")?;
    let said = shell.line("wait $!; echo \"status=$?\"")?;
    ensure!(said.contains("status=9"), "not its status: {said:?}");
    shell.leave(world)
}

/// As under nohup, and for background jobs of a shell without job control.
fn stays_ignored(world: &mut World) -> Outcome {
    script(world, "outer", "trap '' HUP INT QUIT; fullstop run --report report.json -- sleep 60")?;
    let mut shell = Shell::start(world)?;
    shell.begin("bash ./outer")?;
    await_foreground(&mut shell.tty, "sleep 60")?;
    let run = await_run(&mut shell.tty, "sleep 60")?;
    for signal in [Signal::HUP, Signal::INT, Signal::QUIT] {
        send_signal(run.guard.pid, signal)?;
        send_signal(run.leader.pid, signal)?;
    }
    shell.tty.type_keys(CTRL_C)?;
    shell.tty.expect("^C")?;
    send_signal(run.guard.pid, Signal::TERM)?;
    shell.prompt()?;
    shell.expect_status(143)?;
    let report = report(world)?;
    let steps: Vec<&str> = report.steps.iter().map(|step| step.step.as_str()).collect();
    ensure!(steps == ["term@leader"], "an ignored signal was heard: {steps:?}");
    shell.leave(world)
}

/// What asks nothing of us is for the command.
fn passed_on(world: &mut World) -> Outcome {
    let text = "mkfifo pause; for s in WINCH USR1 USR2; do trap \"echo heard $s\" $s; done; \
         echo up; while :; do read -r -t 0.05 <> pause; done";
    script(world, "hears", text)?;
    let mut shell = Shell::start(world)?;
    shell.begin("fullstop run -- bash ./hears")?;
    shell.tty.expect("up")?;
    await_foreground(&mut shell.tty, "bash ./hears")?;
    let run = await_run(&mut shell.tty, "bash ./hears")?;
    for (signal, name) in [(Signal::WINCH, "WINCH"), (Signal::USR1, "USR1"), (Signal::USR2, "USR2")]
    {
        send_signal(run.guard.pid, signal)?;
        shell.tty.expect(&format!("heard {name}"))?;
    }
    shell.tty.type_keys(CTRL_C)?;
    shell.prompt()?;
    shell.expect_status(130)?;
    shell.leave(world)
}

/// Kills the script that started a run, and waits for the shell to notice.
fn kill_host(world: &World, shell: &mut Shell, option: &str) -> Outcome<Run> {
    script(world, "outer", &format!("fullstop run {option} -- sleep 60; true"))?;
    shell.begin("bash ./outer")?;
    await_foreground(&mut shell.tty, "sleep 60")?;
    let run = await_run(&mut shell.tty, "sleep 60")?;
    let host = await_actor(&mut shell.tty, "bash ./outer")?;
    send_signal(host.pid, Signal::KILL)?;
    shell.prompt()?;
    shell.expect_status(137)?;
    Ok(run)
}

fn host_exit_ignored(world: &mut World) -> Outcome {
    let mut shell = Shell::start(world)?;
    let run = kill_host(world, &mut shell, "")?;
    // Longer than the ladder for it would take to begin.
    shell.line("read -t 0.3 <> <(:)")?;
    let leader = run.leader.still_there().filter(Process::alive);
    ensure!(leader.is_some(), "the run ended with its host");
    send_signal(run.guard.pid, Signal::TERM)?;
    shell.tty.until("the run is over", || find("sleep 60").is_none())?;
    shell.leave(world)
}

fn host_exit_stops(world: &mut World) -> Outcome {
    let mut shell = Shell::start(world)?;
    kill_host(world, &mut shell, "--on-host-exit stop")?;
    shell.tty.until_within(arena::seconds(2), "the run is over", || find("sleep 60").is_none())?;
    shell.leave(world)
}
