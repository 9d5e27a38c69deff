//! From one generation to the next: a kill at any instant leaves a record and its own spec.

use crate::kit::{Home, begin, id, live_and_end, names, record, spec};
use fullstop_core::words::Reason;
use fullstop_protocol::{Record, RunState};
use fullstop_store::format::SpecFile;
use fullstop_store::{RunDir, Standing};
use std::fs;

const OLD: [&str; 2] = ["spec.json.old", "record.json.old"];

fn second() -> SpecFile {
    SpecFile { generation: 2, lock: Some(4712), ..spec(&id(1), None) }
}

/// A run whose second generation has just been written down.
fn restarted() -> (Home, RunDir) {
    let home = Home::new();
    live_and_end(&home, &id(1), None);
    let run = home.reclaim(&id(1)).expect("claimed");
    run.write_spec(&second()).expect("written");
    (home, run)
}

fn generations(home: &Home) -> (u32, u32) {
    let (record, spec) = (home.record(&id(1)).expect("a record"), home.spec(&id(1)));
    (record.generation, spec.expect("a spec").generation)
}

/// What a sweep does with one that is over: it takes it over, and puts it away.
fn sweep(home: &Home) {
    let mut run = home.take_over(&id(1)).expect("asked").expect("lost");
    run.finish().expect("finished");
}

fn expect_tidy(home: &Home) {
    let left = names(home, &format!("runs/{}", id(1)));
    assert_eq!(left, ["record.json", "spec.json"]);
}

/// The states in which a kill can leave the directory, from the last to the first.
#[test]
fn a_kill_at_any_instant_leaves_a_pair_that_fits() {
    type Cut = fn(&Home);
    fn put_back(home: &Home, name: &str) {
        let dir = home.run_path(&id(1));
        fs::copy(dir.join(format!("{name}.old")), dir.join(name)).expect("put back");
    }
    let cuts: [(&str, u32, Cut); 5] = [
        ("after the record", 2, |_| ()),
        ("before the record", 1, |home| put_back(home, "record.json")),
        ("before the spec", 1, |home| {
            put_back(home, "record.json");
            put_back(home, "spec.json");
        }),
        ("before the record is kept", 1, |home| {
            put_back(home, "record.json");
            put_back(home, "spec.json");
            fs::remove_file(home.run_path(&id(1)).join(OLD[1])).expect("removed");
        }),
        ("in the middle of an undoing", 1, |home| {
            let dir = home.run_path(&id(1));
            fs::rename(dir.join(OLD[1]), dir.join("record.json")).expect("renamed");
        }),
    ];
    for (when, generation, cut) in cuts {
        let (home, run) = restarted();
        drop(run);
        cut(&home);
        assert_eq!(home.standing(&id(1)).expect("asked"), Standing::Lost, "{when}");
        assert_eq!(generations(&home), (generation, generation), "{when}");
        sweep(&home);
        assert_eq!(generations(&home), (generation, generation), "{when}");
        expect_tidy(&home);
    }
}

#[test]
fn one_that_runs_forgets_the_generation_before() {
    let (home, mut run) = restarted();
    assert!(OLD.iter().all(|name| run.path().join(name).exists()));
    let first = second().first_record();
    run.write_record(&first).expect("written");
    assert!(OLD.iter().all(|name| run.path().join(name).exists()), "nobody is born yet");
    run.write_record(&Record { state: RunState::Running, ..first }).expect("written");
    assert!(!OLD.iter().any(|name| run.path().join(name).exists()));
    run.finish().expect("finished");
    assert_eq!(generations(&home), (2, 2));
    expect_tidy(&home);
}

/// Its birth may fail after its record was written.
#[test]
fn one_that_is_not_born_is_undone() {
    let (home, run) = restarted();
    run.write_record(&second().first_record()).expect("written");
    run.abandon();
    assert_eq!(generations(&home), (1, 1));
    let over = RunState::Ended { reason: Reason::Exited.into() };
    assert_eq!(home.record(&id(1)).expect("a record"), record(&id(1), over));
    expect_tidy(&home);
}

