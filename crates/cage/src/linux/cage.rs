//! The Linux cage: a subreaper always, a cgroup where one can be had.

use super::birth::{Birth, bear};
use super::cgroup::{Cgroup, Site};
use super::cpu::{Used, used_below};
use super::descendants::{Bound, First, below, dead_children, survey};
use super::groups::own_group;
use super::kill_loop::KillLoop;
use super::latecomers::Latecomers;
use super::pinned_process::PinnedProcess;
use super::procfs::{self, Stat};
use super::scheduling::{raise_priority, raise_session};
use super::signal_batch::{SignalBatch, send};
use super::signals::Mask;
use super::wait::{Change, Waited, wait_any};
use crate::{Cage, Command, Observation, Round, SpawnError, Witness, plain};
use fullstop_core::cage::{CageKind, CagePreference, Member};
use fullstop_core::identity::Identity;
use fullstop_core::machine::Recipients;
use fullstop_core::signal::Signal;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::path::{Path, PathBuf};
use std::thread::yield_now;
use std::time::{Duration, Instant};

/// While a cgroup empties itself the tree is not walked before nobody has died for
/// this long: looking at the dying slows them down.
const WALK_EVERY: Duration = Duration::from_millis(20);
/// After this time it is walked all the same: somebody who has left the cgroup may leave
/// dead children without end.
const WALK_ANYWAY: Duration = Duration::from_millis(200);
/// How long those are looked for who are let go, or not waited for any longer.
const LONGEST_LOOK: Duration = Duration::from_secs(1);
/// What is looked at now and then keeps nobody's orders waiting longer than this.
const SHORT_LOOK: Duration = Duration::from_millis(20);

/// Where a cage is to be, known to guard and keeper before either exists apart.
#[derive(Clone, Debug)]
pub struct Blueprint {
    wanted: CagePreference,
    cgroup: Result<PathBuf, String>,
}

impl Blueprint {
    pub fn new(wanted: CagePreference, name: &OsStr) -> Blueprint {
        let cgroup = match wanted {
            CagePreference::Tree => Err("not asked for".to_owned()),
            CagePreference::Auto | CagePreference::Cgroup => {
                Site::find().map(|site| site.child(name))
            }
        };
        Blueprint { wanted, cgroup }
    }

    /// Where the cgroup will be, if there is a place for one.
    pub fn cgroup(&self) -> Option<&Path> {
        self.cgroup.as_deref().ok()
    }
}

#[derive(Debug)]
pub struct LinuxCage {
    wanted: CagePreference,
    cgroup: Option<Cgroup>,
    mask: Mask,
    birth: Option<Birth>,
    leader: Option<PinnedProcess>,
    /// The process group the leader began in.
    pgid: i32,
    /// When the cgroup was last killed, or the tree walked.
    last_kill: Option<Instant>,
    /// The kernel can kill a cgroup as a whole.
    cgroup_kills: bool,
    /// We have asked to go first, and for our session too.
    hurried: bool,
    last_death: Instant,
    last: KillLoop,
    used: Used,
    latecomers: Latecomers,
    /// The last round met nobody new, though there are still children.
    nobody_new: bool,
    /// Survivors of a tree that is not ours any more; see [`LinuxCage::follow`].
    followed: Option<Vec<PinnedProcess>>,
}

impl LinuxCage {
    /// Makes it. A forced choice that cannot be had is an error; otherwise the next
    /// best is taken.
    pub fn make(blueprint: &Blueprint, mask: Mask) -> Result<LinuxCage, String> {
        let made = match &blueprint.cgroup {
            Ok(path) => Cgroup::make(path)
                .map_err(|error| format!("cannot make {}: {}", path.display(), plain(&error))),
            Err(why) => Err(why.clone()),
        };
        let cgroup = match (made, blueprint.wanted) {
            (Ok(cgroup), _) => Some(cgroup),
            (Err(why), CagePreference::Cgroup) => {
                return Err(format!(
                    "no cgroup to be had: {why} (--cage auto takes the next best)"
                ));
            }
            (Err(_), CagePreference::Auto | CagePreference::Tree) => None,
        };
        if cgroup.is_none() && !procfs::is_usable() {
            return Err("no cage to be had: /proc does not show this pid namespace, \
                        and there is no cgroup"
                .to_owned());
        }
        Ok(Self::with(blueprint.wanted, cgroup, mask, None))
    }

