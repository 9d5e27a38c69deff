//! From the order to stop until the proof: how long, against what a raw
//! `cgroup.kill` and `populated 0` take for the same tree.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fullstop_bench::clock::now_ns;
use fullstop_bench::plan::{Contender, Plan, Role};
use fullstop_bench::results::{
    FLOOR_PROGRAM, FLOOR_REAPED, FLOORS, Failure, Results, Sample, Stop, proven,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, getpid, set_child_subreaper};

use crate::child::{Watched, reap_all};
use crate::fifo::Fifo;
use crate::proof::Proof;
use crate::{Outcome, proc};

const PATIENCE: Duration = Duration::from_secs(30);
/// Between `ready` and the stop: start-up work that goes on beside the command
/// is over by then, for everybody.
const SETTLE: Duration = Duration::from_millis(30);

/// A size of tree, and how often it is stopped.
struct Course {
    size: u32,
    young: bool,
    rounds: usize,
    rounds_quick: usize,
    /// Peers only run where they are compared.
    with_peers: bool,
}

const COURSES: [Course; 5] = [
    Course { size: 1, young: false, rounds: 60, rounds_quick: 10, with_peers: false },
    Course { size: 1, young: true, rounds: 60, rounds_quick: 10, with_peers: false },
    Course { size: 10, young: false, rounds: 60, rounds_quick: 10, with_peers: false },
    Course { size: 100, young: false, rounds: 40, rounds_quick: 7, with_peers: true },
    Course { size: 1000, young: false, rounds: 25, rounds_quick: 3, with_peers: false },
];

/// How the raw floor watches for `populated 0`. The notification can come late
/// and a spin takes a core from those who die, so each is tried.
#[derive(Clone, Copy)]
enum Watch {
    Spin,
    Nap,
    Poll,
    /// Asleep until the leader is dead, then as `Nap`.
    LeaderNap,
}

enum Way<'a> {
    Floor(Watch),
    FloorReaped,
    FloorProgram,
    Contender(&'a Contender),
}

struct Lane<'a> {
    name: &'a str,
    way: Way<'a>,
    times: Vec<u64>,
    /// Until the proof was seen, where it can be.
    proofs: Vec<u64>,
    alive_at_return: usize,
    broken: Option<String>,
}

struct Field<'a> {
    tree: &'a Path,
    floor: &'a Path,
    cgroup: Option<PathBuf>,
    proof: Option<Proof>,
    fifo: Fifo,
}

/// How long a stop took.
struct Took {
    until_return: u64,
    until_proof: Option<u64>,
    /// Of the tree, when it had returned.
    alive: usize,
}

pub fn measure(plan: &Plan, cgroup: Option<&Path>, found: &mut Results) -> Outcome<()> {
    let mut field = Field {
        tree: &plan.bits.tree,
        floor: &plan.bits.floor,
        cgroup: cgroup.map(|dir| dir.join("floor")),
        proof: cgroup.map(Proof::watch).transpose()?,
        fifo: Fifo::make(&plan.scratch.join("tree"))?,
    };
    for course in &COURSES {
        let mut lanes = lanes(plan, course, cgroup.is_some());
        let rounds = if plan.quick { course.rounds_quick } else { course.rounds };
        for round in 0..=rounds {
            let count = lanes.len();
            for turn in 0..count {
                // The first round warms up and is not counted.
                field.run(&mut lanes[(round + turn) % count], course, round > 0);
            }
        }
        for lane in lanes {
            if let Some(why) = lane.broken {
                found.failures.push(Failure {
                    contender: lane.name.to_owned(),
                    part: format!("stop {}", course.size),
                    why,
                });
            }
            for (contender, times) in
                [(lane.name.to_owned(), lane.times), (proven(lane.name), lane.proofs)]
            {
                found.stop.extend(Sample::of(times).map(|sample| Stop {
                    contender,
                    size: course.size,
                    young: course.young,
                    sample,
                    alive_at_return: lane.alive_at_return,
                }));
            }
        }
    }
    Ok(())
}

fn lanes<'a>(plan: &'a Plan, course: &Course, cgroup: bool) -> Vec<Lane<'a>> {
    let lane = |name, way| Lane {
        name,
        way,
        times: Vec::new(),
        proofs: Vec::new(),
        alive_at_return: 0,
        broken: None,
    };
    let mut lanes = Vec::new();
    if cgroup {
        let watches = [Watch::Spin, Watch::Nap, Watch::Poll, Watch::LeaderNap];
        for (name, watch) in FLOORS.into_iter().zip(watches) {
            lanes.push(lane(name, Way::Floor(watch)));
        }
        lanes.push(lane(FLOOR_REAPED, Way::FloorReaped));
        lanes.push(lane(FLOOR_PROGRAM, Way::FloorProgram));
    }
    for contender in plan.contenders.iter().filter(|c| c.takes_part()) {
        let takes_part = match contender.role {
            Role::Floor | Role::EngineCgroup | Role::EngineTree => false,
            Role::FullstopCgroup | Role::FullstopTree => true,
            Role::Tini | Role::Peer => course.with_peers,
        };
        if takes_part {
            lanes.push(lane(contender.name.as_str(), Way::Contender(contender)));
        }
    }
    lanes
}

