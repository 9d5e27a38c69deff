use super::*;
use crate::blocking;
use std::cell::Cell;
use std::future::{pending, poll_fn};
use std::process::{Child, Command, Stdio};
use std::task::Poll;

const LIMIT: Duration = Duration::from_millis(500);

fn wait<T>(what: impl Future<Output = T>) -> T {
    blocking::wait(async { Ok(what.await) }).expect("a runtime")
}

#[test]
fn whoever_says_nothing_is_silent() {
    let begun = std::time::Instant::now();
    let answer = wait(async { Silence::of(|| None).wait_for(LIMIT, pending::<()>()).await });
    assert_eq!(answer, None);
    assert!(begun.elapsed() >= LIMIT);
}

/// Each time we are let in, half of the limit is over; nothing of that is counted.
#[test]
fn our_own_starvation_is_nobodys_silence() {
    const LOOKS: u32 = 6;
    let looks = Cell::new(0);
    let answer = poll_fn(|_| {
        std::thread::sleep(LIMIT / 2);
        looks.set(looks.get() + 1);
        if looks.get() < LOOKS { Poll::Pending } else { Poll::Ready("an answer") }
    });
    let heard = wait(async { Silence::of(|| None).wait_for(LIMIT, answer).await });
    assert_eq!(heard, Some("an answer"));
}

#[test]
fn what_was_no_silence_is_forgotten() {
    let heard = wait(async {
        let mut silence = Silence::of(|| None);
        let half = tokio::time::sleep(LIMIT * 3 / 5);
        assert!(silence.wait_for(LIMIT, half).await.is_some());
        silence.forget();
        let half = tokio::time::sleep(LIMIT * 3 / 5);
        silence.wait_for(LIMIT, half).await
    });
    assert!(heard.is_some());
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Asleep, or on a processor without an end: both are its own time.
#[test]
fn one_who_sleeps_or_spins_hangs() {
    for script in ["read line", "while :; do :; done"] {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).stdin(Stdio::piped());
        let child = Killed(shell.spawn().expect("a child"));
        let pid = i32::try_from(child.0.id()).ok();
        let answer = wait(async { Silence::of(|| pid).wait_for(LIMIT, pending::<()>()).await });
        assert_eq!(answer, None, "{script}");
    }
}
