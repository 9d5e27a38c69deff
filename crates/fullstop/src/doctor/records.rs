//! What is written down: runs, and those that need somebody to look at them.

use super::finding::{Area, Finding, Level};
use crate::error::Result;
use crate::runs::Runs;
use fullstop_cage::linux::{identify, inside};
use fullstop_core::id::Id;
use fullstop_keeper::sweep::{self, LostElsewhere};
use fullstop_protocol::Record;
use fullstop_protocol::Whereabouts;
use fullstop_store::{Standing, Store, StoreError, world};
use std::collections::BTreeMap;
use std::fmt::Write as _;

pub fn findings(runs: &Runs) -> Vec<Finding> {
    read(runs).unwrap_or_else(|error| {
        let next = format!("see why: ls -l {}", runs.path().display());
        vec![Finding::red(Area::State, "runs", error.to_string(), next)]
    })
}

fn read(runs: &Runs) -> Result<Vec<Finding>> {
    let store = runs.store();
    let (all, live) = (store.all()?, store.live()?);
    let count = format!("{} written down, {} unfinished", all.len(), live.len());
    // What is over is counted, and not read: history may be long. `ps -a` shows its damage.
    let damaged: Vec<Damaged> = live.iter().filter_map(|id| Damaged::look(store, id)).collect();
    let [lost, elsewhere] = lost(store)?;
    Ok(vec![
        Finding::green(Area::State, "runs", count),
        lost,
        elsewhere,
        stuck(store, &live),
        damage(store, &damaged),
        groups(runs)?,
    ])
}

/// A few names; more would be no help to anybody.
pub fn names<'a>(ids: impl ExactSizeIterator<Item = &'a str>) -> String {
    const SHOWN: usize = 5;
    let more = ids.len().saturating_sub(SHOWN);
    let mut shown = ids.take(SHOWN).collect::<Vec<_>>().join(", ");
    if more > 0 {
        let _ = write!(shown, " and {more} more");
    }
    shown
}

/// Those whose keeper and guard are gone. Only asked about: nothing is locked, so
/// that a sweep that runs now is not kept from any.
fn lost(store: &Store) -> Result<[Finding; 2]> {
    let (mut here, mut alive, mut elsewhere) = (Vec::new(), 0, Vec::new());
    for id in sweep::lost(store)? {
        if let Some(lost) = LostElsewhere::look(store, &id).filter(|lost| !lost.is_provable()) {
            elsewhere.push(lost);
            continue;
        }
        let record = store.record(&id).ok();
        // One that tells nothing at all is among the damaged.
        if record.is_some() || store.spec(&id).is_ok() {
            alive += record.as_ref().map_or(0, |record| survivors(store, record));
            here.push(id);
        }
    }
    let what = match here.len() {
        0 => "no run is lost".to_owned(),
        1 => format!("1 run is lost, {alive} of its processes known to live: {}", here[0]),
        count => format!(
            "{count} runs are lost, {alive} of their processes known to live: {}",
            names(here.iter().map(Id::as_str))
        ),
    };
    let level = if here.is_empty() { Level::Green } else { Level::Yellow };
    let lost = Finding::at(level, Area::State, "lost", what, "fullstop sweep");
    Ok([lost, not_judged(&elsewhere)])
}

/// The lost runs that no sweep of this place can end: where they are from, and how to be rid
/// of them.
fn not_judged(lost: &[LostElsewhere]) -> Finding {
    if lost.is_empty() {
        let what = "no lost run is of another machine or pid namespace";
        return Finding::green(Area::State, "elsewhere", what);
    }
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for LostElsewhere { whereabouts, world, .. } in lost {
        let place = match whereabouts {
            Whereabouts::OtherNamespace => format!("pid namespace {}", world.pid_namespace),
            _ => format!("machine {}", world.machine),
        };
        *places.entry(place).or_default() += 1;
    }
    let places: Vec<String> =
        places.into_iter().map(|(place, count)| format!("{count} of {place}")).collect();
    let what = format!(
        "{} lost, and not to be judged from here, perhaps of containers that are gone: {}",
        lost.len(),
        names(places.iter().map(String::as_str))
    );
    Finding::yellow(Area::State, "elsewhere", what, "fullstop prune --forget")
}

/// How many of its members are known to be alive.
fn survivors(store: &Store, record: &Record) -> usize {
    if !world::is_here(&record.world) || record.state.is_over() {
        return 0;
    }
    match &record.cgroup {
        Some(cgroup) => inside(cgroup).len(),
        None => {
            let known = store.members(record).map(|known| known.identities).unwrap_or_default();
            known.iter().filter(|known| identify(known.pid).as_ref() == Some(known)).count()
        }
    }
}