/// An older fullstop writes the spec of the next generation, and the record later.
#[test]
fn a_generation_that_an_older_fullstop_began_is_seen() {
    let old = |state| Record { lock: None, ..record(&id(1), state) };
    let home = Home::new();
    let mut run = begin(&home, &id(1), None);
    run.write_record(&old(RunState::Ended { reason: Reason::Exited.into() })).expect("written");
    run.finish().expect("finished");
    drop(run);
    let run = home.reclaim(&id(1)).expect("claimed");
    let text = serde_json::to_vec(&second()).expect("json");
    fs::write(run.path().join("spec.json"), text).expect("written");
    assert_eq!(home.record(&id(1)).expect("read"), second().first_record());
    // A sweep would take it for one that is over, whoever wrote its last record.
    run.write_record(&record(&id(1), RunState::Ended { reason: Reason::Exited.into() }))
        .expect("written");
    drop(run);
    let lost = home.take_over(&id(1)).expect("asked").expect("lost");
    assert_eq!(lost.read_record().expect("read"), second().first_record());
}

/// What `ps`, `find`, `stop` and `sweep` ask for stands in the record.
#[test]
fn a_record_is_read_without_its_spec() {
    let home = Home::new();
    let run = begin(&home, &id(1), Some("research"));
    fs::remove_file(run.path().join("spec.json")).expect("removed");
    let record = home.record(&id(1)).expect("read");
    assert_eq!(record.name.as_deref(), Some("research"));
    assert_eq!(record.lock, Some(4711));
    let first = second().first_record();
    assert_eq!((first.lock, first.generation), (Some(4712), 2));
}

/// A file that is there and cannot be read, as on a disk that fails for a moment.
fn make_unreadable(home: &Home, name: &str) {
    let path = home.run_path(&id(1)).join(name);
    fs::rename(&path, path.with_extension("aside")).expect("put aside");
    std::os::unix::fs::symlink("elsewhere", path).expect("a link, which is not followed");
}

fn make_readable(home: &Home, name: &str) {
    let path = home.run_path(&id(1)).join(name);
    fs::rename(path.with_extension("aside"), path).expect("put back");
}

/// Which of two specs is the record's own is not guessed.
#[test]
fn both_pairs_stay_while_one_of_their_files_cannot_be_read() {
    for name in [OLD[0], "record.json"] {
        let (home, run) = restarted();
        drop(run);
        let dir = home.run_path(&id(1));
        // Killed before the record was replaced: the spec that was kept is the one that counts.
        fs::copy(dir.join(OLD[1]), dir.join("record.json")).expect("put back");
        make_unreadable(&home, name);
        assert!(home.spec(&id(1)).is_err(), "{name}: it may be the other");
        sweep(&home);
        make_readable(&home, name);
        assert_eq!(generations(&home), (1, 1), "{name}");
    }
}

/// Of a run that has no record yet, the spec is what was looked for.
#[test]
fn a_spec_that_cannot_be_read_is_named() {
    let home = Home::new();
    let run = home.create(&id(1)).expect("a run directory");
    fs::write(run.path().join("spec.json"), "{").expect("written");
    let error = home.record(&id(1)).expect_err("damaged");
    assert!(error.to_string().contains("spec.json is damaged"), "{error}");
    fs::remove_file(run.path().join("spec.json")).expect("removed");
    let error = home.record(&id(1)).expect_err("missing");
    assert!(error.is_missing() && error.to_string().contains("record.json"), "{error}");
}

/// An older fullstop may have begun the generation that an unreadable spec tells of.
#[test]
fn a_run_is_not_over_for_sure_while_its_spec_cannot_be_read() {
    let home = Home::new();
    let run = begin(&home, &id(1), None);
    run.write_record(&record(&id(1), RunState::Ended { reason: Reason::Exited.into() }))
        .expect("written");
    run.read_record().expect("over");
    make_unreadable(&home, "spec.json");
    let error = run.read_record().expect_err("it may have begun again");
    assert!(error.to_string().contains("spec.json"), "{error}");
    fs::remove_file(run.path().join("spec.json")).expect("removed");
    run.read_record().expect("there is no spec that could tell of another");
}
