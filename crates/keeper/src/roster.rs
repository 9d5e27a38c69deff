//! The members of a run as its subscribers are told of them: the steps that each was asked by
//! and has outlived, and who died when.

use fullstop_core::cage::Member;
use fullstop_protocol::{Census, Death, Timestamp, TrackedMember};
use std::collections::HashMap;

/// A process by its pid and start time.
type Key = (i32, u64);

/// Who lives and who died, kept while the run has a subscriber.
#[derive(Debug, Default)]
pub struct Roster {
    /// The start times and commands of the members of the last sample, by pid. A crowd is
    /// counted, and not kept.
    known: HashMap<i32, (u64, String)>,
    /// Those that have died since.
    died: Vec<Death>,
}

impl Roster {
    /// A process was reaped just now.
    pub fn reaped(&mut self, pid: i32) {
        if let Some(known) = self.known.remove(&pid) {
            self.died.push(death(pid, known, true));
        }
    }

    /// Takes a new sample. Returns those that have died since the last one: those that were not
    /// reaped here died at some time in between.
    pub fn sampled(&mut self, members: &[Member]) -> Vec<Death> {
        let named = if members.len() > Census::MOST_NAMED { &[] } else { members };
        let now = named.iter().map(|it| (it.pid, (it.start_ticks, it.command.clone()))).collect();
        let before = std::mem::replace(&mut self.known, now);
        let mut died = std::mem::take(&mut self.died);
        if named.len() < members.len() {
            return died;
        }
        let lives = |pid: &i32, start| self.known.get(pid).is_some_and(|now| now.0 == start);
        let gone = before.into_iter().filter(|(pid, (start, _))| !lives(pid, *start));
        died.extend(gone.map(|(pid, known)| death(pid, known, false)));
        died
    }
}

fn key(member: &Member) -> Key {
    (member.pid, member.start_ticks)
}

fn death(pid: i32, (start_ticks, command): (u64, String), is_exact: bool) -> Death {
    Death { pid, start_ticks, command, at: Timestamp::now(), is_exact }
}

/// Which members each step of a stop has reached, kept for every stop.
#[derive(Debug, Default)]
pub struct Reached(Vec<Step>);

#[derive(Debug)]
struct Step {
    /// Its place among all steps that were taken.
    place: usize,
    label: String,
    members: Vec<Key>,
}

impl Reached {
    /// More than this are counted, and not named.
    const MOST: usize = Census::MOST_NAMED;

    pub fn by(&mut self, place: usize, label: &str, members: Vec<Key>) {
        if (1..=Reached::MOST).contains(&members.len()) {
            self.0.push(Step { place, label: label.to_owned(), members });
        }
    }

    /// The member with the steps that it was asked by. It has outlived all of them but the one
    /// whose place is `current`.
    pub fn track(&self, member: Member, current: Option<usize>) -> TrackedMember {
        let key = key(&member);
        let steps: Vec<&Step> = self.0.iter().filter(|step| step.members.contains(&key)).collect();
        let over = steps.iter().filter(|step| current != Some(step.place));
        let outlived = over.map(|step| step.label.clone()).collect();
        let asked_by = steps.iter().map(|step| step.label.clone()).collect();
        TrackedMember { member, asked_by, outlived }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(pid: i32, start_ticks: u64) -> Member {
        let json = serde_json::json!({
            "pid": pid, "ppid": 1, "pgid": 1, "sid": 1, "uid": 0, "state": "S", "threads": 1,
            "start_ticks": start_ticks, "command": "sleep",
        });
        serde_json::from_value(json).expect("a member")
    }

    fn pids(died: &[Death]) -> Vec<(i32, bool)> {
        let mut pids: Vec<_> = died.iter().map(|death| (death.pid, death.is_exact)).collect();
        pids.sort_unstable();
        pids
    }

    #[test]
    fn a_death_is_exact_where_it_was_reaped() {
        let mut roster = Roster::default();
        assert!(roster.sampled(&[member(2, 1), member(3, 1), member(4, 1)]).is_empty());
        roster.reaped(3);
        roster.reaped(99);
        let died = roster.sampled(&[member(4, 1)]);
        assert_eq!(pids(&died), [(2, false), (3, true)]);
        assert!(roster.sampled(&[member(4, 1)]).is_empty());
    }

    #[test]
    fn a_pid_that_was_given_away_is_another_process() {
        let mut roster = Roster::default();
        roster.sampled(&[member(2, 1)]);
        assert_eq!(pids(&roster.sampled(&[member(2, 5)])), [(2, false)]);
        let mut reached = Reached::default();
        reached.by(0, "int@leader", vec![(2, 1)]);
        assert!(reached.track(member(2, 5), None).asked_by.is_empty());
    }

    #[test]
    fn the_step_that_is_being_taken_is_not_outlived_yet() {
        let mut reached = Reached::default();
        reached.by(0, "int@leader", vec![(2, 1)]);
        reached.by(1, "int@leader", vec![(2, 1)]);
        reached.by(2, "term@tree", vec![(2, 1), (3, 1)]);
        let leader = reached.track(member(2, 1), Some(1));
        assert_eq!(leader.asked_by, ["int@leader", "int@leader", "term@tree"]);
        assert_eq!(leader.outlived, ["int@leader", "term@tree"]);
        assert_eq!(reached.track(member(3, 1), Some(2)).outlived, Vec::<String>::new());
        assert_eq!(reached.track(member(3, 1), None).outlived, ["term@tree"]);
    }
}
