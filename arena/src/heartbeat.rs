//! The heartbeat: a thread beside the tests that wakes a hundred times a second,
//! and writes down when it was late. Where a few busy processes keep everybody
//! else from running, it is late too, and then a time that was missed meanwhile
//! says nothing about fullstop.

use std::collections::VecDeque;
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::Timespec;
use rustix::thread::{ClockId, clock_nanosleep_absolute, gettid};

use crate::bound::monotonic;
use crate::{Context, Missed, Outcome, ensure, millis};

/// Well below a tenth of the shortest bound that is asserted.
const PERIOD: Duration = millis(10);

/// A beat that is less late is not written down.
const NOTED: Duration = millis(5);

/// A beat that is noted takes at least the two above, so that this is the memory
/// of a quarter of an hour at the worst.
const KEPT: usize = 60_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Priority {
    Ordinary,
    /// Above every ordinary process, so that no crowd of them can delay it.
    RealTime,
}

/// Both heartbeats of a test run.
pub(crate) struct Heartbeats {
    ordinary: Heartbeat,
    /// Why there is none, where that is so.
    real_time: Outcome<Heartbeat>,
}

impl Heartbeats {
    pub(crate) fn start() -> Outcome<Self> {
        let ordinary = Heartbeat::start(Priority::Ordinary)?;
        Ok(Self { ordinary, real_time: Heartbeat::start(Priority::RealTime) })
    }

    /// The longest time for which nobody of ordinary priority ran while this
    /// bound was missed. For a crowd of our own only real-time priority counts.
    pub(crate) fn lateness(&self, missed: Missed, crowd: bool) -> Duration {
        match (&self.real_time, crowd) {
            (_, false) => self.ordinary.lateness(missed),
            (Ok(real_time), true) => real_time.lateness(missed),
            // Without it, no verdict about a crowd is void.
            (Err(_), true) => Duration::ZERO,
        }
    }

    /// How late both have ever been, in a sentence.
    pub(crate) fn sum_up(&self) -> String {
        let ordinary = self.ordinary.beats().worst;
        let real_time = match &self.real_time {
            Ok(heart) => format!("at real-time priority by {:.1?}", heart.beats().worst),
            Err(failure) => format!("there is none at real-time priority: {}", failure.text),
        };
        format!("the heartbeat was late by {ordinary:.1?} at most; {real_time}")
    }
}

struct Heartbeat(Arc<Mutex<Beats>>);

impl Heartbeat {
    fn start(priority: Priority) -> Outcome<Self> {
        let heart = Self(Arc::new(Mutex::new(Beats::new(monotonic()))));
        let beats = Arc::clone(&heart.0);
        let (says, id): (Sender<i32>, Receiver<i32>) = channel();
        let thread = std::thread::Builder::new().name(format!("heartbeat {priority:?}"));
        thread
            .spawn(move || {
                let _ = says.send(gettid().as_raw_nonzero().get());
                beat_for_ever(&beats);
            })
            .context("cannot start a heartbeat")?;
        let id = id.recv().context("a heartbeat has ended")?;
        if priority == Priority::RealTime {
            raise(id)?;
        }
        Ok(heart)
    }

    fn lateness(&self, missed: Missed) -> Duration {
        self.beats().lateness(missed.from, missed.to, monotonic())
    }

    fn beats(&self) -> MutexGuard<'_, Beats> {
        lock(&self.0)
    }
}

fn lock(beats: &Mutex<Beats>) -> MutexGuard<'_, Beats> {
    beats.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives a thread of ours the lowest real-time priority.
fn raise(thread: i32) -> Outcome {
    let chrt = Command::new("chrt").args(["--fifo", "--pid", "1", &thread.to_string()]).output();
    let said = chrt.context("chrt")?;
    ensure!(said.status.success(), "chrt: {}", String::from_utf8_lossy(&said.stderr).trim());
    Ok(())
}

fn beat_for_ever(beats: &Mutex<Beats>) {
    loop {
        let next = lock(beats).next;
        // Interrupted, it is early, and sleeps again.
        let _ = Timespec::try_from(next)
            .map(|next| clock_nanosleep_absolute(ClockId::Monotonic, &next));
        lock(beats).beat(monotonic());
    }
}

/// When the heart beat late.
#[derive(Debug)]
struct Beats {
    /// When the next beat is due.
    next: Duration,
    /// When each late beat was due, and when it came.
    late: VecDeque<(Duration, Duration)>,
    worst: Duration,
}