    /// The cage of a keeper that died, whose tree has come to us.
    pub fn adopt(blueprint: &Blueprint, mask: Mask, leader: Option<PinnedProcess>) -> LinuxCage {
        let cgroup = blueprint.cgroup.as_ref().ok().and_then(|path| Cgroup::adopt(path));
        Self::with(blueprint.wanted, cgroup, mask, leader)
    }

    fn with(
        wanted: CagePreference,
        cgroup: Option<Cgroup>,
        mask: Mask,
        leader: Option<PinnedProcess>,
    ) -> LinuxCage {
        let pgid = own_group();
        LinuxCage {
            wanted,
            cgroup,
            mask,
            birth: None,
            leader,
            pgid,
            last_kill: None,
            cgroup_kills: true,
            hurried: false,
            last_death: Instant::now(),
            last: KillLoop::default(),
            used: Used::default(),
            latecomers: Latecomers::default(),
            nobody_new: false,
            followed: None,
        }
    }

    /// Goes on as a copy that is not their parent: a guard that must return while
    /// its tree is stuck leaves one behind. It can hold the survivors and see them
    /// die, but it cannot say ECHILD, so that its proof is the weaker one.
    ///
    /// Returns whether that is possible: everybody known to be alive must be held,
    /// or there must be a cgroup to tell.
    pub fn follow(&mut self, known: &[Member]) -> bool {
        let mut survivors = Vec::new();
        survey(First::Oldest, Bound::within(LONGEST_LOOK), |held, stat| {
            survivors.extend(held.with_pidfd().filter(|_| stat.is_alive()));
        });
        let held = |member: &Member| survivors.iter().any(|held| held.pid() == member.pid);
        let all = !known.is_empty() && known.iter().all(held);
        self.followed = Some(survivors);
        all || self.cgroup.is_some()
    }

    fn proof_by_following(&mut self, survivors: &[PinnedProcess]) -> Option<Witness> {
        let dead = survivors.iter().all(PinnedProcess::is_dead);
        match &mut self.cgroup {
            _ if !dead => None,
            None => Some(Witness::scan_clean(None)),
            Some(cgroup) => cgroup.is_emptied().then(|| Witness::cgroup_empty(None)),
        }
    }

    /// Writes down who is there, for whoever must find them without us. What is
    /// known of one already is not asked again. Returns whether anything changed.
    pub fn roll(&self, known: &mut Vec<Identity>) -> bool {
        /// So many at most are then looked up who were known before.
        const MOST: usize = 1000;
        let inodes: HashMap<(i32, u64), Option<u64>> =
            known.iter().map(|one| ((one.pid, one.start_ticks), one.inode)).collect();
        let mut now: Vec<Identity> = Vec::new();
        let all = survey(First::Youngest, Bound::within(SHORT_LOOK), |held, stat| {
            if !stat.is_alive() {
                return;
            }
            let inode = match inodes.get(&(stat.pid, stat.start_ticks)) {
                Some(inode) => *inode,
                None => held.with_pidfd().and_then(|held| held.inode()),
            };
            now.push(Identity { pid: stat.pid, start_ticks: stat.start_ticks, inode });
        });
        if !all {
            // Whoever is older was not met, but may be known.
            let met: HashSet<i32> = now.iter().map(|one| one.pid).collect();
            let unmet = known.iter().filter(|one| !met.contains(&one.pid)).take(MOST);
            let is_there = |one: &&Identity| {
                procfs::stat(one.pid).is_some_and(|stat| stat.start_ticks == one.start_ticks)
            };
            now.extend(unmet.filter(is_there));
        }
        let changed = *known != now;
        *known = now;
        changed
    }

    pub fn leader(&self) -> Option<&PinnedProcess> {
        self.leader.as_ref().or(self.birth.as_ref().map(|birth| &birth.leader))
    }

    /// What tells its cgroup, and the one above it, from others at the same place.
    pub fn cgroup_inodes(&self) -> Option<(u64, u64)> {
        self.cgroup.as_ref().and_then(Cgroup::inodes)
    }

