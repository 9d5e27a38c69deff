//! The world a scenario plays in, seen from its first process.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};

use crate::bystander;
use crate::lifeline::{Lifeline, Word};
use crate::reaper::Reaper;
use crate::{
    Bystander, Cgroup, Context, Deadline, Ended, Outcome, Process, Spawned, User, await_until,
    ensure, pidfd, seconds,
};

/// How a line begins that is shown in any case.
pub(crate) const ALOUD: &str = "aloud: ";

/// How much of an attached file a failure shows.
const SHOWN: usize = 6_000;

pub struct World {
    base: PathBuf,
    cgroup: Option<Cgroup>,
    lifeline: Lifeline,
    reaper: Reaper,
    outsiders: BTreeSet<i32>,
    bystanders: Vec<Bystander>,
    notes: Vec<String>,
    attached: Vec<(String, PathBuf)>,
}

impl World {
    pub(crate) fn new(base: &Path, cgroup: Option<Cgroup>, lifeline: Lifeline) -> Outcome<Self> {
        let world = Self {
            base: base.to_owned(),
            cgroup,
            lifeline,
            reaper: Reaper::start(),
            outsiders: BTreeSet::from([1]),
            bystanders: Vec::new(),
            notes: Vec::new(),
            attached: Vec::new(),
        };
        for dir in [world.dir(), world.out(), world.home(), world.scratch().join("state")] {
            fs::create_dir(&dir).context(format!("cannot make {}", dir.display()))?;
            fs::set_permissions(&dir, Permissions::from_mode(0o777)).context("chmod")?;
        }
        Ok(world)
    }

    // ---- places -----------------------------------------------------------

    pub fn fullstop(&self) -> PathBuf {
        self.base.join("bin/fullstop")
    }

    pub fn zoo(&self) -> PathBuf {
        self.base.join("bin/zoo")
    }

    /// The scratch file system of this world; only it sees it.
    pub fn scratch(&self) -> PathBuf {
        self.base.join("cell")
    }

    /// The directory a zoo member gets; everybody may write into it.
    pub fn dir(&self) -> PathBuf {
        self.scratch().join("dir")
    }

    /// Where reports and captured output go.
    pub fn out(&self) -> PathBuf {
        self.scratch().join("out")
    }

    /// `HOME` and `TMPDIR` of what is started; nothing should appear in it.
    pub fn home(&self) -> PathBuf {
        self.scratch().join("home")
    }

    /// Where fullstop keeps its records here; it makes the directory itself.
    pub fn state(&self) -> PathBuf {
        self.scratch().join("state/fullstop")
    }

    /// The throw-away cgroup this world lives in, where there is one.
    pub fn cgroup(&self) -> Option<&Cgroup> {
        self.cgroup.as_ref()
    }

    /// Moves the driver into a cgroup below the world's own that belongs to
    /// `user`; whatever is started from now on is born inside it.
    pub fn enter_delegated(&mut self, user: User) -> Outcome<Cgroup> {
        let cgroup =
            self.cgroup.as_ref().context("this world has no cgroup")?.create("delegated")?;
        cgroup.delegate(user.uid())?;
        cgroup.enter()?;
        Ok(cgroup)
    }

    // ---- processes --------------------------------------------------------

    /// A command with a small, known environment and no descriptors of ours.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home())
            .env("TMPDIR", self.home())
            .env("FULLSTOP_DIR", self.state())
            .current_dir(self.dir())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    /// Starts a child of the driver. Its end is asked for with [`World::wait`].
    pub fn spawn(&mut self, label: &str, command: &mut Command) -> Outcome<Spawned> {
        self.spawn_piped(label, command).map(|(spawned, _)| spawned)
    }

    /// Like [`World::spawn`], for commands whose pipes are wanted. The
    /// [`Child`] must not be waited for: all reaping is the driver's.
    pub fn spawn_piped(&mut self, label: &str, command: &mut Command) -> Outcome<(Spawned, Child)> {
        self.note(format!("{label}: {command:?}"));
        self.reaper.spawn(label, command)
    }

    /// Waits for the end of a child.
    pub fn wait(&self, spawned: &Spawned, patience: Duration) -> Outcome<Ended> {
        let deadline = Deadline::after(patience);
        let Spawned { pid, label } = spawned;
        self.reaper.wait(*pid, deadline).ok_or_else(|| {
            deadline.missed(format!("{label} (pid {pid}) has not ended within {patience:?}"))
        })
    }

    /// Has the child ended, and how?
    pub fn ended(&self, spawned: &Spawned) -> Option<Ended> {
        self.reaper.wait(spawned.pid, Deadline::after(Duration::ZERO))
    }

    /// Everything alive in the world that is neither the driver nor declared
    /// an outsider.
    pub fn survivors(&self) -> Vec<Process> {
        let ours = |process: &Process| process.alive() && !self.outsiders.contains(&process.pid);
        Process::all().into_iter().filter(ours).collect()
    }

    /// Is this the driver or declared an outsider?
    pub fn knows(&self, pid: i32) -> bool {
        self.outsiders.contains(&pid)
    }

