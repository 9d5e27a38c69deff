//! What the hard cases share: places to run in, a way to start, and the last
//! look around.

use std::fmt;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;

use arena::report::Report;
use arena::{
    Context, Deadline, Ended, Need, Outcome, Process, Registry, Scenario, Signal, Spawned, User,
    World, await_until, ensure, seconds, send_signal,
};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};

/// Longer than anything that is meant to happen at once takes on a busy machine.
pub const SOON: Duration = seconds(5);

/// Where a run takes place: in which cage, and whose it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub cage: Cage,
    pub user: User,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cage {
    Cgroup,
    Tree,
}

impl fmt::Display for Cage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cgroup => "cgroup",
            Self::Tree => "tree",
        })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}::{}", self.cage, self.user)
    }
}

pub const AS_ROOT: [Place; 2] =
    [Place { cage: Cage::Cgroup, user: User::Root }, Place { cage: Cage::Tree, user: User::Root }];

pub const EVERYWHERE: [Place; 4] = [
    AS_ROOT[0],
    AS_ROOT[1],
    Place { cage: Cage::Cgroup, user: User::Plain },
    Place { cage: Cage::Tree, user: User::Plain },
];

/// Where nothing depends on the cage.
pub const ANYWHERE: [Place; 1] = [AS_ROOT[1]];

impl Place {
    /// A plain user needs a cgroup of their own to make others in.
    fn enter(self, world: &mut World) -> Outcome {
        if self.cage == Cage::Cgroup && self.user == User::Plain {
            world.enter_delegated(self.user)?;
        }
        Ok(())
    }
}

/// Registers a scenario in each of these places, with a bystander in each.
pub fn add(
    registry: &mut Registry,
    name: &str,
    places: &[Place],
    needs: &[Need],
    body: fn(&mut World, Place) -> Outcome,
) {
    add_with(registry, name, places, needs, |_| {}, body);
}

/// The same, with something to say about each scenario (`limit`, `heavy`).
pub fn add_with(
    registry: &mut Registry,
    name: &str,
    places: &[Place],
    needs: &[Need],
    adjust: fn(&mut Scenario),
    body: impl Fn(&mut World, Place) -> Outcome + Copy + Send + Sync + 'static,
) {
    for &place in places {
        let mut needs = needs.to_vec();
        if place.cage == Cage::Cgroup {
            needs.push(Need::Cgroup);
        }
        let scenario = registry.scenario(format!("{name}::{place}"), &needs, move |world| {
            place.enter(world)?;
            world.bystander("sleep", place.user, &[])?;
            world.bystander("fullstop-keeper", place.user, &[])?;
            body(world, place)
        });
        adjust(scenario);
    }
}

/// A run to be started.
pub struct Launch {
    place: Place,
    before: Vec<String>,
    options: Vec<String>,
    stdin: Option<Stdio>,
    stdout: Option<Stdio>,
    stderr: Option<Stdio>,
    report: bool,
}

impl Launch {
    pub fn new(place: Place) -> Self {
        let options = vec!["--cage".into(), place.cage.to_string()];
        Self {
            place,
            before: Vec::new(),
            options,
            stdin: None,
            stdout: None,
            stderr: None,
            report: true,
        }
    }

    /// Something to put in front of `fullstop run`.
    pub fn before(mut self, words: &[&str]) -> Self {
        self.before.extend(words.iter().map(ToString::to_string));
        self
    }

    pub fn options(mut self, words: &[&str]) -> Self {
        self.options.extend(words.iter().map(ToString::to_string));
        self
    }

    pub fn stdin(mut self, stdin: impl Into<Stdio>) -> Self {
        self.stdin = Some(stdin.into());
        self
    }

    pub fn stdout(mut self, stdout: impl Into<Stdio>) -> Self {
        self.stdout = Some(stdout.into());
        self
    }

    /// Instead of the file that a failure shows.
    pub fn stderr(mut self, stderr: impl Into<Stdio>) -> Self {
        self.stderr = Some(stderr.into());
        self
    }

    pub fn without_report(mut self) -> Self {
        self.report = false;
        self
    }

    /// All the words, from what stands before to the command.
    pub fn words(&self, world: &World, command: &[&str]) -> Vec<String> {
        let mut words = self.before.clone();
        words.extend([text(world.fullstop()), "run".into()]);
        words.extend(self.options.iter().cloned());
        if self.report {
            words.extend(["--report".into(), text(world.out().join("report.json"))]);
        }
        words.push("--".into());
        words.extend(command.iter().map(ToString::to_string));
        words
    }

    pub fn start(self, world: &mut World, command: &[&str]) -> Outcome<Run> {
        let words = self.words(world, command);
        let report = world.out().join("report.json");
        let stderr = world.out().join("stderr");
        let mut started = world.command(&words[0]);
        started.args(&words[1..]);
        started.stdin(self.stdin.unwrap_or_else(Stdio::null));
        started.stdout(self.stdout.unwrap_or_else(Stdio::null));
        let file = File::create(&stderr).context("stderr of run")?;
        started.stderr(self.stderr.unwrap_or_else(|| file.into()));
        self.place.user.apply(&mut started);
        world.attach("stderr of run", &stderr);
        world.attach("report", &report);
        let (spawned, child) = world.spawn_piped("run", &mut started)?;
        Ok(Run { spawned, child, report, stderr })
    }