    /// The descriptors this cage lives on.
    pub fn descriptors(&self) -> Vec<RawFd> {
        let cgroup = self.cgroup.as_ref().and_then(Cgroup::dir);
        let leader = self.leader().and_then(PinnedProcess::pidfd);
        [cgroup, leader, self.birth_news()].into_iter().flatten().map(|fd| fd.as_raw_fd()).collect()
    }

    /// Becomes readable once the leader became the command, or failed to.
    pub fn birth_news(&self) -> Option<BorrowedFd<'_>> {
        self.birth.as_ref().map(Birth::news)
    }

    /// As many as a signal to the leader alone needs to know.
    fn alive(&self, within: Duration) -> usize {
        match &self.cgroup {
            Some(cgroup) => cgroup.procs().len(),
            None => self.living(within).len(),
        }
    }

    /// All below us, and whoever else is in the cgroup.
    fn living(&self, within: Duration) -> Vec<Stat> {
        let mut living = below(rustix::process::getpid().as_raw_pid(), Bound::within(within));
        let mut seen: HashSet<i32> = living.iter().map(|stat| stat.pid).collect();
        let caged = self.cgroup.as_ref().map(Cgroup::procs).unwrap_or_default();
        let mut bound = Bound::within(within);
        let others = caged.into_iter().filter(|&pid| pid > 0 && seen.insert(pid));
        let others = others.take_while(|_| bound.allows());
        living.extend(others.filter_map(procfs::stat).filter(Stat::is_alive));
        living
    }

    /// Whoever walks over a storm has to be let in.
    fn hurry(&mut self) {
        if !std::mem::replace(&mut self.hurried, true) {
            raise_priority();
            raise_session();
        }
    }

    /// The kill loop's one round without a cgroup: parents first, each on sight.
    fn kill_tree(&mut self) -> Round {
        if !self.last.has_begun() {
            // The first walk may race already; what our session costs waits for a storm.
            raise_priority();
        }
        let round = self.last.round();
        // Counted from its end: a long one must not be followed by another at once.
        self.last_kill = Some(Instant::now());
        if self.last.is_storming() {
            self.hurry();
        }
        // PinnedProcess, and so killed, whatever /proc shows.
        let _ = self.leader().map(|leader| leader.send(Signal::KILL));
        self.nobody_new = !self.last.met_somebody_new();
        round
    }

    /// ECHILD, and where there is a cgroup it must be empty as well.
    fn proof_without_children(&mut self) -> Option<Witness> {
        /// From kernel 6.19 a task leaves its cgroup a moment after it was reaped.
        const MOMENT: Duration = Duration::from_millis(10);
        let Some(cgroup) = &mut self.cgroup else { return Some(Witness::NO_CHILDREN) };
        let until = Instant::now() + MOMENT;
        loop {
            // An empty one that cannot be removed is empty all the same.
            if cgroup.is_emptied() {
                return Some(Witness::cgroup_empty(Some(false)));
            }
            if !cgroup.procs().is_empty() || Instant::now() >= until {
                return None;
            }
            yield_now();
        }
    }

    /// Children are left, but all are dead. Whoever could be reaped is reaped now;
    /// if there are still some, somebody outside holds their remains.
    fn proof_among_the_dead(&mut self, look: &mut Observation) -> Option<Witness> {
        if !std::mem::take(&mut self.nobody_new) || look.unfinished {
            return None;
        }
        let before = dead_children()?;
        if !self.reap(look) {
            return self.proof_without_children();
        }
        // Who has died since then may only not have been reaped yet.
        if look.unfinished || dead_children()?.iter().any(|child| !before.contains(child)) {
            return None;
        }
        match &mut self.cgroup {
            None => Some(Witness::scan_clean(None)),
            Some(cgroup) => cgroup.is_emptied().then(|| Witness::cgroup_empty(Some(true))),
        }
    }

    /// Sends to every proven member that `meant` picks. All are held before the
    /// first is told, as far as there are descriptors: whoever falls at once must not take
    /// others out of sight. In a storm only those are asked who could be met in time, or
    /// it would never be killed.
    fn signal_tree(
        &mut self,
        signal: Signal,
        within: Duration,
        meant: impl Fn(&Stat) -> bool,
    ) -> Round {
        /// Whoever lives so shortly that all are dead when looked at has left its
        /// children to us meanwhile: they are there when looked at again.
        const LOOKS: usize = 8;
        let until = Instant::now() + within;
        let mut batch = SignalBatch::new(signal);
        let mut seen = HashSet::new();
        let mut met = HashSet::new();
        let mut all = true;
        for _ in 0..LOOKS {
            all = survey(First::Oldest, Bound::until(until), |held, stat| {
                met.insert(stat.pid);
                if stat.is_alive() && seen.insert(stat.pid) && meant(stat) {
                    batch.extend(held.try_clone(), stat);
                }
            });
            if !all || !seen.is_empty() {
                break;
            }
        }
        if !all {
            self.last.do_not_count();
        }
        for held in self.others_inside(&seen, Bound::until(until)) {
            if let Some(stat) = held.stat().filter(Stat::is_alive) {
                met.insert(stat.pid);
                seen.insert(stat.pid);
                batch.extend(Some(held).filter(|_| meant(&stat)), &stat);
            }
        }
        self.latecomers = Latecomers::of_a_step_that_met(met, seen.len());
        batch.send_all();
        Round { alive: seen.len(), signalled: batch.reached.len(), reached: batch.reached }
    }

    /// Members of our cgroup who do not descend from us: a process that entered
    /// another pid namespace leaves its orphans to strangers.
    fn others_inside(&self, seen: &HashSet<i32>, mut bound: Bound) -> Vec<PinnedProcess> {
        let Some(cgroup) = &self.cgroup else { return Vec::new() };
        let others = cgroup.procs().into_iter().filter(|pid| !seen.contains(pid));
        let others = others.take_while(|_| bound.allows());
        others
            .filter_map(|pid| PinnedProcess::inside(pid, |pid| cgroup.procs().contains(&pid)))
            .collect()
    }

    fn leader_pgid(&self) -> i32 {
        let now = self.leader().and_then(|leader| procfs::stat(leader.pid()));
        now.map_or(self.pgid, |stat| stat.pgid)
    }

    /// Returns whether children are left. In a storm there are always more dead, and
    /// others want to be heard as well.
    fn reap(&mut self, look: &mut Observation) -> bool {
        let leader = self.leader().map(PinnedProcess::pid);
        let mut bound = Bound::within(SHORT_LOOK);
        while bound.allows() {
            let (pid, change) = match wait_any() {
                Waited::Nobody => return false,
                Waited::NotYet | Waited::Unknown => return true,
                Waited::Changed { pid, change } => (pid, change),
            };
            if matches!(change, Change::Exited(_)) {
                self.last.reaped(pid);
                self.latecomers.reaped(pid);
                self.last_death = Instant::now();
                look.died.push(pid);
            }
            if Some(pid) != leader {
                continue;
            }
            match change {
                Change::Exited(exit) => look.exit = Some(exit),
                Change::Stopped(signal) => {
                    look.stopped = Some(signal);
                    look.continued = false;
                }
                Change::Continued => {
                    look.stopped = None;
                    look.continued = true;
                }
            }
        }
        look.unfinished = true;
        true
    }

    /// What the leader on its way has to tell.
    fn hear_birth(&mut self, look: &mut Observation) {
        let Some(birth) = self.birth.take() else { return };
        match birth.outcome() {
            None => self.birth = Some(birth),
            Some(Ok(())) => {
                look.birth = Some(Ok(()));
                self.leader = Some(birth.leader);
            }
            // It leaves on its own; its status is ours, not a command's.
            Some(Err(error)) => {
                look.exit = None;
                look.birth = Some(Err(error));
            }
        }
    }
}

