//! A cage whose keeper and guard are gone.
//!
//! Nobody in it is a child of ours, so every member must be known again: by the
//! cgroup it is in, by what was written down of it, by its parent, or by the marker
//! in its environment together with where it stands. Whoever cannot be told from a
//! stranger is left alone.

use super::cgroup::Cgroup;
use super::descendants::ProcessTree;
use super::pinned_process::PinnedProcess;
use super::procfs::{self, Stat, numbered_entries, stat};
use crate::{Round, Witness};
use fullstop_core::cage::Member;
use fullstop_core::identity::Identity;
use fullstop_core::signal::Signal;
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// Everybody alive who carries a marker, by pid: one look at all of /proc.
#[derive(Debug, Default)]
pub struct Marked(HashMap<i32, (Stat, String)>);

impl Marked {
    pub fn scan(variable: &str) -> Marked {
        let key = format!("{variable}=");
        // Most carry none, and are not looked at any further.
        let marked = |pid| {
            let value = marker(pid, &key)?;
            Some((pid, (stat(pid).filter(Stat::is_alive)?, value)))
        };
        Marked(numbered_entries("/proc").into_iter().filter_map(marked).collect())
    }
}

fn marker(pid: i32, key: &str) -> Option<String> {
    let environ = procfs::memory(&format!("/proc/{pid}/environ")).ok()?;
    let mut variables = environ.split(|&byte| byte == 0);
    let value = variables.find_map(|variable| variable.strip_prefix(key.as_bytes()))?;
    Some(String::from_utf8_lossy(value).into_owned())
}

/// The pid that was last given in this namespace; another one means that somebody was
/// born in between.
pub fn last_born() -> Option<i32> {
    procfs::text("/proc/loadavg").ok()?.split_ascii_whitespace().last()?.parse().ok()
}

/// The cgroup of a process, as the unified hierarchy names it.
pub fn cgroup_of(pid: i32) -> Option<String> {
    let text = procfs::text(format!("/proc/{pid}/cgroup")).ok()?;
    text.lines().find_map(|line| line.strip_prefix("0::")).map(str::to_owned)
}

/// What is known of the members.
#[derive(Clone, Debug, Default)]
pub struct MemberEvidence {
    /// The name and the value of the marker; it holds the run's id among others.
    pub variable: String,
    pub id: String,
    /// The leader, and everybody when last counted.
    pub known: Vec<Identity>,
    /// The cgroup that the leader was born in, if that was not one of its own.
    pub place: Option<String>,
    /// When the leader began; nobody in the cage is older.
    pub since: Option<u64>,
    /// The guard's ancestors: whoever lost its parent is with one of them.
    pub line: Vec<Identity>,
}

#[derive(Debug)]
pub struct LostCage {
    cgroup: Option<Cgroup>,
    evidence: MemberEvidence,
}

impl LostCage {
    pub fn new(cgroup: Option<&Path>, evidence: MemberEvidence) -> LostCage {
        LostCage { cgroup: cgroup.and_then(Cgroup::adopt), evidence }
    }

    /// Those who are proven to be members, each held.
    pub fn find(&self, marked: &Marked) -> Vec<PinnedProcess> {
        let mut found: Vec<PinnedProcess> = Vec::new();
        let mut seen = HashSet::new();
        if let Some(cgroup) = &self.cgroup {
            let inside = |pid| PinnedProcess::inside(pid, |pid| cgroup.procs().contains(&pid));
            found.extend(cgroup.procs().into_iter().filter_map(inside));
        }
        let carries = |pid: i32| marked.0.get(&pid).is_some_and(|(_, value)| self.is_meant(value));
        found.extend(self.evidence.known.iter().filter_map(|known| {
            let in_place =
                |pid| self.evidence.place.is_some() && self.evidence.place == cgroup_of(pid);
            PinnedProcess::known(known, |pid| carries(pid) || in_place(pid))
        }));
        // Init takes orphans, and so does whoever has taken a known one: not every
        // ancestor of the guard, who may have started a stranger with a copied marker.
        let mut reapers = HashSet::from([1]);
        reapers.extend(found.iter().filter_map(PinnedProcess::stat).map(|stat| stat.ppid));
        found.extend(self.suspects(marked, &reapers));
        found.retain(|held| {
            held.stat().is_some_and(|stat| stat.is_alive()) && seen.insert(held.pid())
        });
        add_children(&mut found, &mut seen);
        found
    }

