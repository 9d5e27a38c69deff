//! One cell of the matrix, played in a world of its own.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::expect::{Seen, report_is_true};
use super::member::{Count, Crowd, Leader, Member};
use super::parts::Parts;
use super::story::{self, Pace};
use super::trigger::Trigger;
use super::{bystanders, clean};
use crate::drain::Drain;
use crate::report::Report;
use crate::{
    Context, Deadline, Ended, Outcome, Process, Ready, Spawned, Took, User, World, await_until,
    ensure, millis, seconds,
};

/// Promise 4: a stop returns within its ladder plus this.
const BOUND: Duration = seconds(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cage {
    Cgroup,
    Tree,
    /// Left to fullstop, where a cgroup can be had.
    Auto,
}

impl Cage {
    pub fn reported(self) -> &'static str {
        match self {
            Self::Cgroup | Self::Auto => "cgroup",
            Self::Tree => "tree",
        }
    }
}

impl fmt::Display for Cage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cgroup => "cgroup",
            Self::Tree => "tree",
            Self::Auto => "auto",
        })
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Cell {
    pub member: &'static Member,
    pub cage: Cage,
    pub user: User,
    pub trigger: Trigger,
    pub pace: Pace,
}

impl Cell {
    pub fn name(&self) -> String {
        format!("{}::{}::{}::{}", self.member.label(), self.cage, self.user, self.trigger)
    }

    /// Is there anybody to ask when the stop begins?
    pub fn somebody_is_asked(&self) -> bool {
        // Two are alone, and a storm may die down while those who are left are named: the
        // dead are not reaped meanwhile, and keep its places.
        let leaves_nobody = matches!(self.member.name, "save-on-term" | "tree-on-term" | "storm");
        match self.member.leader {
            Leader::LeavesNobody => false,
            _ => !(leaves_nobody && self.trigger == Trigger::Natural),
        }
    }

    /// May the ladder get as far as killing?
    pub fn may_be_killed(&self) -> bool {
        self.member.crowd != Crowd::Polite || (self.member.saves && self.trigger.kills_us())
    }

    /// Those who breed while they are asked are not waited for when nobody waits for us.
    pub fn may_storm(&self) -> bool {
        self.member.count == Count::Restless && self.trigger.kills_us()
    }

    /// What `--timeout` says: long enough for the member to stand before.
    pub fn timeout(&self) -> Duration {
        match (self.trigger, self.member.slow_to_stand()) {
            (Trigger::Timeout, true) => seconds(3),
            (Trigger::Timeout, false) => millis(1500),
            _ => Duration::ZERO,
        }
    }

    pub fn play(&self, world: &mut World) -> Outcome {
        if self.user == User::Plain && self.cage != Cage::Tree {
            world.enter_delegated(self.user)?;
        }
        bystanders::gather(world, self.user)?;
        let mut started = self.start(world)?;
        let announced = started.ready.wait(seconds(20)).context(self.member.name)?;
        let parts = self.parts(world, &started, announced)?;
        let seen = look(world, &started, announced, parts.as_ref());
        let pulled = Instant::now();
        if let Some(parts) = &parts {
            world.note(format!("{parts:?}"));
            self.trigger.pull(parts)?;
        }
        let status = self.see_it_end(world, &started, parts.as_ref(), pulled)?;
        let seen = Seen { took: Took::since(started.at), ..seen };
        started.output.expect_end(seconds(1))?;
        self.judge(world, &mut started, &seen, status)?;
        // The other look the issue demands: what was dead stays dead.
        world.only_waits_now();
        std::thread::sleep(seconds(1));
        world.expect_extinct(Duration::ZERO).context("one second later")?;
        world.expect_bystanders_untouched()?;
        clean::nothing_left(world, &["ready", "saved", "zoo-suid"])
    }

    pub fn start(&self, world: &mut World) -> Outcome<Started> {
        let ready = Ready::create(&world.dir())?;
        if self.member.name == "setuid-root" {
            clean::put_setuid_copy(world)?;
        }
        let report = world.out().join("report.json");
        let stderr = world.out().join("stderr");
        world.attach("stderr of run", &stderr);
        world.attach("report", &report);
        let command = self.member_command(world);
        let mut run: Vec<String> = self.run_command(world, &report);
        run.push("--".into());
        run.extend(command.iter().cloned());
        let mut shell = self.wrapped(world, &run);
        self.user.apply(&mut shell);
        let file = File::create(&stderr).context("stderr of run")?;
        shell.stdout(Stdio::piped()).stderr(file);
        let at = Instant::now();
        let (spawned, mut child) = world.spawn_piped("run", &mut shell)?;
        let output = Drain::start(child.stdout.take().context("stdout of run")?);
        Ok(Started { spawned, ready, output, report, command, at })
    }

    fn member_command(&self, world: &World) -> Vec<String> {
        let mut command =
            vec![text(world.zoo()), "--dir".into(), text(world.dir()), self.member.name.into()];
        command.extend(self.member.size.map(|size| size.to_string()));
        command
    }

