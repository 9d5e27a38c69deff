//! When a followed log is looked at.

use std::time::{Duration, Instant};

/// In a flood it is looked no more often than this, however often it is told.
const NAP: Duration = Duration::from_millis(10);
/// How soon is looked where nothing tells of changes. Kernels before 6.6 say nothing of what was
/// spliced into a file, and some file systems nothing at all.
const SOON: Duration = Duration::from_millis(250);
/// How soon is looked where changes are told, after the last of them.
const LATER: Duration = Duration::from_secs(1);
/// So often is looked soon while it is doubted that changes are told: a doubt may never be
/// settled, and a silent log is looked at seldom even so.
const IN_DOUBT: u32 = 8;
/// How often is looked in a long silence: keeper and guard may be killed without a word on the
/// disk.
const SELDOM: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub(super) struct Pace {
    looked: Option<Instant>,
    /// How long nothing was told and nothing heard, in the number of looks.
    silent: u32,
    telling: Telling,
    has_heard: bool,
}

/// Whether changes are told.
#[derive(Debug, Default, PartialEq, Eq)]
enum Telling {
    #[default]
    Works,
    /// Something was heard that nothing had told of. It may be told in a moment.
    Doubted,
    Fails,
}

impl Pace {
    pub fn looked(&mut self, is_told: bool, has_heard: bool) {
        self.telling = match (is_told, has_heard, &self.telling) {
            (true, ..) | (false, false, Telling::Works) => Telling::Works,
            (false, true, Telling::Works) | (false, false, Telling::Doubted) => Telling::Doubted,
            (false, true, _) | (false, false, Telling::Fails) => Telling::Fails,
        };
        self.silent = if is_told || has_heard { 0 } else { self.silent.saturating_add(1) };
        self.has_heard = has_heard;
        self.looked = Some(Instant::now());
    }

    pub fn is_untold(&self) -> bool {
        self.telling == Telling::Fails
    }

    /// How long to wait for a change.
    pub fn patience(&self) -> Duration {
        let every = match self.telling {
            Telling::Works => later(LATER, self.silent),
            Telling::Doubted => later(SOON, self.silent.saturating_sub(IN_DOUBT)),
            Telling::Fails => SOON,
        };
        self.left(every)
    }

    /// How long to wait even if something has changed.
    pub fn nap(&self) -> Duration {
        if self.has_heard { self.left(NAP) } else { Duration::ZERO }
    }

    fn left(&self, every: Duration) -> Duration {
        self.looked.map_or(Duration::ZERO, |at| every.saturating_sub(at.elapsed()))
    }
}

/// Doubled by each look that has heard nothing.
fn later(first: Duration, silent: u32) -> Duration {
    first.saturating_mul(1 << silent.min(10)).min(SELDOM)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(looks: &[(bool, bool)]) -> Pace {
        let mut pace = Pace::default();
        for (is_told, has_heard) in looks {
            pace.looked(*is_told, *has_heard);
        }
        pace
    }

    const TOLD: (bool, bool) = (true, true);
    const SILENT: (bool, bool) = (false, false);
    const UNTOLD: (bool, bool) = (false, true);

    #[test]
    fn a_long_silence_is_looked_at_seldom() {
        assert!(Pace::default().patience().is_zero(), "the first look waits for nothing");
        assert!(after(&[TOLD]).patience() <= LATER);
        let silence = [&[TOLD][..], &[SILENT; 20]].concat();
        assert!(after(&silence).patience() > SELDOM / 2);
        assert!(after(&[UNTOLD]).patience() <= SOON);
        let in_doubt = [&[UNTOLD][..], &[SILENT; 20]].concat();
        assert!(after(&in_doubt).patience() > SELDOM / 2);
        assert!(after(&[&silence[..], &[TOLD]].concat()).patience() <= LATER);
    }

    #[test]
    fn what_is_heard_twice_without_a_word_is_not_told() {
        assert!(!after(&[TOLD, UNTOLD]).is_untold(), "it may have come in this moment");
        assert!(!after(&[TOLD, UNTOLD, TOLD, UNTOLD]).is_untold());
        let untold = [UNTOLD, SILENT, UNTOLD, SILENT, SILENT, SILENT, SILENT];
        assert!(after(&untold).is_untold() && after(&untold).patience() <= SOON);
        assert!(!after(&[&untold[..], &[TOLD]].concat()).is_untold());
    }

    #[test]
    fn only_a_flood_is_napped_through() {
        assert!(after(&[TOLD, SILENT]).nap().is_zero());
        assert!(after(&[TOLD]).nap() > NAP / 2);
    }
}