    /// Starts it and waits for its end.
    pub fn finish(self, world: &mut World, command: &[&str]) -> Outcome<(Ended, Run)> {
        let run = self.start(world, command)?;
        let ended = world.wait(&run.spawned, seconds(15))?;
        Ok((ended, run))
    }
}

/// A run that was started.
pub struct Run {
    pub spawned: Spawned,
    /// For its pipes; it is never waited for.
    pub child: Child,
    report: PathBuf,
    stderr: PathBuf,
}

impl Run {
    pub fn pid(&self) -> i32 {
        self.spawned.pid
    }

    pub fn report(&self) -> Outcome<Report> {
        Report::read(&self.report)
    }

    pub fn stderr(&self) -> String {
        std::fs::read_to_string(&self.stderr).unwrap_or_default()
    }

    /// The report says that it ended, why, and carries the right proof.
    pub fn expect_ended(&self, place: Place, reason: &str) -> Outcome<Report> {
        let report = self.report()?;
        ensure!(report.state == "ended", "the report says {}, not ended", report.state);
        ensure!(report.reason == reason, "the reason is {}, not {reason}", report.reason);
        ensure!(report.cage == place.cage.to_string(), "the cage was a {}", report.cage);
        let proof = match place.cage {
            Cage::Cgroup => "cgroup-empty",
            Cage::Tree => "no-children",
        };
        ensure!(report.proof.as_deref() == Some(proof), "the proof is {:?}", report.proof);
        ensure!(report.survivors.is_empty(), "ended, with survivors");
        Ok(report)
    }
}

/// The keeper, once there is one. Bystanders of the same name are no keepers.
pub fn keeper(world: &World) -> Outcome<Process> {
    let find = || world.survivors().into_iter().find(|p| p.comm == "fullstop-keeper");
    ensure!(await_until(SOON, || find().is_some()), "there is no keeper");
    find().context("there is no keeper")
}

/// The children of a process, in the order of their birth.
pub fn children(of: i32) -> Vec<Process> {
    Process::all().into_iter().filter(|process| process.ppid == of).collect()
}

/// Stops a process, as Ctrl-Z or a debugger would.
pub fn stop(pid: i32) -> Outcome {
    send_signal(pid, Signal::STOP)?;
    let stopped = || Process::read(pid).is_some_and(|process| process.state == 'T');
    ensure!(await_until(SOON, stopped), "{pid} does not stop");
    Ok(())
}

/// Nobody alive, nothing left, nobody hurt.
pub fn all_clean(world: &World) -> Outcome {
    world.expect_extinct(Duration::ZERO)?;
    world.expect_no_zombies()?;
    no_cgroup(world)?;
    world.expect_bystanders_untouched()?;
    let left = std::fs::read_dir(world.home()).context("home")?.flatten().next();
    ensure!(left.is_none(), "something was left in the home directory: {left:?}");
    arena::records::expect_finished(world)
}

pub fn no_cgroup(world: &World) -> Outcome {
    let left = world.cgroup().map(arena::Cgroup::leftovers).unwrap_or_default();
    ensure!(left.is_empty(), "cgroups left behind: {}", left.join(", "));
    Ok(())
}

pub fn text(path: impl Into<PathBuf>) -> String {
    path.into().to_string_lossy().into_owned()
}

/// A FIFO in the world's directory, into which members write lines. It is held
/// open for both, so that nobody blocks and no end of file is seen.
pub struct Lines {
    fifo: File,
    text: String,
}

impl Lines {
    pub fn create(world: &World, name: &str) -> Outcome<Self> {
        let path = world.dir().join(name);
        let everyone = Mode::from_raw_mode(0o666);
        mknodat(CWD, &path, FileType::Fifo, everyone, 0).context("mknod")?;
        rustix::fs::chmod(&path, everyone).context("chmod")?;
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let fifo = File::options().read(true).write(true).custom_flags(flags).open(&path);
        Ok(Self { fifo: fifo.context("fifo")?, text: String::new() })
    }

    /// The next line, without its end.
    pub fn next(&mut self, patience: Duration) -> Outcome<String> {
        let deadline = Deadline::after(patience);
        loop {
            if let Some((line, rest)) = self.text.split_once('\n') {
                let (line, rest) = (line.to_owned(), rest.to_owned());
                self.text = rest;
                return Ok(line);
            }
            let mut chunk = [0; 4096];
            match self.fifo.read(&mut chunk) {
                Ok(n) => self.text.push_str(&String::from_utf8_lossy(&chunk[..n])),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    ensure!(deadline.stands(), "no line within {patience:?}");
                    self.sleep(deadline)?;
                }
                Err(error) => return Err(error).context("reading a fifo"),
            }
        }
    }

    pub fn expect(&mut self, wanted: &str) -> Outcome {
        let line = self.next(seconds(10)).context(format!("waiting for {wanted:?}"))?;
        ensure!(line == wanted, "{line:?} was said, not {wanted:?}");
        Ok(())
    }

    fn sleep(&self, deadline: Deadline) -> Outcome {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let left = Timespec::try_from(deadline.left()).context("time")?;
        match poll(&mut [PollFd::new(&self.fifo, PollFlags::IN)], Some(&left)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error).context("poll"),
        }
    }
}