    /// From now on this process does not count as a survivor.
    pub fn outsider(&mut self, pid: i32) {
        self.outsiders.insert(pid);
    }

    /// Waits until nothing is alive any more, from one process's end to the
    /// next. `Err` names the survivors.
    pub fn expect_extinct(&self, patience: Duration) -> Outcome {
        self.expect_extinct_by(Deadline::after(patience))
    }

    pub fn expect_extinct_by(&self, deadline: Deadline) -> Outcome {
        loop {
            let survivors = self.survivors();
            let Some(first) = survivors.first() else {
                return Ok(());
            };
            if deadline.passed() {
                let (count, names) = (survivors.len(), list(&survivors));
                return Err(deadline.missed(format!("{count} alive that should not be:\n{names}")));
            }
            if let Ok(fd) = pidfd(first.pid) {
                let mut fds = [PollFd::new(&fd, PollFlags::IN)];
                let _ = poll(&mut fds, Some(&deadline.timespec()));
            }
        }
    }

    /// Waits until no zombie is left either: the driver reaps its own at once,
    /// so one that stays has a parent that does not.
    pub fn expect_no_zombies(&self) -> Outcome {
        let zombies = || -> Vec<Process> {
            let dead =
                |process: &Process| !process.alive() && !self.outsiders.contains(&process.pid);
            Process::all().into_iter().filter(dead).collect()
        };
        let reaped = await_until(seconds(1), || zombies().is_empty());
        ensure!(reaped, "zombies left behind:\n{}", list(&zombies()));
        Ok(())
    }

    // ---- bystanders -------------------------------------------------------

    /// Starts a bystander whose program is called `name`, with additional
    /// environment. It must be alive and unsignalled at the end.
    pub fn bystander(
        &mut self,
        name: &str,
        user: User,
        env: &[(String, String)],
    ) -> Outcome<Bystander> {
        let mut command = self.bystander_command(name);
        command.envs(env.iter().map(|(key, value)| (key, value)));
        user.apply(&mut command);
        let spawned = self.spawn(&format!("bystander {name}"), &mut command)?;
        self.adopt_bystander(name, spawned.pid)
    }

    /// The command of a bystander, to be started by somebody else.
    pub fn bystander_command(&self, name: &str) -> Command {
        let program = self.base.join("others").join(name);
        if !program.exists() {
            // Many worlds share the directory; whoever comes second is served.
            let _ = fs::hard_link(self.base.join("others/bystander"), &program);
        }
        let mut command = self.command(program);
        command.arg0(name);
        bystander::arm(&mut command);
        command
    }

    /// Declares a living process a bystander.
    pub fn adopt_bystander(&mut self, label: &str, pid: i32) -> Outcome<Bystander> {
        let process = Process::read(pid).context(format!("bystander {label} did not live"))?;
        self.outsider(pid);
        let bystander = Bystander { label: label.to_owned(), process };
        self.bystanders.push(bystander.clone());
        Ok(bystander)
    }

    /// Every bystander so far is alive and unsignalled.
    pub fn expect_bystanders_untouched(&self) -> Outcome {
        self.bystanders.iter().try_for_each(Bystander::expect_untouched)
    }

    // ---- the machine -------------------------------------------------------

    /// From here on the scenario only waits: another may be busy meanwhile.
    pub fn only_waits_now(&self) {
        self.lifeline.say(&Word::OnlyWaits);
    }

    pub(crate) fn lifeline(&self) -> &Lifeline {
        &self.lifeline
    }

    // ---- what a failure shows ---------------------------------------------

    /// Something worth knowing if this scenario fails.
    pub fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Something that is said even if this scenario passes.
    pub fn aloud(&self, text: impl AsRef<str>) {
        println!("{ALOUD}{}", text.as_ref());
    }

    /// A file whose content is worth knowing if this scenario fails.
    pub fn attach(&mut self, label: impl Into<String>, path: impl Into<PathBuf>) {
        self.attached.push((label.into(), path.into()));
    }

    /// Notes, attached files and the census, for a failure.
    pub fn describe(&self) -> String {
        let mut text = String::new();
        for note in &self.notes {
            let _ = writeln!(text, "  {note}");
        }
        for (label, path) in &self.attached {
            let content =
                fs::read(path).map_or_else(|error| format!("({error})"), |bytes| tail(&bytes));
            let _ = writeln!(text, "--- {label}\n{content}");
        }
        let _ = writeln!(text, "--- census\n{}", list(&Process::all()));
        text
    }
}

fn list(processes: &[Process]) -> String {
    let mut lines: Vec<String> = processes.iter().take(60).map(ToString::to_string).collect();
    if processes.len() > lines.len() {
        lines.push(format!("… and {} more", processes.len() - lines.len()));
    }
    lines.join("\n")
}

fn tail(bytes: &[u8]) -> String {
    let from = bytes.len().saturating_sub(SHOWN);
    String::from_utf8_lossy(&bytes[from..]).into_owned()
}