fn stuck(store: &Store, live: &[Id]) -> Finding {
    let is_stuck = |id: &&Id| {
        let record = store.record(id);
        record.is_ok_and(|it| it.state.is_stuck() && world::is_here(&it.world))
    };
    let stuck: Vec<&Id> = live.iter().filter(is_stuck).collect();
    match stuck.first() {
        None => Finding::green(Area::State, "stuck", "no run is stuck"),
        Some(first) => {
            let what = format!("cannot be killed: {}", names(stuck.iter().map(|id| id.as_str())));
            let next = format!("fullstop show {first} names its survivors and what they wait for");
            Finding::yellow(Area::State, "stuck", what, next)
        }
    }
}

/// A run whose files cannot be read.
struct Damaged {
    id: Id,
    standing: Standing,
    why: StoreError,
    /// A sweep can go by the spec where the record fails it.
    has_spec: bool,
}

impl Damaged {
    fn look(store: &Store, id: &Id) -> Option<Damaged> {
        let why = store.record(id).err()?;
        let has_spec = store.spec(id).is_ok();
        let (standing, why) = match store.standing(id) {
            Ok(standing) => (standing, why),
            // A sweep says the same.
            Err(error) => (Standing::Lost, error),
        };
        let born = || standing == Standing::Live && store.is_being_born(id).unwrap_or(false);
        let passing = why.is_missing() && (store.is_gone(id).unwrap_or(false) || born());
        (!passing).then(|| Damaged { id: id.clone(), standing, why, has_spec })
    }

    fn next(&self, store: &Store) -> String {
        let (id, path) = (&self.id, store.run_path(&self.id));
        let (path, root) = (path.display(), store.path().display());
        if matches!(self.why, StoreError::Newer { .. }) {
            return format!("use the later fullstop that wrote {path}");
        }
        match self.standing {
            Standing::Over => format!("fullstop rm {id}"),
            Standing::Live => format!("fullstop stop {id}, then fullstop rm {id}"),
            Standing::Lost if self.has_spec => "fullstop sweep".to_owned(),
            Standing::Lost => format!(
                "look for what is left of it (grep -l {id} /proc/[0-9]*/environ), then \
                 rm -r {path} {root}/live/{id}"
            ),
        }
    }
}

fn damage(store: &Store, damaged: &[Damaged]) -> Finding {
    match damaged.first() {
        None => Finding::green(Area::State, "damaged", "every unfinished run can be read"),
        Some(first) => {
            let others = match damaged.len() - 1 {
                0 => String::new(),
                _ => {
                    let others = damaged[1..].iter().map(|it| it.id.as_str());
                    format!("; also damaged: {}", names(others))
                }
            };
            let what = format!("{}{others}", first.why);
            Finding::yellow(Area::State, "damaged", what, first.next(store))
        }
    }
}

/// They were closed on purpose, so there is nothing to be done about them.
fn groups(runs: &Runs) -> Result<Finding> {
    let groups = runs.files().groups()?;
    let is_closed = |group: &&crate::Group| {
        let closed = group.files().closed_by();
        matches!(closed, Ok(Some(closed)) if closed == group.name())
    };
    let closed: Vec<&str> = groups.iter().filter(is_closed).map(crate::Group::name).collect();
    let what = match closed.first() {
        None => "no group is closed".to_owned(),
        Some(first) => format!(
            "closed, nothing can start in it: {} (fullstop group open {first})",
            names(closed.iter().copied())
        ),
    };
    Ok(Finding::green(Area::State, "groups", what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_is_cut() {
        assert_eq!(names(["a", "b"].into_iter()), "a, b");
        assert_eq!(
            names(["a", "b", "c", "d", "e", "f", "g"].into_iter()),
            "a, b, c, d, e and 2 more"
        );
    }

    #[test]
    fn damage_is_named_and_its_cure_fits() {
        let dir = std::env::temp_dir().join(format!("fullstop-records-{}", std::process::id()));
        let store = Store::at(&dir).expect("a store");
        let id = |chance| Id::new(1_800_000_000_000, chance);
        let (over, lost, listed, gone) = (id(1), id(2), id(3), id(4));
        for id in [&over, &lost, &listed] {
            drop(store.create(id).expect("a run"));
            std::fs::write(store.run_path(id).join("record.json"), "{").expect("written");
        }
        std::fs::remove_file(dir.join(format!("live/{over}"))).expect("unlisted");
        std::fs::remove_dir_all(store.run_path(&listed)).expect("removed");
        let look = |id| Damaged::look(&store, id);
        let cure = |id| look(id).map(|damaged| damaged.next(&store));
        let (at_over, at_lost, at_listed) = (cure(&over), cure(&lost), cure(&listed));
        let at_gone = cure(&gone);
        let named = damage(&store, &[look(&over).expect("damaged")]);
        std::fs::remove_dir_all(&dir).expect("removed");
        assert_eq!(at_over, Some(format!("fullstop rm {over}")));
        assert!(at_lost.is_some_and(|next| next.contains(&format!("live/{lost}"))));
        // What is listed may have processes, whatever became of its directory.
        assert!(at_listed.is_some_and(|next| next.contains(&format!("live/{listed}"))));
        assert_eq!(at_gone, None);
        assert!(named.what.contains(over.as_str()), "{named:?}");
    }
}
