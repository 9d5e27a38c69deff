use super::*;
use fullstop_core::cage::CageKind;
use fullstop_core::words::Reason;
use fullstop_protocol::{Labels, Record, RunState, Spec, Timestamp};
use fullstop_store::format::{Format as _, SpecFile};
use fullstop_store::{RunDir, world};
use std::fs;
use std::path::PathBuf;

struct Place {
    runs: Runs,
}

impl Place {
    fn new(name: &str) -> Place {
        let name = format!("fullstop-watch-{name}-{}", std::process::id());
        Place { runs: Runs::at(&std::env::temp_dir().join(name)).expect("a store") }
    }

    fn looker(&self) -> Looker {
        Looker::new(&self.runs)
    }

    /// A run that is live for as long as this is held.
    fn begin(&self, run: u64) -> RunDir {
        self.begin_with(run, None, &[])
    }

    fn begin_with(&self, run: u64, group: Option<&str>, labels: &[(&str, &str)]) -> RunDir {
        let dir = self.runs.store().create(&id(run)).expect("a run");
        let mut all = Labels::default();
        for (key, value) in labels {
            all.insert((*key).to_owned(), (*value).to_owned()).expect("a label");
        }
        let spec = Spec {
            group: group.map(str::to_owned),
            labels: all,
            ladder: "kill".parse().expect("a ladder"),
            ..Spec::new(vec!["sleep".into(), "60".into()])
        };
        let file = SpecFile {
            version: SpecFile::VERSION,
            id: id(run),
            generation: 1,
            cgroup: None,
            ancestry: None,
            host: None,
            lock: None,
            world: world::here().clone(),
            started_at: Timestamp::now(),
            unknown: None,
            spec,
        };
        dir.write_spec(&file).expect("a spec");
        tell(&dir, RunState::Running);
        dir
    }

    fn path(&self, name: &str) -> PathBuf {
        self.runs.path().join(name)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.runs.path());
    }
}

fn id(run: u64) -> Id {
    Id::new(1_800_000_000_000, run)
}

fn over() -> RunState {
    RunState::Ended { reason: Reason::Exited.into() }
}

fn end(mut dir: RunDir) {
    tell(&dir, over());
    dir.finish().expect("finished");
}

/// Writes a record, and the notice that it stands differently, as a keeper does.
fn tell(dir: &RunDir, state: RunState) {
    let spec = dir.read_spec().expect("its spec");
    let report = state.is_over().then(|| report(&spec, &state));
    let record = Record { state, cage: CageKind::Tree.into(), report, ..spec.first_record() };
    dir.write_record(&record).expect("a record");
}

fn report(spec: &SpecFile, state: &RunState) -> fullstop_protocol::Report {
    let text = serde_json::json!({
        "version": 2, "id": spec.id, "generation": 1, "command": ["sleep"], "cage": "tree",
        "state": state.word(), "reason": "exited", "exit": {"code": 0},
        "at": Timestamp::now(), "started_at": spec.started_at, "elapsed_ms": 3,
    });
    serde_json::from_value(text).expect("a report")
}

/// What was told, in short: all of a snapshot, `missed` before what may have changed unseen.
fn look(looker: &mut Looker) -> Vec<String> {
    looker.look();
    let name =
        |run: &Status| format!("{}={}", run.id.as_str().chars().last().unwrap_or('?'), run.state);
    let told = |change: Result<Change>| match change.expect("no failure") {
        Change::Snapshot { runs, missed } => {
            let all: Vec<String> = runs.iter().map(name).collect();
            format!("{}[{}]", if missed { "missed " } else { "" }, all.join(" "))
        }
        Change::Run { run } => name(&run),
        Change::Removed { id } => format!("{}-", id.as_str().chars().last().unwrap_or('?')),
    };
    std::mem::take(&mut looker.changes).into_iter().map(told).collect()
}

#[test]
fn a_snapshot_and_then_what_changes() {
    let place = Place::new("changes");
    let one = place.begin(1);
    end(place.begin(2));
    let mut looker = place.looker();
    assert_eq!(look(&mut looker), ["[1=running]"]);
    assert_eq!(look(&mut looker), [""; 0], "nothing has happened");
    let three = place.begin(3);
    assert_eq!(look(&mut looker), ["3=running"]);
    // A notice that tells nothing new.
    tell(&three, RunState::Running);
    assert_eq!(look(&mut looker), [""; 0]);
    end(one);
    end(three);
    assert_eq!(look(&mut looker), ["1=ended", "3=ended"]);
    place.runs.store().remove(&id(3)).expect("removed");
    assert_eq!(look(&mut looker), ["3-"]);
}

#[test]
fn those_that_have_ended_are_told_of_if_they_are_wanted() {
    let place = Place::new("all");
    end(place.begin(1));
    let _two = place.begin(2);
    let mut looker = Looker { all: true, ..place.looker() };
    assert_eq!(look(&mut looker), ["[1=ended 2=running]"]);
}

