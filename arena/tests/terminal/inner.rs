//! A shell with job control as the command: it takes the terminal for itself
//! and its jobs, and must not keep it.

use arena::{Context, Outcome, Registry, Signal, World, ensure, send_signal};

use super::actors::{await_actor, await_foreground, await_run, script};
use super::prefix::{Prefix, both, run};
use super::shell::{CTRL_C, CTRL_Z, Shell};

pub fn register(registry: &mut Registry) {
    both(registry, "inner-shell::jobs-of-its-own", own_jobs);
    both(registry, "inner-shell::suspends-itself", suspends);
    both(registry, "inner-shell::leaves-stopped-jobs", leaves_jobs);
    both(registry, "inner-shell::killed-at-the-prompt", killed_at_prompt);
    run(registry, "inner-shell::killed-inside-a-script", killed_in_script);
    run(registry, "inner-shell::timed-out-inside-a-script", timed_out_in_script);
}

const INNER: &str = "<inner> ";
/// Told from the outer shell by the order of its options.
const BASH: &str = "bash --noprofile --norc -i";

fn enter(shell: &mut Shell, prefix: Prefix) -> Outcome {
    shell.begin(&format!("PS1='{INNER}' {prefix}{BASH}"))?;
    shell.tty.expect(INNER).map(drop)
}

fn line(shell: &mut Shell, line: &str) -> Outcome<String> {
    shell.begin(line)?;
    shell.tty.expect(INNER)
}

/// The outer shell has its terminal and its job control back.
fn expect_outer_works(shell: &mut Shell) -> Outcome {
    ensure!(shell.tty.foreground() == Some(shell.bash.pid), "the terminal is another's");
    shell.begin("sleep 62")?;
    await_foreground(&mut shell.tty, "sleep 62")?;
    shell.tty.type_keys(CTRL_C)?;
    shell.prompt()?;
    shell.expect_status(130)
}

fn own_jobs(world: &mut World, prefix: Prefix) -> Outcome {
    let mut shell = Shell::start(world)?;
    enter(&mut shell, prefix)?;
    shell.begin("sleep 61")?;
    for _ in 0..3 {
        await_foreground(&mut shell.tty, "sleep 61")?;
        shell.tty.type_keys(CTRL_Z)?;
        shell.tty.expect("Stopped")?;
        shell.tty.expect(INNER)?;
        let said = line(&mut shell, "jobs")?;
        ensure!(said.contains("Stopped"), "the inner job is not stopped: {said:?}");
        shell.begin("fg")?;
    }
    await_foreground(&mut shell.tty, "sleep 61")?;
    shell.tty.type_keys(CTRL_C)?;
    shell.tty.expect(INNER)?;
    let said = line(&mut shell, "echo \"status=$?\"")?;
    ensure!(said.contains("status=130"), "the inner job: {said:?}");
    // At its prompt these keys are the inner shell's own.
    shell.tty.type_keys("half a line")?;
    shell.tty.expect("half a line")?;
    await_foreground(&mut shell.tty, BASH)?;
    shell.tty.type_keys(CTRL_C)?;
    shell.tty.expect(INNER)?;
    shell.begin("exit 3")?;
    shell.prompt()?;
    shell.expect_status(3)?;
    expect_outer_works(&mut shell)?;
    shell.leave(world)
}

fn suspends(world: &mut World, prefix: Prefix) -> Outcome {
    let mut shell = Shell::start(world)?;
    enter(&mut shell, prefix)?;
    for round in 1..=3 {
        shell.begin("suspend")?;
        shell.tty.expect("Stopped")?;
        shell.prompt()?;
        let said = shell.line("jobs")?;
        ensure!(said.contains("Stopped"), "the inner shell is not stopped: {said:?}");
        shell.begin("fg")?;
        // Bash says which job it continues, and the prompt is part of that.
        shell.tty.expect(&format!("{BASH}\r\n"))?;
        shell.tty.expect(INNER)?;
        let said = line(&mut shell, &format!("echo \"round\"{round}"))?;
        ensure!(said.contains(&format!("round{round}")), "it does not work: {said:?}");
    }
    shell.begin("exit 3")?;
    shell.prompt()?;
    shell.expect_status(3)?;
    expect_outer_works(&mut shell)?;
    shell.leave(world)
}