impl Cage for LinuxCage {
    fn kind(&self) -> CageKind {
        if self.cgroup.is_some() { CageKind::Cgroup } else { CageKind::Tree }
    }

    fn spawn(&mut self, command: Command) -> Result<(), SpawnError> {
        let own_session = command.own_session;
        let must = self.wanted == CagePreference::Cgroup;
        let (birth, inside) = bear(command, &self.mask, self.cgroup.as_ref(), must)?;
        if own_session {
            self.pgid = birth.leader.pid();
        }
        // A cgroup that turned out to be closed to us is given up for the tree.
        if let Some(mut closed) = self.cgroup.take_if(|_| !inside) {
            closed.remove();
        }
        self.birth = Some(birth);
        Ok(())
    }

    fn signal(&mut self, signal: Signal, whom: Recipients, within: Duration) -> Round {
        let own = rustix::process::getpid().as_raw_pid();
        if whom != Recipients::Leader {
            self.hurry();
        }
        match whom {
            Recipients::Leader => {
                let alive = self.alive(within);
                let told = self.leader().filter(|leader| send(leader, signal));
                let reached: Vec<_> = told
                    .and_then(|leader| Some((leader.pid(), leader.stat()?.start_ticks)))
                    .into_iter()
                    .collect();
                Round { alive, signalled: usize::from(told.is_some()), reached }
            }
            Recipients::Children => self.signal_tree(signal, within, |stat| stat.ppid == own),
            Recipients::Group => {
                let pgid = self.leader_pgid();
                self.signal_tree(signal, within, |stat| stat.pgid == pgid)
            }
            Recipients::Tree => self.signal_tree(signal, within, |_| true),
        }
    }

