//! The members of a run as its subscribers are told of them: who lives, the steps that each was
//! asked by and has outlived, and who died when. It is kept only while somebody subscribes.

use fullstop_core::cage::Member;
use fullstop_protocol::{Death, Timestamp, TrackedMember};
use std::collections::HashMap;

/// A process, as long as its pid is not given to another.
type Key = (i32, u64);

#[derive(Debug, Default)]
pub struct Roster {
    /// The members of the last sample.
    known: HashMap<Key, Member>,
    /// Those that have died since.
    died: Vec<Death>,
}

impl Roster {
    /// A process was reaped just now.
    pub fn reaped(&mut self, pid: i32) {
        let Some(key) = self.known.keys().find(|(known, _)| *known == pid).copied() else { return };
        if let Some(member) = self.known.remove(&key) {
            self.died.push(death(member, true));
        }
    }

    /// Takes a new sample. Returns those that have died since the last one: those that were not
    /// reaped here died at some time in between.
    pub fn sampled(&mut self, members: &[Member]) -> Vec<Death> {
        let now = members.iter().map(|member| (key(member), member.clone())).collect();
        let before = std::mem::replace(&mut self.known, now);
        let gone = before.into_iter().filter(|(key, _)| !self.known.contains_key(key));
        let mut died = std::mem::take(&mut self.died);
        died.extend(gone.map(|(_, member)| death(member, false)));
        died
    }
}

fn key(member: &Member) -> Key {
    (member.pid, member.start_ticks)
}

fn death(member: Member, is_exact: bool) -> Death {
    let Member { pid, start_ticks, command, .. } = member;
    Death { pid, start_ticks, command, at: Timestamp::now(), is_exact }
}

/// Which members the steps of a stop have reached.
#[derive(Debug, Default)]
pub struct Reached(Vec<(String, Vec<Key>)>);

impl Reached {
    /// More than this are counted, and not named.
    const MOST: usize = fullstop_protocol::Census::MOST_NAMED;

    pub fn by(&mut self, step: &str, reached: Vec<Key>) {
        if (1..=Reached::MOST).contains(&reached.len()) {
            self.0.push((step.to_owned(), reached));
        }
    }

    /// The member with the steps that it was asked by. It has outlived all of them but the
    /// `current` one.
    pub fn track(&self, member: Member, current: Option<&str>) -> TrackedMember {
        let key = key(&member);
        let has_reached = |(_, reached): &&(String, Vec<Key>)| reached.contains(&key);
        let steps = self.0.iter().filter(has_reached).map(|(step, _)| step.clone());
        let asked_by: Vec<String> = steps.collect();
        let is_over = |step: &&String| current != Some(step.as_str());
        let outlived = asked_by.iter().filter(is_over).cloned().collect();
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
        reached.by("int@leader", vec![(2, 1)]);
        assert!(reached.track(member(2, 5), None).asked_by.is_empty());
    }

    #[test]
    fn the_step_that_is_being_taken_is_not_outlived_yet() {
        let mut reached = Reached::default();
        reached.by("int@leader", vec![(2, 1)]);
        reached.by("term@tree", vec![(2, 1), (3, 1)]);
        let leader = reached.track(member(2, 1), Some("term@tree"));
        assert_eq!(leader.asked_by, ["int@leader", "term@tree"]);
        assert_eq!(leader.outlived, ["int@leader"]);
        assert_eq!(reached.track(member(3, 1), Some("kill")).outlived, ["term@tree"]);
    }
}