    fn run_command(&self, world: &World, report: &PathBuf) -> Vec<String> {
        let mut run = vec![text(world.fullstop()), "run".into(), "--report".into(), text(report)];
        if self.cage != Cage::Auto {
            run.extend(["--cage".into(), self.cage.to_string()]);
        }
        if let Some(ladder) = self.pace.ladder() {
            run.extend(["--ladder".into(), ladder.into()]);
        }
        if self.trigger == Trigger::Timeout {
            run.extend(["--timeout".into(), format!("{}ms", self.timeout().as_millis())]);
        }
        // A leader that has left must not end the run before the trigger does.
        if self.member.leader == Leader::Leaves && self.trigger != Trigger::Natural {
            run.extend(["--on-exit".into(), "wait".into()]);
        }
        run
    }

    /// Puts `run` into the place where the trigger can reach what it is meant
    /// for.
    fn wrapped(&self, world: &World, run: &[String]) -> Command {
        match self.trigger {
            // Run gets a child it does not know, so it forks a guard.
            Trigger::KillGuard => {
                let foreign = world.bystander_command(bystanders::FOREIGN);
                let mut shell = world.command("sh");
                shell.args(["-c", "\"$0\" \"$1\" </dev/null >/dev/null 2>&1 & shift; exec \"$@\""]);
                shell.arg(foreign.get_program()).args(foreign.get_args()).args(run);
                shell
            }
            // The host is a shell that has something to do afterwards.
            Trigger::KillHost => {
                let mut shell = world.command("sh");
                shell.args(["-c", "\"$@\"; exit $?", "host"]).args(run);
                shell
            }
            _ => {
                let mut command = world.command(&run[0]);
                command.args(&run[1..]);
                command
            }
        }
    }

    /// Finds who is who, and waits for what must have happened before the
    /// trigger. `None` when the run ends without one.
    fn parts(
        &self,
        world: &mut World,
        started: &Started,
        announced: usize,
    ) -> Outcome<Option<Parts>> {
        let ends_by_itself = !self.member.leader_stays() && self.trigger == Trigger::Natural;
        // A timeout waits for nobody: there may be no time left to look around.
        if ends_by_itself || self.trigger == Trigger::Timeout {
            return Ok(None);
        }
        if self.trigger == Trigger::KillGuard {
            bystanders::adopt_foreign(world, started.spawned.pid)?;
        }
        let parts =
            Parts::find(world, started.spawned.pid, self.trigger, self.member.leader_stays())?;
        if !self.member.leader_stays() {
            let left = || {
                Process::all()
                    .into_iter()
                    .filter(|p| !world.knows(p.pid) && !parts.holds(p.pid))
                    .count()
            };
            ensure!(
                await_until(seconds(5), || left() == announced - 1),
                "the leader does not leave"
            );
            // Asleep again, the keeper has told its guard whom the leader left.
            let told = || {
                Process::read(parts.keeper).is_some_and(|keeper| keeper.wchan().contains("poll"))
            };
            ensure!(await_until(seconds(5), told), "the keeper does not sleep");
        }
        if let Some(leader) = parts.leader {
            bystanders::copy_the_marker(world, leader, self.user)?;
        }
        Ok(Some(parts))
    }

    /// Waits until the run is over and nobody lives, each within its bound.
    fn see_it_end(
        &self,
        world: &World,
        started: &Started,
        parts: Option<&Parts>,
        pulled: Instant,
    ) -> Outcome<Ended> {
        if self.trigger.is_murder() {
            world
                .expect_extinct_by(Deadline::from(pulled, seconds(1)))
                .context("one second after the kill")?;
        }
        let run = Spawned {
            pid: parts.map_or(started.spawned.pid, |parts| parts.run),
            label: "run".into(),
        };
        let status = world.wait(&run, self.timeout() + self.pace.total() + BOUND)?;
        let returned = format!("when run had returned with {status}");
        world.expect_extinct(Duration::ZERO).context(returned)?;
        Ok(status)
    }

    fn judge(&self, world: &World, started: &mut Started, seen: &Seen, status: Ended) -> Outcome {
        let report = Report::read(&started.report)?;
        report_is_true(self, &report, seen)?;
        let leader = story::leader_end(self.member, self.trigger, self.pace, &report);
        let expected = story::status(leader, self.trigger);
        ensure!(status == expected, "run ended with {status}, not with {expected}");
        let said = started.ready.text()?;
        ensure!(
            said.lines().count() == 1,
            "the member said more than once that it is ready: {said:?}"
        );
        let saved = fs::read_to_string(world.dir().join("saved")).ok();
        let must_save = self.member.saves && leader == Ended::Code(0);
        ensure!(
            !must_save || saved.as_deref() == Some("saved\n"),
            "the state was not saved ({saved:?})"
        );
        ensure!(must_save || saved.is_none(), "a state was saved that cannot have been");
        Ok(())
    }
}

/// A run that was started, and what the driver holds of it.
pub struct Started {
    pub spawned: Spawned,
    pub ready: Ready,
    pub output: Drain,
    pub report: PathBuf,
    command: Vec<String>,
    at: Instant,
}

fn text(path: impl Into<PathBuf>) -> String {
    path.into().to_string_lossy().into_owned()
}

fn look(world: &World, started: &Started, announced: usize, parts: Option<&Parts>) -> Seen {
    let members = match parts {
        Some(parts) => {
            world.survivors().iter().map(|p| p.pid).filter(|pid| !parts.holds(*pid)).collect()
        }
        None => BTreeSet::new(),
    };
    let until_now = Took::since(started.at);
    Seen {
        announced,
        members,
        leader: parts.and_then(|parts| parts.leader),
        at: started.at,
        stood: until_now,
        took: until_now,
        command: started.command.clone(),
    }
}
