//! Who descends from whom.

use super::held::Held;
use super::procfs::{Stat, numbered_entries, numbers, stat};
use rustix::process::getpid;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Who is whose child at this instant.
pub enum Kin {
    /// The kernel lists each task's children (CONFIG_PROC_CHILDREN).
    Listed,
    /// It does not: one scan over all of /proc.
    Scanned(HashMap<i32, Vec<i32>>),
}

impl Kin {
    pub fn now() -> Kin {
        static LISTED: OnceLock<bool> = OnceLock::new();
        if *LISTED.get_or_init(|| Path::new("/proc/thread-self/children").exists()) {
            return Kin::Listed;
        }
        let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
        for stat in numbered_entries("/proc").into_iter().filter_map(stat) {
            children.entry(stat.ppid).or_default().push(stat.pid);
        }
        Kin::Scanned(children)
    }

    pub fn children(&self, pid: i32, threads: u32) -> Vec<i32> {
        match self {
            Kin::Scanned(children) => children.get(&pid).cloned().unwrap_or_default(),
            // The kernel lists children by the thread that made them.
            Kin::Listed if threads > 1 => numbered_entries(&format!("/proc/{pid}/task"))
                .into_iter()
                .flat_map(|tid| children_of_thread(pid, tid))
                .collect(),
            Kin::Listed => children_of_thread(pid, pid),
        }
    }
}

fn children_of_thread(pid: i32, tid: i32) -> Vec<i32> {
    numbers(format!("/proc/{pid}/task/{tid}/children")).unwrap_or_default()
}

/// Shows every proven descendant of ours to `visit`, parents first, with the
/// children it has just before. Only the path to the current one is held, so that
/// a wide tree costs no descriptors. `look` says how many of its threads may have
/// children, and what else it has learned; nothing means that it is passed over.
/// Returns whether it came to the end in time.
pub fn walk<T>(
    mut in_time: impl FnMut() -> bool,
    look: impl Fn(&Held) -> Option<(u32, T)>,
    mut visit: impl FnMut(&Held, T),
) -> bool {
    let kin = Kin::now();
    let mut path: Vec<Held> = Vec::new();
    let mut ahead: Vec<(usize, i32)> = Vec::new();
    let own = kin.children(getpid().as_raw_pid(), 1);
    ahead.extend(own.into_iter().rev().map(|pid| (0, pid)));
    while let Some((depth, pid)) = ahead.pop() {
        if !in_time() {
            return false;
        }
        path.truncate(depth);
        let held = match path.last() {
            // If the parent has died since it was listed, it is our child now.
            Some(parent) => Held::child_of(parent, pid).or_else(|| Held::child(pid)),
            None => Held::child(pid),
        };
        let Some(held) = held else { continue };
        let Some((threads, learned)) = look(&held) else { continue };
        let children = kin.children(pid, threads);
        visit(&held, learned);
        ahead.extend(children.into_iter().rev().map(|child| (depth + 1, child)));
        path.push(held);
    }
    true
}

/// As [`walk`], with what /proc says of each.
pub fn survey(visit: impl FnMut(&Held, &Stat)) {
    survey_while(|| true, visit);
}

/// As [`survey`], for so long. A storm has no end: whoever cannot be met in this time
/// is passed over. Returns whether there is nobody like that.
pub fn survey_for(most: Duration, visit: impl FnMut(&Held, &Stat)) -> bool {
    /// So few are met however long it takes.
    const FEW: usize = 16;
    let until = Instant::now() + most;
    let mut tries = 0;
    let in_time = || {
        tries += 1;
        tries <= FEW || Instant::now() < until
    };
    survey_while(in_time, visit)
}

fn survey_while(in_time: impl FnMut() -> bool, mut visit: impl FnMut(&Held, &Stat)) -> bool {
    let look = |held: &Held| held.stat().map(|stat| (stat.threads, stat));
    walk(in_time, look, |held, stat| visit(held, &stat))
}

/// Our children, if there are any and every one of them is seen to be dead.
/// Whatever cannot be read is not seen.
///
/// One that dies between the list and the look hands its own children to us. It
/// does so before it reads as dead, so that they stand in the second list, where
/// nobody may be new: the dead stay listed until we reap them.
pub fn dead_children() -> Option<Vec<i32>> {
    let list = || Kin::now().children(getpid().as_raw_pid(), 1);
    let dead = |&pid: &i32| stat(pid).is_some_and(|stat| !stat.is_alive());
    let children = list();
    let only_dead = !children.is_empty()
        && children.iter().all(dead)
        && list().iter().all(|child| children.contains(child));
    only_dead.then_some(children)
}

/// The living descendants of any process, parents before their children. Not for
/// signals.
pub fn below(of: i32) -> Vec<Stat> {
    let mut found = family(of);
    found.retain(|stat| stat.pid != of && stat.is_alive());
    found
}

/// A process and all its descendants, also the dead ones that nobody has waited for
/// yet. Each was looked at before its children.
pub fn family(of: i32) -> Vec<Stat> {
    let kin = Kin::now();
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    let mut ahead = vec![of];
    while let Some(pid) = ahead.pop() {
        let Some(stat) = stat(pid).filter(|_| seen.insert(pid)) else { continue };
        ahead.extend(kin.children(pid, stat.threads));
        found.push(stat);
    }
    found
}
