//! Who descends from whom.

use super::pinned_process::PinnedProcess;
use super::procfs::{Stat, is_genuine, numbered_entries, numbers, stat};
use super::wait::is_child;
use rustix::process::getpid;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Who is whose child at this instant.
pub enum ProcessTree {
    /// The kernel lists each task's children (CONFIG_PROC_CHILDREN).
    Listed,
    /// It does not: one scan over all of /proc.
    Scanned(HashMap<i32, Vec<i32>>),
}

impl ProcessTree {
    /// Whether the kernel lists each task's children.
    fn is_listed() -> bool {
        static LISTED: OnceLock<bool> = OnceLock::new();
        *LISTED.get_or_init(|| Path::new("/proc/thread-self/children").exists())
    }

    /// Where our own children are told.
    fn source() -> String {
        let own = getpid().as_raw_pid();
        if ProcessTree::is_listed() { children_file(own, own) } else { "/proc".to_owned() }
    }

    pub fn now() -> ProcessTree {
        if ProcessTree::is_listed() {
            return ProcessTree::Listed;
        }
        let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
        for stat in numbered_entries("/proc").into_iter().filter_map(stat) {
            children.entry(stat.ppid).or_default().push(stat.pid);
        }
        ProcessTree::Scanned(children)
    }

    pub fn children(&self, pid: i32, threads: u32) -> Vec<i32> {
        match self {
            ProcessTree::Scanned(children) => children.get(&pid).cloned().unwrap_or_default(),
            // The kernel lists children by the thread that made them.
            ProcessTree::Listed if threads > 1 => numbered_entries(&format!("/proc/{pid}/task"))
                .into_iter()
                .flat_map(|tid| children_of_thread(pid, tid))
                .collect(),
            ProcessTree::Listed => children_of_thread(pid, pid),
        }
    }
}

fn children_of_thread(pid: i32, tid: i32) -> Vec<i32> {
    numbers(children_file(pid, tid)).unwrap_or_default()
}

fn children_file(pid: i32, tid: i32) -> String {
    format!("/proc/{pid}/task/{tid}/children")
}

/// Our own children, dead or alive.
pub fn own_children() -> Vec<i32> {
    ProcessTree::now().children(getpid().as_raw_pid(), 1)
}

/// How long looking at many may take: a storm has no end. A few are looked at however
/// long it is.
pub struct Bound {
    until: Option<Instant>,
    looks: usize,
}

impl Bound {
    const FEW: usize = 16;

    pub const NONE: Bound = Bound { until: None, looks: 0 };

    pub fn until(until: Instant) -> Bound {
        Bound { until: Some(until), looks: 0 }
    }

    pub fn within(most: Duration) -> Bound {
        Bound { until: Instant::now().checked_add(most), looks: 0 }
    }

    /// Asked before each look.
    pub fn allows(&mut self) -> bool {
        self.looks += 1;
        self.looks <= Bound::FEW || self.until.is_none_or(|until| Instant::now() < until)
    }
}

/// Who of several children comes first. If not all can be met in time, it matters.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum First {
    Oldest,
    Youngest,
}

impl First {
    /// Turns a list from old to young, so that the first is its last.
    fn at_the_end(self, mut children: Vec<i32>) -> Vec<i32> {
        if self == First::Oldest {
            children.reverse();
        }
        children
    }
}

/// Shows every proven descendant of ours to `visit`, parents first, with the
/// children it has just before. Only the path to the current one is held, so that
/// a wide tree costs no descriptors. `look` says how many of its threads may have
/// children, and what else it has learned; nothing means that it is passed over.
/// Returns whether it came to the end within the bound.
pub fn walk<T>(
    first: First,
    mut bound: Bound,
    look: impl Fn(&PinnedProcess) -> Option<(u32, T)>,
    mut visit: impl FnMut(&PinnedProcess, T),
) -> bool {
    let tree = ProcessTree::now();
    let mut path: Vec<PinnedProcess> = Vec::new();
    let mut ahead: Vec<(usize, i32)> = Vec::new();
    let own = tree.children(getpid().as_raw_pid(), 1);
    ahead.extend(first.at_the_end(own).into_iter().map(|pid| (0, pid)));
    let mut orphans = false;
    while let Some((depth, pid)) = ahead.pop() {
        if !bound.allows() {
            return false;
        }
        path.truncate(depth);
        // If the parent has died since it was listed, it is our child now, and so are
        // most likely those who were listed with it.
        let ours = || PinnedProcess::child(pid);
        let theirs = || path.last().and_then(|parent| PinnedProcess::child_of(parent, pid));
        let likely = if orphans { ours() } else { None };
        let Some(held) = likely.or_else(theirs).or_else(ours) else { continue };
        orphans = depth > 0 && held.pidfd().is_none();
        let Some((threads, learned)) = look(&held) else { continue };
        let children = tree.children(pid, threads);
        visit(&held, learned);
        ahead.extend(first.at_the_end(children).into_iter().map(|child| (depth + 1, child)));
        path.push(held);
    }
    true
}

/// As [`walk`], with what /proc says of each.
pub fn survey(first: First, bound: Bound, mut visit: impl FnMut(&PinnedProcess, &Stat)) -> bool {
    let look = |held: &PinnedProcess| held.stat().map(|stat| (stat.threads, stat));
    walk(first, bound, look, |held, stat| visit(held, &stat))
}

/// Our children, if there are any and every one of them is seen to be dead.
/// Whatever cannot be read is not seen, and neither is what somebody shows us in
/// place of /proc.
///
/// One that dies between the list and the look hands its own children to us. It
/// does so before it reads as dead, so that they stand in the second list, where
/// nobody may be new: the dead stay listed until we reap them.
pub fn dead_children() -> Option<Vec<i32>> {
    let dead = |&pid: &i32| {
        let child = || is_child(pid) && stat(pid).is_some_and(|stat| !stat.is_alive());
        // The kernel itself tells, where it can.
        child() && PinnedProcess::anybody(pid).is_none_or(|held| held.is_dead())
    };
    let children = own_children();
    let only_dead = !children.is_empty()
        && is_genuine(&ProcessTree::source())
        && children.iter().all(dead)
        && own_children().iter().all(|child| children.contains(child));
    only_dead.then_some(children)
}

/// The living descendants of any process, parents before their children. Not for
/// signals.
pub fn below(of: i32, bound: Bound) -> Vec<Stat> {
    let mut found = family(of, bound);
    found.retain(|stat| stat.pid != of && stat.is_alive());
    found
}

/// A process and all its descendants, also the dead ones that nobody has waited for
/// yet. Each was looked at before its children.
pub fn family(of: i32, bound: Bound) -> Vec<Stat> {
    stat(of).map(|stat| family_of(stat, bound)).unwrap_or_default()
}

/// The same of one that was looked at just now.
pub fn family_of(head: Stat, mut bound: Bound) -> Vec<Stat> {
    let tree = ProcessTree::now();
    let mut seen = HashSet::from([head.pid]);
    let mut ahead = tree.children(head.pid, head.threads);
    let mut found = vec![head];
    while let Some(pid) = ahead.pop().filter(|_| bound.allows()) {
        let Some(stat) = stat(pid).filter(|_| seen.insert(pid)) else { continue };
        ahead.extend(tree.children(pid, stat.threads));
        found.push(stat);
    }
    found
}
