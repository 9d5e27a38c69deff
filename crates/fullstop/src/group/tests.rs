use super::*;
use std::fs;

/// A member whose stop fails, for whatever reason, is not proven to be dead.
#[test]
fn a_stop_that_fails_proves_nothing() {
    let path = std::env::temp_dir().join(format!("fullstop-group-{}", std::process::id()));
    let runs = Runs::at(&path).expect("a directory");
    let id: Id = "0tewhm6000001".parse().expect("an id");
    for dir in [format!("runs/{id}"), "live".to_owned(), "groups/plan/.members".to_owned()] {
        fs::create_dir_all(path.join(dir)).expect("a directory");
    }
    for file in [format!("live/{id}"), format!("groups/plan/.members/{id}")] {
        fs::write(path.join(file), "").expect("a file");
    }
    for file in ["record.json", "spec.json"] {
        fs::write(path.join(format!("runs/{id}/{file}")), "{").expect("a file");
    }
    let group = runs.group("plan").expect("a name");
    for report in [crate::blocking::wait(group.stop()), crate::blocking::wait(group.close())] {
        let report = report.expect("a report");
        assert_eq!(report.may_live_on, std::slice::from_ref(&id), "{report:?}");
        assert!(report.errors.len() == 1 && !report.is_proven(), "{report:?}");
    }
    fs::remove_dir_all(&path).expect("removed");
}