/// Stopped jobs die with their shell: bash sees to it, and so do we.
fn leaves_jobs(world: &mut World, prefix: Prefix) -> Outcome {
    let mut shell = Shell::start(world)?;
    enter(&mut shell, prefix)?;
    shell.begin("sleep 61")?;
    let sleeper = await_foreground(&mut shell.tty, "sleep 61")?;
    shell.tty.type_keys(CTRL_Z)?;
    shell.tty.expect("Stopped")?;
    shell.tty.expect(INNER)?;
    shell.begin("exit 3")?;
    shell.tty.expect("stopped jobs")?;
    shell.tty.expect(INNER)?;
    shell.begin("exit 3")?;
    shell.prompt()?;
    shell.expect_status(3)?;
    shell.tty.until("the job has gone", || sleeper.still_there().is_none())?;
    expect_outer_works(&mut shell)?;
    shell.leave(world)
}

fn killed_at_prompt(world: &mut World, prefix: Prefix) -> Outcome {
    let mut shell = Shell::start(world)?;
    enter(&mut shell, prefix)?;
    let inner = inner_pid(&mut shell)?;
    send_signal(inner, Signal::KILL)?;
    shell.prompt()?;
    shell.expect_status(137)?;
    expect_outer_works(&mut shell)?;
    shell.leave(world)
}

fn inner_pid(shell: &mut Shell) -> Outcome<i32> {
    let said = line(shell, "echo \"pid=$$\"")?;
    let number = said.trim().trim_start_matches("pid=").parse::<i32>();
    number.context(format!("not a pid: {said:?}"))
}

/// A script has no job control and cannot take the terminal back itself. The
/// killed shell had the foreground for itself, or had given it to a job.
fn killed_in_script(world: &mut World) -> Outcome {
    for with_job in [false, true] {
        let outer = format!(
            "export PS1='{INNER}'\nfullstop run -- {BASH}\necho \"ended $?\"\n\
             read -r answer\necho \"answer=$answer\""
        );
        script(world, "outer", &outer)?;
        let mut shell = Shell::start(world)?;
        shell.begin("bash ./outer")?;
        shell.tty.expect(INNER)?;
        let run = await_run(&mut shell.tty, BASH)?;
        if with_job {
            shell.begin("sleep 61")?;
            await_foreground(&mut shell.tty, "sleep 61")?;
        }
        send_signal(run.leader.pid, Signal::KILL)?;
        expect_script_goes_on(&mut shell, 137)?;
        shell.leave(world)?;
    }
    Ok(())
}

fn timed_out_in_script(world: &mut World) -> Outcome {
    let outer = format!(
        "export PS1='{INNER}'\nfullstop run --timeout 500ms --grace 500ms -- {BASH}\n\
         echo \"ended $?\"\nread -r answer\necho \"answer=$answer\""
    );
    script(world, "outer", &outer)?;
    let mut shell = Shell::start(world)?;
    shell.begin("bash ./outer")?;
    shell.tty.expect(INNER)?;
    // An interactive shell ignores TERM, so this takes all of the ladder.
    expect_script_goes_on(&mut shell, 124)?;
    shell.leave(world)
}

fn expect_script_goes_on(shell: &mut Shell, status: i32) -> Outcome {
    shell.tty.expect(&format!("ended {status}"))?;
    let script = await_actor(&mut shell.tty, "bash ./outer")?;
    ensure!(shell.tty.foreground() == Some(script.pgid), "the script is in the background");
    shell.tty.type_keys("yes\r")?;
    shell.tty.expect("answer=yes")?;
    shell.prompt()?;
    shell.expect_status(0)
}
