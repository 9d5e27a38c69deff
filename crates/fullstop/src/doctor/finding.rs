//! What was found, and what follows from it.

use fullstop_core::cage::CageKind;
use serde::Serialize;
use std::fmt;

/// How a finding is to be taken.
///
/// ```
/// use fullstop::Level;
/// assert!(Level::Green < Level::Yellow && Level::Yellow < Level::Red);
/// assert_eq!(Level::Yellow.to_string(), "yellow");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// As it should be.
    Green,
    /// It works, and could be better.
    Yellow,
    /// A promise of fullstop does not hold here.
    Red,
}

/// What a finding is about.
///
/// ```
/// assert_eq!(fullstop::Area::Kernel.to_string(), "kernel");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Area {
    /// The machine, and whatever it is inside of.
    Machine,
    /// What the kernel offers.
    Kernel,
    /// What would hold a run together.
    Cage,
    /// What would not be held.
    Escape,
    /// What is on disk, and what is left over.
    State,
    /// What the user and this program may take.
    Limits,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl fmt::Display for Area {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// One thing that was looked at.
///
/// ```
/// use fullstop::{Area, Finding, Level};
/// let lost = Finding::yellow(Area::State, "lost", "one run is lost", "fullstop sweep");
/// assert_eq!((lost.level, lost.next.as_deref()), (Level::Yellow, Some("fullstop sweep")));
/// assert_eq!(Finding::green(Area::State, "lost", "none").next, None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What it is about.
    pub area: Area,
    /// What was looked at; it is stable, and stands once in its area.
    pub name: &'static str,
    /// How bad it is.
    pub level: Level,
    /// What was seen, in a sentence for people.
    pub what: String,
    /// What to do about it; there is something exactly if it is not green.
    pub next: Option<String>,
}

impl Finding {
    /// All is well.
    pub fn green(area: Area, name: &'static str, what: impl Into<String>) -> Finding {
        Finding { area, name, level: Level::Green, what: what.into(), next: None }
    }

    /// A promise is weaker here, or something is to be tidied.
    pub fn yellow(
        area: Area,
        name: &'static str,
        what: impl Into<String>,
        next: impl Into<String>,
    ) -> Finding {
        let next = Some(next.into());
        Finding { area, name, level: Level::Yellow, what: what.into(), next }
    }

    /// A promise does not hold here.
    pub fn red(
        area: Area,
        name: &'static str,
        what: impl Into<String>,
        next: impl Into<String>,
    ) -> Finding {
        Finding { level: Level::Red, ..Finding::yellow(area, name, what, next) }
    }

    /// Of this level; what to do falls away where it is green.
    pub(super) fn at(
        level: Level,
        area: Area,
        name: &'static str,
        what: impl Into<String>,
        next: impl Into<String>,
    ) -> Finding {
        match level {
            Level::Green => Finding::green(area, name, what),
            Level::Yellow => Finding::yellow(area, name, what, next),
            Level::Red => Finding::red(area, name, what, next),
        }
    }
}

/// What was found on this machine, as a whole.
///
/// ```
/// use fullstop::{Area, Doctor, Finding, Level};
/// let lost = Finding::yellow(Area::State, "lost", "one run is lost", "fullstop sweep");
/// let fine = Finding::green(Area::State, "space", "enough");
/// let doctor = Doctor::new(None, vec![fine, lost]);
/// assert_eq!(doctor.verdict, Level::Yellow);
/// assert_eq!(doctor.next.as_deref(), Some("fullstop sweep"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Doctor {
    /// The worst level of all.
    pub verdict: Level,
    /// The one thing to do next: that of the worst finding.
    pub next: Option<String>,
    /// Which cage a run would get, if any.
    pub cage: Option<CageKind>,
    /// One by one, in order of their areas.
    pub findings: Vec<Finding>,
}

impl Doctor {
    /// Judges by the worst finding.
    pub fn new(cage: Option<CageKind>, findings: Vec<Finding>) -> Doctor {
        let verdict = findings.iter().map(|finding| finding.level).max().unwrap_or(Level::Green);
        let mut worst = findings.iter().filter(|finding| finding.level == verdict);
        let next = worst.find_map(|finding| finding.next.clone());
        Doctor { verdict, next, cage, findings }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(levels: &[Level]) -> Doctor {
        let finding = |(place, level): (usize, &Level)| {
            Finding::at(*level, Area::Kernel, "x", "seen", place.to_string())
        };
        Doctor::new(None, levels.iter().enumerate().map(finding).collect())
    }

    #[test]
    fn the_worst_decides_and_the_first_of_the_worst_is_next() {
        use Level::{Green, Red, Yellow};
        for (levels, verdict, next) in [
            (&[][..], Green, None),
            (&[Green, Green], Green, None),
            (&[Green, Yellow, Yellow], Yellow, Some("1")),
            (&[Yellow, Green, Red, Red], Red, Some("2")),
        ] {
            let doctor = with(levels);
            assert_eq!((doctor.verdict, doctor.next.as_deref()), (verdict, next), "{levels:?}");
        }
    }

    #[test]
    fn stable_names() {
        let doctor = Doctor::new(
            Some(CageKind::Tree),
            vec![Finding::red(Area::Limits, "ptys", "all are taken", "close some")],
        );
        let json = serde_json::to_string(&doctor).expect("JSON");
        let expected = r#"{"verdict":"red","next":"close some","cage":"tree","findings":[{"area":"limits","name":"ptys","level":"red","what":"all are taken","next":"close some"}]}"#;
        assert_eq!(json, expected);
    }
}