    fn is_meant(&self, marker: &str) -> bool {
        marker.split('/').any(|id| id == self.evidence.id)
    }

    /// By the marker, and where they stand: not older than the leader, in the cgroup
    /// it was born in, and orphaned to one of the guard's ancestors if at all. What
    /// desktop buses and `at` copy the marker to stands elsewhere.
    fn suspects(&self, marked: &Marked, reapers: &HashSet<i32>) -> Vec<PinnedProcess> {
        let Some(since) = self.evidence.since else { return Vec::new() };
        let at_place =
            |pid: i32| self.evidence.place.is_some() && self.evidence.place == cgroup_of(pid);
        let ours = |stat: &Stat, value: &str| {
            self.is_meant(value)
                && stat.start_ticks >= since
                && at_place(stat.pid)
                && self.stands_in_line(stat, marked, reapers)
        };
        let candidates = marked.0.values().filter(|(stat, value)| ours(stat, value));
        let key = format!("{}=", self.evidence.variable);
        candidates
            .filter_map(|(seen, _)| {
                let held = PinnedProcess::anybody(seen.pid)?;
                // Looked at again now that it cannot be mistaken.
                let stat = held.stat().filter(|stat| stat.start_ticks == seen.start_ticks)?;
                let value = marker(stat.pid, &key)?;
                (ours(&stat, &value) && held.stat().is_some()).then_some(held)
            })
            .collect()
    }

    fn stands_in_line(&self, stat: &Stat, marked: &Marked, reapers: &HashSet<i32>) -> bool {
        /// Deeper than any tree.
        const DEEPEST: usize = 10_000;
        let mut above = stat.ppid;
        for _ in 0..DEEPEST {
            match marked.0.get(&above) {
                Some((parent, value)) if self.is_meant(value) => above = parent.ppid,
                _ => break,
            }
        }
        let ancestor = self.evidence.line.iter().find(|identity| identity.pid == above);
        let now = procfs::stat(above);
        reapers.contains(&above)
            && matches!((ancestor, now), (Some(then), Some(now)) if then.start_ticks == now.start_ticks)
    }

    /// Kills whoever is there.
    pub fn kill(&self, members: &[PinnedProcess]) -> Round {
        let _ = self.cgroup.as_ref().map(Cgroup::kill);
        let killed = |held: &&PinnedProcess| held.send(Signal::KILL).is_ok();
        let signalled = members.iter().filter(killed).count();
        Round { alive: members.len(), signalled, ..Round::default() }
    }

    /// Why it may be said that they are gone, once a search finds nobody.
    pub fn proof(&mut self) -> Option<Witness> {
        match &mut self.cgroup {
            None => Some(Witness::scan_clean(Some(procfs::shows_all()))),
            Some(cgroup) => cgroup.is_emptied().then(|| Witness::cgroup_empty(None)),
        }
    }

    /// Whether its cgroup can be seen, and no process is in it.
    pub fn cgroup_is_empty(&self) -> bool {
        self.cgroup.as_ref().is_some_and(|cgroup| !cgroup.is_populated())
    }

    /// Removes a cgroup that is empty anyway; no process is signalled.
    pub fn remove_if_empty(&mut self) -> Option<Witness> {
        let is_emptied = self.cgroup.as_mut().is_some_and(Cgroup::is_emptied);
        is_emptied.then(|| Witness::cgroup_empty(None))
    }
}

/// Whoever was born to a member is one, whatever it made of itself.
fn add_children(found: &mut Vec<PinnedProcess>, seen: &mut HashSet<i32>) {
    let tree = ProcessTree::now();
    let mut next = 0;
    while let Some(parent) = found.get(next) {
        next += 1;
        let threads = parent.stat().map_or(1, |stat| stat.threads);
        let children = tree.children(parent.pid(), threads);
        let new: Vec<PinnedProcess> = children
            .into_iter()
            .filter(|child| !seen.contains(child))
            .filter_map(|child| PinnedProcess::child_of(parent, child))
            .filter(|held| held.stat().is_some_and(|stat| stat.is_alive()))
            .collect();
        seen.extend(new.iter().map(PinnedProcess::pid));
        found.extend(new);
    }
}

/// As a report names them.
pub fn members(held: &[PinnedProcess]) -> Vec<Member> {
    held.iter().filter_map(PinnedProcess::stat).map(|stat| procfs::member(&stat)).collect()
}
