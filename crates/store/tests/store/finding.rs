//! Which run is meant by a word.

use crate::kit::{Home, begin, id, live_and_end};
use fullstop_core::id::Id;
use fullstop_store::{FindError, StoreError};

fn several(error: FindError) -> Vec<(Id, Option<String>)> {
    match error {
        FindError::Several { candidates, .. } => candidates,
        other => panic!("{other:?}"),
    }
}

fn nobody(error: &FindError) -> bool {
    matches!(error, FindError::Nobody(_))
}

/// The longest beginning that two ids share.
fn common(one: &Id, other: &Id) -> String {
    let pairs = one.as_str().chars().zip(other.as_str().chars());
    pairs.take_while(|(one, other)| one == other).map(|(letter, _)| letter).collect()
}

#[test]
fn by_id_by_its_beginning_and_by_name() {
    let home = Home::new();
    live_and_end(&home, &id(1), Some("research"));
    live_and_end(&home, &id(400), None);
    assert_eq!(home.find(id(1).as_str()).expect("found"), id(1));
    assert_eq!(home.find("research").expect("found"), id(1));
    let shared = common(&id(1), &id(400)).len();
    assert_eq!(home.find(&id(400).as_str()[..=shared]).expect("found"), id(400));
    assert!(nobody(&home.find(id(2).as_str()).expect_err("nobody")));
    assert!(nobody(&home.find("resear").expect_err("a name is whole")));
}

#[test]
fn a_beginning_of_several_names_them_all() {
    let home = Home::new();
    live_and_end(&home, &id(1), Some("one"));
    live_and_end(&home, &id(2), None);
    let word = common(&id(1), &id(2));
    let error = home.find(&word).expect_err("several");
    let said = error.to_string();
    assert!(
        said.contains(&format!("{} (one) or {}", id(1), id(2))) && !said.contains('\n'),
        "{said}"
    );
    assert_eq!(several(error), [(id(1), Some("one".to_owned())), (id(2), None)]);
}

#[test]
fn the_live_are_meant_before_those_that_are_over() {
    let home = Home::new();
    let live = begin(&home, &id(1), Some("research"));
    live_and_end(&home, &id(2), Some("research"));
    assert_eq!(home.find("research").expect("found"), id(1));
    assert_eq!(home.find(&common(&id(1), &id(2))).expect("found"), id(1));
    let other = begin(&home, &id(3), Some("research"));
    let both = several(home.find("research").expect_err("two are live"));
    assert_eq!(both.into_iter().map(|(id, _)| id).collect::<Vec<_>>(), [id(1), id(3)]);
    // A whole id is meant, whatever is live.
    assert_eq!(home.find(id(2).as_str()).expect("found"), id(2));
    drop((live, other));
}

#[test]
fn of_those_that_are_over_the_last_is_meant() {
    let home = Home::new();
    for day in [3, 1, 2] {
        live_and_end(&home, &id(day), Some("research"));
    }
    assert_eq!(home.find("research").expect("found"), id(3));
}

#[test]
fn strange_words_mean_nobody() {
    let home = Home::new();
    live_and_end(&home, &id(1), Some("one"));
    let long = "x".repeat(10_000);
    for word in ["", " ", ".", "..", "/", "../runs", "*", "\0", "ONE", "-", "é", "one\n", &long] {
        let error = home.find(word).expect_err("nobody");
        assert!(nobody(&error), "{word:?}: {error:?}");
        assert!(!error.to_string().contains('\n'));
    }
    assert!(nobody(&Home::new().find("one").expect_err("an empty store")));
}

#[test]
fn a_damaged_one_hides_no_other() {
    let home = Home::new();
    for day in 1..=3 {
        live_and_end(&home, &id(day), Some("research"));
    }
    let live = begin(&home, &id(4), Some("live"));
    let lost = begin(&home, &id(5), Some("other"));
    for file in ["spec.json", "record.json"] {
        for day in [3, 5] {
            std::fs::write(home.run_path(&id(day)).join(file), b"{\"version\":1,")
                .expect("damaged");
        }
        std::fs::remove_file(home.run_path(&id(2)).join(file)).expect("removed");
    }
    std::fs::write(home.path().join("runs/notes.txt"), b"not a run").expect("a stranger");
    std::fs::write(home.path().join("live/notes.txt"), b"not a run").expect("a stranger");
    assert_eq!(home.all().expect("all"), [id(1), id(2), id(3), id(4), id(5)]);
    assert_eq!(home.live().expect("live"), [id(4), id(5)]);
    assert_eq!(home.find("research").expect("found"), id(1));
    assert_eq!(home.find("live").expect("found"), id(4));
    assert_eq!(home.find(id(3).as_str()).expect("found"), id(3));
    drop((live, lost));
}

/// Its name stands in the spec as well.
#[test]
fn a_run_with_a_damaged_record_is_found_by_its_name() {
    let home = Home::new();
    live_and_end(&home, &id(1), Some("research"));
    live_and_end(&home, &id(2), Some("over"));
    let live = begin(&home, &id(3), Some("research"));
    for day in [2, 3] {
        std::fs::write(home.run_path(&id(day)).join("record.json"), b"{").expect("damaged");
    }
    assert_eq!(home.find("research").expect("found"), id(3));
    assert_eq!(home.find("over").expect("found"), id(2));
    let other = begin(&home, &id(4), Some("research"));
    let both = several(home.find("research").expect_err("two are live"));
    assert!(both.iter().all(|(_, name)| name.as_deref() == Some("research")), "{both:?}");
    drop((live, other));
    // And its entry goes with it.
    home.remove(&id(2)).expect("removed");
    assert!(!home.path().join("names/over").exists());
}

/// A run that is listed under the name, and cannot be asked, may be the one that is meant.
#[test]
fn what_cannot_be_read_is_not_called_missing() {
    let home = Home::new();
    let damage = |day| {
        for file in ["spec.json", "record.json"] {
            std::fs::write(home.run_path(&id(day)).join(file), b"{}\n").expect("damaged");
        }
    };
    let damaged = |word: &str, day: u64| match home.find(word) {
        Err(FindError::Store(StoreError::Damaged { path, .. })) => {
            assert!(path.starts_with(home.run_path(&id(day))), "{path:?}");
        }
        other => panic!("{other:?}"),
    };
    live_and_end(&home, &id(1), Some("over"));
    damage(1);
    damaged("over", 1);
    // Nor does one that is over take the place of one that is live.
    live_and_end(&home, &id(2), Some("research"));
    let live = begin(&home, &id(3), Some("research"));
    damage(3);
    damaged("research", 3);
    // An entry without its run is one too many, and a run that is being born has no name yet.
    live_and_end(&home, &id(4), Some("gone"));
    std::fs::remove_dir_all(home.run_path(&id(4))).expect("removed");
    assert!(nobody(&home.find("gone").expect_err("nobody")));
    let born = begin(&home, &id(5), Some("born"));
    std::fs::remove_file(born.path().join("record.json")).expect("removed");
    std::fs::write(born.path().join("spec.json"), b"{\"version\":").expect("half written");
    assert!(nobody(&home.find("born").expect_err("nobody")));
    drop((live, born));
}
