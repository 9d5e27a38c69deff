//! What may be a name: whatever is said, nothing leaves the directory.

use crate::kit::{Home, begin, id};
use fullstop_core::id::Id;
use fullstop_store::GroupName;
use proptest::prelude::*;
use std::path::{Component, Path};

/// Stays below whatever it is joined to.
fn stays(text: &str) -> bool {
    let plain = |part| matches!(part, Component::Normal(_));
    !text.contains('\0') && !text.is_empty() && Path::new(text).components().all(plain)
}

/// Anything, and what comes close to a name.
fn words() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[0-9a-zA-Z]{12,14}",
        "[a-zé./ \\x00-]{0,12}",
        "(\\.{0,3}[a-c]{0,2}/){0,4}\\.{0,3}",
        "([a-z]{0,3}/){30,34}[a-z]",
    ]
}

proptest! {
    #[test]
    fn an_id_stays_in_the_directory(text in words()) {
        if let Ok(id) = text.parse::<Id>() {
            prop_assert!(stays(id.as_str()) && !id.as_str().contains('/'));
            prop_assert_eq!(id.as_str(), &text);
        }
    }

    #[test]
    fn every_new_id_parses(ms: u64, chance: u64) {
        let id = Id::new(ms, chance);
        prop_assert_eq!(id.as_str().parse::<Id>().ok(), Some(id));
    }

    #[test]
    fn a_group_stays_in_the_directory(text in words()) {
        match text.parse::<GroupName>() {
            Ok(group) => {
                prop_assert!(stays(group.as_str()));
                prop_assert_eq!(group.as_str(), &text);
                // Nothing that a group could be mistaken for is hidden.
                prop_assert!(text.split('/').all(|part| !part.starts_with('.')));
                prop_assert!(group.line().all(|name| group.as_str().starts_with(name)));
                prop_assert_eq!(group.line().last(), Some(group.as_str()));
            }
            Err(error) => prop_assert!(!error.to_string().contains('\n')),
        }
    }
}

#[test]
fn the_deepest_group_works_and_one_deeper_is_none() {
    let home = Home::new();
    let mut run = begin(&home, &id(1), None);
    let deepest: GroupName = ["x".repeat(100).as_str(); 32].join("/").parse().expect("a name");
    run.join(&deepest).expect("joined");
    let outermost: GroupName = "x".repeat(100).parse().expect("a name");
    assert_eq!(outermost.members(home.root()).expect("listed"), [id(1)]);
    assert!(format!("{deepest}/x").parse::<GroupName>().is_err());
    assert!("x".repeat(101).parse::<GroupName>().is_err());
}