impl Field<'_> {
    fn run(&mut self, lane: &mut Lane, course: &Course, counts: bool) {
        if lane.broken.is_some() {
            return;
        }
        let outcome = match lane.way {
            Way::Floor(watch) => self.floor(course, watch, false),
            Way::FloorReaped => self.floor(course, Watch::LeaderNap, true),
            Way::FloorProgram => self.floor_program(course),
            Way::Contender(contender) => {
                let words = [contender.prefix_at_once.clone(), self.words(course.size)].concat();
                let shows_proof = contender.role == Role::FullstopCgroup;
                self.program(course, &words, &contender.env, shows_proof)
            }
        };
        match outcome {
            Ok(took) => {
                lane.alive_at_return = lane.alive_at_return.max(took.alive);
                if counts {
                    lane.times.push(took.until_return);
                    lane.proofs.extend(took.until_proof);
                }
            }
            Err(error) => lane.broken = Some(error.to_string()),
        }
        self.clear();
    }

    fn words(&self, size: u32) -> Vec<String> {
        vec![self.tree.display().to_string(), self.fifo.path().to_owned(), size.to_string()]
    }

    fn await_ready(&mut self, course: &Course) -> Outcome<()> {
        self.fifo.read_line(PATIENCE)?;
        if !course.young {
            std::thread::sleep(SETTLE);
        }
        Ok(())
    }

    fn floor_program(&mut self, course: &Course) -> Outcome<Took> {
        let dir = self.cgroup.clone().ok_or("no cgroup")?;
        std::fs::create_dir(&dir)?;
        let dir = dir.display().to_string();
        let floor = [self.floor.display().to_string(), dir.clone()];
        let words = [floor.as_slice(), &self.words(course.size), &[dir]].concat();
        self.program(course, &words, &[], false)
    }

    /// From SIGTERM until the program in front of the tree has exited.
    fn program(
        &mut self,
        course: &Course,
        words: &[String],
        env: &[(String, String)],
        shows_proof: bool,
    ) -> Outcome<Took> {
        let run = Watched::spawn(words, env)?;
        self.await_ready(course)?;
        let proof = self.proof.as_ref().filter(|_| shows_proof);
        let _ = proof.map(Proof::seen);
        let start = now_ns();
        run.signal(Signal::TERM)?;
        let (proven, exited) = match proof {
            Some(proof) => run.proven_and_exited_within(proof, PATIENCE)?,
            None => (None, run.exited_within(PATIENCE)?),
        };
        let end = now_ns();
        let alive = proc::living_of(self.tree).len();
        if !exited {
            run.signal(Signal::KILL)?;
            return Err(format!("did not return within {} s", PATIENCE.as_secs()).into());
        }
        run.reap()?;
        let until_proof = proven.map(|at| at - start);
        Ok(Took { until_return: end - start, until_proof, alive })
    }

    fn floor(&mut self, course: &Course, watch: Watch, reap: bool) -> Outcome<Took> {
        let dir = self.cgroup.clone().ok_or("no cgroup")?;
        std::fs::create_dir(&dir)?;
        // The orphans come to us and not to process 1: who reaps them, and
        // when, is part of what is measured here.
        set_child_subreaper(Some(getpid()))?;
        let mut words = self.words(course.size);
        words.push(dir.display().to_string());
        let leader = Watched::spawn(&words, &[])?;
        self.await_ready(course)?;
        let kill = File::options().write(true).open(dir.join("cgroup.kill"))?;
        let events = File::open(dir.join("cgroup.events"))?;
        let start = now_ns();
        kill.write_at(b"1", 0)?;
        if matches!(watch, Watch::LeaderNap) {
            leader.exited_within(PATIENCE)?;
        }
        while populated(&events)? {
            watch.pause(&events)?;
        }
        if reap {
            reap_all();
        }
        let end = now_ns();
        drop(leader);
        Ok(Took { until_return: end - start, until_proof: None, alive: 0 })
    }

    /// Leaves nothing of this measurement to the next one.
    fn clear(&self) {
        loop {
            let left = proc::living_of(self.tree);
            if left.is_empty() {
                break;
            }
            left.iter().for_each(proc::kill);
        }
        reap_all();
        let _ = set_child_subreaper(None);
        if let Some(dir) = &self.cgroup {
            let _ = std::fs::remove_dir(dir);
        }
    }
}

impl Watch {
    fn pause(self, events: &File) -> Outcome<()> {
        match self {
            Self::Spin => {}
            Self::Nap | Self::LeaderNap => std::thread::sleep(Duration::from_micros(1)),
            Self::Poll => {
                let timeout = Timespec::try_from(Duration::from_millis(1))?;
                poll(&mut [PollFd::new(events, PollFlags::PRI)], Some(&timeout))?;
            }
        }
        Ok(())
    }
}

fn populated(events: &File) -> std::io::Result<bool> {
    let mut buffer = [0; 128];
    let length = events.read_at(&mut buffer, 0)?;
    Ok(!buffer[..length].split(|&byte| byte == b'\n').any(|line| line == b"populated 0"))
}