impl Beats {
    fn new(now: Duration) -> Self {
        Self { next: now + PERIOD, late: VecDeque::new(), worst: Duration::ZERO }
    }

    fn beat(&mut self, now: Duration) {
        let Some(late) = now.checked_sub(self.next) else {
            return;
        };
        self.worst = self.worst.max(late);
        if late >= NOTED {
            self.late.push_back((self.next, now));
            if self.late.len() > KEPT {
                self.late.pop_front();
            }
        }
        self.next = now + PERIOD;
    }

    /// How late the latest beat was between two instants, as far as it was late
    /// there. A beat that is due and has not come by now is late already:
    /// whoever asks may have woken first.
    fn lateness(&self, from: Duration, to: Duration, now: Duration) -> Duration {
        let beats = self.late.iter().copied().chain([(self.next, now)]);
        let within = |(due, came): (Duration, Duration)| came.min(to).saturating_sub(due.max(from));
        beats.map(within).max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A heart that beat every ten milliseconds, and slept from 1,000 to 1,500.
    fn beats() -> Beats {
        let mut beats = Beats::new(millis(0));
        for due in 1..100 {
            beats.beat(millis(due * 10));
        }
        assert_eq!(beats.next, millis(1_000));
        beats.beat(millis(1_500));
        for due in 151..=200 {
            beats.beat(millis(due * 10) + Duration::from_micros(700));
        }
        beats
    }

    #[test]
    fn only_late_beats_are_kept() {
        let beats = beats();
        assert_eq!(beats.late, [(millis(1_000), millis(1_500))]);
        assert_eq!(beats.worst, millis(500));
    }

    #[test]
    fn lateness_counts_where_it_was_measured() {
        let beats = beats();
        let late = |from, to| beats.lateness(millis(from), millis(to), millis(2_000));
        assert_eq!(late(0, 2_000), millis(500));
        assert_eq!(late(900, 1_200), millis(200), "it went on afterwards");
        assert_eq!(late(1_400, 2_000), millis(100), "it had begun before");
        assert_eq!(late(0, 1_000), Duration::ZERO);
        assert_eq!(late(1_500, 2_000), Duration::ZERO);
    }

    #[test]
    fn a_beat_that_has_not_come_is_late() {
        let beats = Beats::new(millis(0));
        assert_eq!(beats.lateness(millis(0), millis(5_000), millis(3_010)), millis(3_000));
        assert_eq!(beats.lateness(millis(0), millis(1_010), millis(3_010)), millis(1_000));
        assert_eq!(beats.lateness(millis(0), millis(5_000), millis(9)), Duration::ZERO);
    }

    #[test]
    fn being_woken_early_is_no_beat() {
        let mut beats = Beats::new(millis(0));
        beats.beat(millis(3));
        assert_eq!(beats.next, PERIOD);
    }

    #[test]
    fn memory_is_bounded() {
        let mut beats = Beats::new(millis(0));
        for _ in 0..KEPT + 7 {
            beats.beat(beats.next + NOTED);
        }
        assert_eq!(beats.late.len(), KEPT);
    }

    #[test]
    fn a_crowd_is_excused_by_real_time_alone() {
        let asleep = || Heartbeat(Arc::new(Mutex::new(Beats::new(Duration::ZERO))));
        let awake = || Heartbeat(Arc::new(Mutex::new(Beats::new(Duration::MAX / 2))));
        let missed = Missed { bound: millis(10), from: millis(100), to: millis(150) };
        let late = |ordinary, real_time| {
            let both = Heartbeats { ordinary, real_time };
            (both.lateness(missed, false), both.lateness(missed, true))
        };
        assert_eq!(late(asleep(), Ok(awake())), (millis(50), Duration::ZERO));
        assert_eq!(late(awake(), Ok(asleep())), (Duration::ZERO, millis(50)));
        assert_eq!(late(asleep(), Err("none".into())), (millis(50), Duration::ZERO));
    }

    /// The real thing: this thread asks after more beats than one.
    #[test]
    fn a_heart_beats() {
        let heart = Heartbeat::start(Priority::Ordinary).unwrap();
        let first = heart.beats().next;
        let beaten = crate::await_until(crate::seconds(20), || heart.beats().next > first);
        assert!(beaten.is_so());
    }
}