#[test]
fn only_those_that_are_meant() {
    let place = Place::new("filter");
    let mut of_plan = place.looker();
    of_plan.filter.set_group("plan".to_owned());
    let mut of_app = place.looker();
    of_app.filter.add_label("app".to_owned(), "one".to_owned());
    for looker in [&mut of_plan, &mut of_app] {
        assert_eq!(look(looker), ["[]"]);
    }
    let _all = [
        place.begin_with(1, Some("plan"), &[]),
        place.begin_with(2, Some("plan/research"), &[("app", "one")]),
        place.begin_with(3, Some("planning"), &[("app", "two")]),
        place.begin_with(4, None, &[("app", "one"), ("turn", "4")]),
    ];
    assert_eq!(look(&mut of_plan), ["1=running", "2=running"]);
    assert_eq!(look(&mut of_app), ["2=running", "4=running"]);
}

/// A keeper and its guard are killed between record and notice, or without either.
#[test]
fn what_has_no_notice_is_found_by_the_next_look_at_all() {
    let place = Place::new("silent");
    let (one, two) = (place.begin(1), place.begin(2));
    let mut looker = place.looker();
    assert_eq!(look(&mut looker), ["[1=running 2=running]"]);
    let journal = fs::read(place.path("journal")).expect("the journal");
    tell(&one, RunState::Starting);
    fs::write(place.path("journal"), journal).expect("the notice is lost");
    drop(two);
    let three = place.begin(3);
    assert_eq!(look(&mut looker), ["3=running"]);
    looker.rounds.as_mut().expect("a look").make_due();
    assert_eq!(look(&mut looker), ["1=starting", "2=lost"]);
    looker.rounds.as_mut().expect("a look").make_due();
    assert_eq!(look(&mut looker), [""; 0]);
    drop(three);
}

#[test]
fn another_goes_on_where_one_was() {
    let place = Place::new("cursor");
    let (one, two) = (place.begin(1), place.begin(2));
    let mut looker = place.looker();
    assert_eq!(look(&mut looker), ["[1=running 2=running]"]);
    let cursor = looker.cursor().expect("a journal");
    end(one);
    let three = place.begin(3);
    let since = |cursor: &Cursor| Looker { since: Some(cursor.clone()), ..place.looker() };
    let mut later = since(&cursor);
    assert_eq!(look(&mut later), ["1=ended", "3=running"]);
    assert_eq!(later.cursor(), {
        look(&mut looker);
        looker.cursor()
    });
    tell(&two, RunState::Starting);
    assert_eq!(look(&mut later), ["2=starting"]);

    // What lies behind is not known any more, and it is said.
    fs::remove_file(place.path("journal")).expect("removed");
    assert_eq!(look(&mut since(&cursor)), ["missed [2=starting 3=running]"]);
    let other: Cursor = "0-1-2-3".parse().expect("a cursor");
    assert_eq!(look(&mut since(&other)), ["missed [2=starting 3=running]"]);
    drop((two, three));
}

#[test]
fn a_journal_that_is_another_means_that_all_may_have_changed() {
    let place = Place::new("another");
    let one = place.begin(1);
    let mut looker = place.looker();
    assert_eq!(look(&mut looker), ["[1=running]"]);
    fs::remove_file(place.path("journal")).expect("removed");
    tell(&one, RunState::Starting);
    assert_eq!(look(&mut looker), ["missed [1=starting]"]);
    tell(&one, RunState::Running);
    assert_eq!(look(&mut looker), ["1=running"]);
    // Torn by a crash of the machine.
    fs::write(place.path("journal"), [b'x'; 100]).expect("torn");
    assert_eq!(look(&mut looker), ["missed [1=running]"]);
}

#[test]
fn without_a_journal_every_look_is_at_all() {
    let place = Place::new("none");
    fs::create_dir(place.path("journal")).expect("no journal");
    let mut looker = place.looker();
    assert_eq!(look(&mut looker), ["[]"]);
    assert_eq!(looker.cursor(), None);
    let one = place.begin(1);
    assert_eq!(look(&mut looker), ["1=running"]);
    tell(&one, RunState::Starting);
    assert_eq!(look(&mut looker), ["1=starting"]);
    fs::remove_dir(place.path("journal")).expect("removed");
    // It is made, and from then on read.
    assert_eq!(look(&mut looker), ["missed [1=starting]"]);
    assert!(looker.cursor().is_some());
}

/// More than the journal keeps is not gone through, but looked at once.
#[test]
fn a_storm_is_one_snapshot() {
    let place = Place::new("storm");
    let one = place.begin(1);
    let mut looker = place.looker();
    assert_eq!(look(&mut looker), ["[1=running]"]);
    let record = one.read_record().expect("its record");
    for _ in 0..5_000 {
        one.notify(&record);
    }
    assert_eq!(look(&mut looker), ["missed [1=running]"]);
}
