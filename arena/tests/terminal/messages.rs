//! How a command ended, in the words and numbers of the shell.

use arena::{Outcome, Registry, World, ensure};

use super::actors::script;
use super::prefix::{Prefix, both};
use super::shell::Shell;

pub fn register(registry: &mut Registry) {
    both(registry, "messages::of-an-interactive-shell", interactive);
    both(registry, "messages::of-a-script", of_a_script);
    both(registry, "messages::killed", killed);
    both(registry, "messages::exit-codes", codes);
}

/// The signals a command may die of, with the status and the words of bash.
const DEATHS: &[(&str, i32, &str)] = &[
    ("HUP", 129, "Hangup"),
    ("QUIT", 131, "Quit"),
    ("ABRT", 134, "Aborted"),
    ("SEGV", 139, "Segmentation fault"),
    ("ALRM", 142, "Alarm clock"),
    ("TERM", 143, "Terminated"),
    ("USR1", 138, "User defined signal 1"),
];

fn interactive(world: &mut World, prefix: Prefix) -> Outcome {
    let mut shell = Shell::start(world)?;
    shell.line("ulimit -c 0")?;
    for (signal, status, words) in DEATHS {
        let said = shell.line(&format!("{prefix}sh -c 'kill -{signal} $$'"))?;
        ensure!(said.trim_end() == *words, "{signal}: bash said {said:?}");
        shell.expect_status(*status)?;
    }
    // Bash has no words for these two.
    for (signal, status) in [("INT", 130), ("PIPE", 141)] {
        let said = shell.line(&format!("{prefix}sh -c 'kill -{signal} $$'"))?;
        ensure!(said.trim().is_empty(), "{signal}: bash said {said:?}");
        shell.expect_status(status)?;
    }
    shell.leave(world)
}

fn of_a_script(world: &mut World, prefix: Prefix) -> Outcome {
    let mut shell = Shell::start(world)?;
    shell.line("ulimit -c 0")?;
    for (signal, status, words) in DEATHS {
        script(world, "outer", &format!("{prefix}sh -c 'kill -{signal} $$'\necho \"after $?\""))?;
        let said = shell.line("bash ./outer")?;
        ensure!(said.contains(words), "{signal}: bash said {said:?}");
        ensure!(said.ends_with(&format!("after {status}\r\n")), "{signal}: {said:?}");
    }
    shell.leave(world)
}

/// The one difference: a run whose command was killed by SIGKILL says so with
/// its status, because a run that was killed itself should look different.
fn killed(world: &mut World, prefix: Prefix) -> Outcome {
    let mut shell = Shell::start(world)?;
    let said = shell.line(&format!("{prefix}sh -c 'kill -KILL $$'"))?;
    let words = match prefix {
        Prefix::Bare => "Killed",
        Prefix::Run => "",
    };
    ensure!(said.trim() == words, "bash said {said:?}");
    shell.expect_status(137)?;
    shell.leave(world)
}

fn codes(world: &mut World, prefix: Prefix) -> Outcome {
    let mut shell = Shell::start(world)?;
    for code in [0, 1, 2, 42, 125, 126, 127, 128, 137, 255] {
        let said = shell.line(&format!("{prefix}sh -c 'exit {code}'"))?;
        ensure!(said.is_empty(), "{code}: bash said {said:?}");
        shell.expect_status(code)?;
    }
    for (command, status) in [("./not-there", 127), ("not-there-at-all", 127), ("/etc", 126)] {
        shell.line(&format!("{prefix}{command}"))?;
        shell.expect_status(status)?;
    }
    shell.leave(world)
}