    fn forward(&mut self, signal: Signal) {
        let _ = self.leader().map(|leader| leader.send(signal));
    }

    fn kill(&mut self) -> Round {
        if let Some(survivors) = &self.followed {
            let _ = self.cgroup.as_ref().map(Cgroup::kill);
            let signalled = survivors.iter().filter(|held| held.send(Signal::KILL).is_ok()).count();
            return Round { alive: survivors.len(), signalled, ..Round::default() };
        }
        let Some(cgroup) = &mut self.cgroup else { return self.kill_tree() };
        let Some(last_kill) = self.last_kill else {
            let alive = cgroup.procs().len();
            self.cgroup_kills = cgroup.kill().is_ok();
            // Where nobody is in it, whoever is left has left it.
            if !self.cgroup_kills || alive == 0 {
                return self.kill_tree();
            }
            self.last_kill = Some(Instant::now());
            return Round { alive, signalled: alive, ..Round::default() };
        };
        // Whoever has left the cgroup is still in the tree; and where the kernel
        // cannot kill a cgroup, the tree is all there is. The last who died in it may
        // only not have been reaped yet.
        let due = self.last_death.max(last_kill).elapsed() >= WALK_EVERY
            || last_kill.elapsed() >= WALK_ANYWAY;
        if due || !self.cgroup_kills || cgroup.stays_empty() {
            let _ = cgroup.kill();
            return self.kill_tree();
        }
        Round::default()
    }

    fn let_die(&mut self, within: Duration) {
        // If nobody has died since the last kill, another may be needed.
        let dying = self.cgroup_kills && self.last_kill.is_some_and(|at| at < self.last_death);
        if let Some(cgroup) = self.cgroup.as_ref().filter(|_| dying) {
            cgroup.wait_until_empty(within);
        }
    }

    fn count(&mut self, within: Duration) -> usize {
        self.living(within).len()
    }

    fn census(&mut self, within: Duration) -> Vec<Member> {
        self.living(within).iter().map(procfs::member).collect()
    }

    fn cpu_time(&mut self) -> Duration {
        let counted = self.cgroup.as_ref().and_then(Cgroup::cpu_time);
        self.used.measured(counted.unwrap_or_else(|| used_below(Bound::within(SHORT_LOOK))))
    }

    fn look(&mut self) -> Observation {
        let mut look = Observation::default();
        if let Some(survivors) = self.followed.take() {
            look.proof = self.proof_by_following(&survivors);
            self.followed = Some(survivors);
            return look;
        }
        if self.last.is_storming() {
            return look;
        }
        let children = self.reap(&mut look);
        look.storms = self.latecomers.are_a_storm();
        if self.latecomers.are_many() {
            self.last.do_not_count();
        }
        self.hear_birth(&mut look);
        if self.birth.is_some() {
            return look;
        }
        look.proof = if children {
            self.proof_among_the_dead(&mut look)
        } else {
            self.proof_without_children()
        };
        if look.exit.is_some() {
            self.leader = None;
        }
        look
    }

    fn release(&mut self) -> Vec<Member> {
        let members = self.census(LONGEST_LOOK);
        if let Some(cgroup) = &mut self.cgroup {
            cgroup.dissolve();
        }
        members
    }
}
