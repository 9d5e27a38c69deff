//! Processor time used by a tree, for the clock that tells busy from idle.

use super::descendants::{Bound, family};
use super::procfs::ticks;
use rustix::process::getpid;
use std::time::Duration;

/// What all below us have used, as far as anybody still knows: the living, the dead
/// that nobody has waited for, and whoever was waited for by one of them or by us.
pub fn used_below(bound: Bound) -> Duration {
    let own = getpid().as_raw_pid();
    let used = family(own, bound).into_iter().map(|stat| {
        let itself = if stat.pid == own { 0 } else { stat.cpu_ticks };
        itself + stat.reaped_ticks
    });
    ticks(used.sum())
}

/// A sum that never goes back, and grows whenever what it is made of does.
///
/// What was measured can fall. One who dies while the others are looked at may be
/// missed once: the next look makes up for it. But the children of somebody who
/// ignores SIGCHLD take their time with them for ever. To wait until the rest has used
/// as much again would be to call a busy tree idle.
#[derive(Debug, Default)]
pub struct Used {
    total: Duration,
    /// Part of the total that is measured no more.
    lost: Duration,
    /// What the last look measured, if that was too little.
    fallen: Option<Duration>,
}

impl Used {
    pub fn measured(&mut self, now: Duration) -> Duration {
        if self.lost + now >= self.total {
            self.fallen = None;
        } else if let Some(before) = self.fallen.replace(now) {
            self.lost = self.total.saturating_sub(before.min(now));
        }
        self.total = self.total.max(self.lost + now);
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::process::{Command, Stdio};

    fn totals(measured: &[u64]) -> Vec<u64> {
        let mut used = Used::default();
        let totals = measured.iter().map(|&seconds| used.measured(Duration::from_secs(seconds)));
        totals.map(|total| total.as_secs()).collect()
    }

    #[test]
    fn who_was_missed_once_is_not_counted_twice() {
        assert_eq!(totals(&[10, 4, 12, 13]), [10, 10, 12, 13]);
    }

    #[test]
    fn what_is_lost_for_ever_does_not_hide_the_rest() {
        assert_eq!(totals(&[10, 4, 5, 5, 6, 20]), [10, 10, 11, 11, 12, 26]);
        assert_eq!(totals(&[10, 4, 3, 4]), [10, 10, 10, 11]);
        assert_eq!(totals(&[10, 4, 4, 1, 1, 2]), [10, 10, 10, 10, 10, 11]);
    }

    /// The busy one is dead and was waited for, by a shell that lives and has done
    /// nothing itself; and at last that one is waited for by us.
    #[test]
    fn the_dead_have_used_what_they_used() {
        const LITTLE: Duration = Duration::from_millis(30);
        let before = used_below(Bound::NONE);
        let busy = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
        let script = format!("sh -c '{busy}'; echo done; read line");
        let mut shell = Command::new("sh")
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let mut done = [0; 5];
        shell.stdout.take().expect("a pipe").read_exact(&mut done).expect("an answer");
        let while_it_lives = used_below(Bound::NONE);
        assert!(while_it_lives >= before + LITTLE, "{before:?} {while_it_lives:?}");
        shell.wait().expect("an end");
        assert!(used_below(Bound::NONE) >= before + LITTLE, "{before:?}");
    }
}
