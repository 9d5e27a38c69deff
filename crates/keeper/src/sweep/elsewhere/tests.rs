use super::*;
use crate::sweep::{Mode, SweepFinding, sweep, sweep_one};
use fullstop_protocol::RunState;
use fullstop_store::format::{Format as _, SpecFile};
use std::path::Path;

const SPEC: &str = include_str!("../../../../store/tests/fixtures/v1/spec.json");

struct Place(Store);

impl Place {
    fn new(name: &str) -> Place {
        let name = format!("fullstop-elsewhere-{name}-{}", std::process::id());
        Place(Store::at(&std::env::temp_dir().join(name)).expect("a store"))
    }

    /// A run that is live as long as the directory is held, and lost after that.
    fn begin(&self, world: &World, state: RunState) -> (Id, RunDir) {
        let mut spec = SpecFile::parse(1, SPEC.as_bytes()).expect("a spec");
        spec.id = format!("0tewhm6{:06}", self.0.all().expect("a list").len()).parse().expect("id");
        (spec.spec.group, spec.cgroup, spec.lock) = (None, None, None);
        spec.world = world.clone();
        let run = self.0.create(&spec.id).expect("a run");
        run.write_spec(&spec).expect("a spec");
        let id = spec.id.clone();
        run.write_record(&Record { state, ..spec.first_record() }).expect("a record");
        (id, run)
    }

    fn lose(&self, world: &World) -> Id {
        self.begin(world, RunState::Running).0
    }

    fn is_there(&self, id: &Id) -> bool {
        let listed = self.0.live().expect("a list").contains(id);
        assert_eq!(listed, self.0.run_path(id).exists());
        listed
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(self.0.path());
    }
}

fn container() -> World {
    World { pid_namespace: 1, ..world::here().clone() }
}

fn other_machine() -> World {
    World {
        machine: "another".to_owned(),
        boot: "another".to_owned(),
        pid_namespace: 1,
        time_namespace: None,
    }
}

#[test]
fn a_lost_run_of_elsewhere_is_left_alone_and_forgotten_when_asked() {
    let place = Place::new("forgotten");
    for (world, whereabouts) in
        [(container(), Whereabouts::OtherNamespace), (other_machine(), Whereabouts::OtherMachine)]
    {
        let id = place.lose(&world);
        let lost = LostElsewhere::look(&place.0, &id).expect("it is elsewhere");
        assert_eq!((&lost.id, lost.whereabouts, lost.is_provable()), (&id, whereabouts, false));
        for mode in [Mode::DryRun, Mode::End] {
            let found = sweep(&place.0, mode).expect("a sweep").pop().expect("a lost run").found;
            assert!(
                matches!(found, SweepFinding::LeftAlone { elsewhere: Some(it), .. } if it == whereabouts),
                "{found:?}"
            );
        }
        assert_eq!(is_forgettable(&place.0, &id).expect("it is"), whereabouts);
        assert!(place.is_there(&id));
        assert_eq!(forget(&place.0, &id).expect("forgotten"), whereabouts);
        assert!(!place.is_there(&id));
    }
}

#[test]
fn a_damaged_record_is_judged_by_its_spec() {
    let place = Place::new("damaged");
    let id = place.lose(&container());
    std::fs::write(place.0.run_path(&id).join("record.json"), "{").expect("damaged");
    assert!(LostElsewhere::look(&place.0, &id).is_some());
    forget(&place.0, &id).expect("forgotten");
    assert!(!place.is_there(&id));
}

#[test]
fn a_live_run_is_not_forgotten_wherever_its_keeper_is() {
    let place = Place::new("live");
    for world in [world::here().clone(), container(), other_machine()] {
        let (id, run) = place.begin(&world, RunState::Running);
        assert!(matches!(forget(&place.0, &id), Err(ForgetError::Live)));
        assert!(place.is_there(&id));
        drop(run);
    }
}

#[test]
fn a_run_that_a_sweep_can_judge_is_not_forgotten() {
    let place = Place::new("judgeable");
    let before_reboot = World { boot: "another".to_owned(), ..world::here().clone() };
    for (world, whereabouts) in
        [(world::here().clone(), Whereabouts::Here), (before_reboot, Whereabouts::BeforeReboot)]
    {
        let id = place.lose(&world);
        assert!(LostElsewhere::look(&place.0, &id).is_none());
        let why = forget(&place.0, &id).expect_err("it belongs here");
        assert!(matches!(why, ForgetError::Judgeable(it) if it == whereabouts), "{why}");
        assert!(place.is_there(&id));
    }
}

#[test]
fn a_run_that_has_ended_is_put_away_and_not_forgotten() {
    let place = Place::new("over");
    let ended = RunState::Released;
    let (id, run) = place.begin(&container(), ended);
    drop(run);
    assert!(LostElsewhere::look(&place.0, &id).is_none());
    assert!(matches!(forget(&place.0, &id), Err(ForgetError::Over)));
    let found = sweep_one(&place.0, &id, Mode::End).expect("it is listed").found;
    assert!(matches!(found, SweepFinding::PutAway), "{found:?}");
    assert!(matches!(forget(&place.0, &id), Err(ForgetError::Over)));
    assert!(Path::new(&place.0.run_path(&id)).exists());
}

#[test]
fn a_record_of_another_run_is_not_acted_upon() {
    let place = Place::new("another");
    let [one, other] = [place.lose(&container()), place.lose(&container())];
    let record = |id| place.0.run_path(id).join("record.json");
    std::fs::copy(record(&one), record(&other)).expect("copied");
    assert!(LostElsewhere::look(&place.0, &other).is_none());
    assert!(matches!(forget(&place.0, &other), Err(ForgetError::Judgeable(_))));
}
