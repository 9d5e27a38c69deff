//! How much time a process has had for itself.
//!
//! A process that does not answer may hang, or may only be waiting for a processor
//! while others have it. Its silence counts while it runs, sleeps or is stopped; what
//! it waits for a processor does not count. See proc_pid_schedstat in proc(5).

use super::clock::now;
use super::procfs::{stat, text};
use fullstop_core::words::Moment;
use std::time::Duration;

/// The time of one process, from look to look. More looks tell it better: of a process
/// that waits for a processor just now, only the time on a processor is known.
#[derive(Debug)]
pub struct OwnTime {
    pid: i32,
    looked: Moment,
    seen: Sample,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sample {
    /// On a processor, since it was born.
    ran: Duration,
    /// Waiting for one, as far as that wait is over.
    waited: Duration,
    /// How often it was let in.
    turns: u64,
    /// On a processor, or waiting for one.
    is_runnable: bool,
}

impl OwnTime {
    /// Counts from now on. A process that cannot be looked at has all the time there is.
    pub fn of(pid: i32) -> OwnTime {
        OwnTime { pid, looked: now(), seen: sample(pid) }
    }

    /// What it has had since the last look.
    pub fn look(&mut self) -> Duration {
        let before = std::mem::replace(self, OwnTime::of(self.pid));
        had(before.seen, self.seen, self.looked.since(before.looked))
    }
}

/// What a process had of the time that passed between two looks.
///
/// Of one that waits just now nobody knows for how long: only the time on a processor is
/// sure. But one that was let in often has not waited long.
fn had(before: Sample, after: Sample, passed: Duration) -> Duration {
    const OFTEN: u64 = 5;
    if after.is_runnable && after.turns.saturating_sub(before.turns) < OFTEN {
        return after.ran.saturating_sub(before.ran).min(passed);
    }
    passed.saturating_sub(after.waited.saturating_sub(before.waited))
}

fn sample(pid: i32) -> Sample {
    let is_runnable = stat(pid).is_some_and(|stat| stat.state == 'R');
    let told = text(format!("/proc/{pid}/schedstat")).unwrap_or_default();
    let numbers: Vec<u64> =
        told.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect();
    match numbers[..] {
        [ran, waited, turns, ..] => Sample {
            ran: Duration::from_nanos(ran),
            waited: Duration::from_nanos(waited),
            turns,
            is_runnable,
        },
        // A kernel without it cannot tell who is kept waiting.
        _ => Sample::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::process::{Child, Command, Stdio};

    const MS: Duration = Duration::from_millis(1);

    fn sample(ran: u32, waited: u32, is_runnable: bool) -> Sample {
        Sample { ran: MS * ran, waited: MS * waited, turns: 0, is_runnable }
    }

    #[test]
    fn waiting_for_a_processor_is_not_its_own_time() {
        let before = sample(10, 20, false);
        assert_eq!(had(before, sample(10, 20, false), MS * 100), MS * 100, "it slept");
        assert_eq!(had(before, sample(15, 80, false), MS * 100), MS * 40, "it waited for 60");
        assert_eq!(had(before, sample(10, 20, true), MS * 100), Duration::ZERO, "it waits");
        assert_eq!(had(before, sample(108, 20, true), MS * 100), MS * 98, "it spins");
        let often = Sample { turns: 50, ..sample(15, 30, true) };
        assert_eq!(had(before, often, MS * 100), MS * 90, "it naps, and was just woken");
    }

    struct Killed(Child);

    impl Drop for Killed {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    /// A sleeper has all the time there is.
    #[test]
    fn sleep_is_its_own_time() {
        let mut cat = Command::new("cat");
        cat.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut sleeper = Killed(cat.spawn().expect("a child"));
        let pid = i32::try_from(sleeper.0.id()).expect("a pid");
        // A program that starts may sleep on its way. Once it has answered, it sleeps
        // only in its next read, from which nothing wakes it.
        sleeper.0.stdin.as_mut().expect("a pipe").write_all(b"?").expect("to be heard");
        sleeper.0.stdout.as_mut().expect("a pipe").read_exact(&mut [0]).expect("an answer");
        let asleep = || stat(pid).is_some_and(|stat| stat.state == 'S');
        while !asleep() {
            std::thread::yield_now();
        }
        let mut own = OwnTime::of(pid);
        let begin = now();
        while now().since(begin) < MS * 20 {
            std::thread::yield_now();
        }
        assert!(own.look() >= MS * 20);
    }
}
