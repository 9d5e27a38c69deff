//! An interactive bash with job control on a terminal of its own.

use std::path::Path;
use std::process::Command;

use arena::{Context, Deadline, Ended, Outcome, Spawned, World, ensure, seconds};

use super::tty::{PATIENCE, Tty};

pub const CTRL_C: &str = "\x03";
pub const CTRL_D: &str = "\x04";
pub const CTRL_Z: &str = "\x1a";
pub const CTRL_BACKSLASH: &str = "\x1c";
pub const CTRL_Q: &str = "\x11";
pub const CTRL_S: &str = "\x13";
pub const ENTER: &str = "\r";

/// The command line of the shell.
pub const BASH: &str = "bash --norc --noprofile -i";

/// Nothing else that appears on the screen looks like this.
pub const PROMPT: &str = "<shell> ";

/// Asks for the jobs as they are. Bash has been seen to miss a change of one
/// for good when others followed at once; waiting for any command, it looks.
pub const JOBS: &str = "env true; jobs";

pub struct Shell {
    pub tty: Tty,
    pub bash: Spawned,
}

impl Shell {
    pub fn start(world: &mut World) -> Outcome<Self> {
        let (tty, bash) = on_terminal(world, "bash", &BASH.split(' ').collect::<Vec<_>>(), |_| {})?;
        let mut shell = Self { tty, bash };
        shell.prompt()?;
        Ok(shell)
    }

    /// Types a line, and waits for the prompt that follows it. Returns what
    /// was on the screen between the two.
    pub fn line(&mut self, line: &str) -> Outcome<String> {
        self.begin(line)?;
        self.prompt()
    }

    /// Types a line, and waits until it is echoed: what follows is not ours.
    pub fn begin(&mut self, line: &str) -> Outcome {
        self.tty.type_keys(line)?;
        self.tty.type_keys(ENTER)?;
        self.tty.expect(line)?;
        self.tty.expect("\n").map(drop)
    }

    /// Starts a background job, and waits for the prompt and for what the job
    /// says first, whichever comes first.
    pub fn begin_behind(&mut self, line: &str, says: &str) -> Outcome {
        let said = self.line(line)?;
        if !said.contains(says) {
            self.tty.expect(says)?;
        }
        Ok(())
    }

    pub fn prompt(&mut self) -> Outcome<String> {
        self.tty.expect(PROMPT)
    }

    /// The exit status of the last line, as bash knows it.
    pub fn status(&mut self) -> Outcome<i32> {
        let said = self.line("echo \"status=$?\"")?;
        let status = said.trim().strip_prefix("status=").and_then(|n| n.parse().ok());
        status.context(format!("not a status: {said:?}"))
    }

    pub fn expect_status(&mut self, wanted: i32) -> Outcome {
        let status = self.status()?;
        ensure!(status == wanted, "the shell saw status {status}, and not {wanted}");
        Ok(())
    }

    /// Waits until bash has taken note of the end of all its jobs: with stopped
    /// ones it would not leave.
    pub fn await_no_jobs(&mut self) -> Outcome {
        let deadline = Deadline::after(PATIENCE);
        while self.line(JOBS)?.contains('[') {
            ensure!(deadline.stands(), "there are still jobs");
        }
        Ok(())
    }

    /// Leaves as people do, and looks whether anybody else is still there.
    pub fn leave(mut self, world: &World) -> Outcome {
        self.begin("exit 0")?;
        let ended = world.wait(&self.bash, PATIENCE)?;
        ensure!(ended == Ended::Code(0), "the shell itself ended with {ended}");
        nothing_is_left(world)
    }
}

/// Starts a command as the leader of a session on a new terminal.
pub fn on_terminal(
    world: &mut World,
    label: &str,
    words: &[&str],
    change: impl FnOnce(&mut Command),
) -> Outcome<(Tty, Spawned)> {
    let tty = Tty::open(world)?;
    let mut command = world.command("setsid");
    tty.connect(&mut command)?;
    let bin = world.fullstop();
    let bin = bin.parent().unwrap_or(Path::new("/"));
    let inputrc = world.out().join("inputrc");
    std::fs::write(&inputrc, "set enable-bracketed-paste off\n").context("inputrc")?;
    let path = std::env::var("PATH").unwrap_or_default();
    command
        .arg("--ctty")
        .args(words)
        .env("PATH", format!("{}:{path}", bin.display()))
        .env("TERM", "xterm")
        .env("LC_ALL", "C.UTF-8")
        .env("INPUTRC", inputrc)
        .env("HISTFILE", "/dev/null")
        .env("PS1", PROMPT);
    change(&mut command);
    let spawned = world.spawn(label, &mut command)?;
    Ok((tty, spawned))
}

/// Nobody is alive, nobody is a zombie, and no bystander has noticed anything.
pub fn nothing_is_left(world: &World) -> Outcome {
    world.expect_extinct(seconds(2))?;
    world.expect_no_zombies()?;
    world.expect_bystanders_untouched()
}
