//! The detach keys: no byte is lost, the order is kept, and they detach exactly
//! where they are typed, in whatever pieces that arrives.

use fullstop_cli::detach::{Detach, Keys};
use proptest::collection::vec;
use proptest::prelude::*;

fn keys(text: &str) -> Keys {
    text.parse().unwrap_or_else(|why| panic!("{text}: {why}"))
}

#[test]
fn keys_are_written_as_docker_writes_them() {
    let table: [(&str, &[u8]); 8] = [
        ("ctrl-p,ctrl-q", &[0x10, 0x11]),
        ("CTRL-A", &[1]),
        (r"ctrl-\,ctrl-\", &[0x1c, 0x1c]),
        ("ctrl-@,ctrl-[,ctrl-],ctrl-^,ctrl-_", &[0, 0x1b, 0x1d, 0x1e, 0x1f]),
        ("a,B,~", b"aB~"),
        ("ctrl-z,x", &[0x1a, b'x']),
        ("-", b"-"),
        ("none", &[]),
    ];
    for (text, bytes) in table {
        assert_eq!(keys(text).bytes(), bytes, "{text}");
    }
    for text in ["", ",", "ctrl-", "ctrl-1", "ctrl-ab", "ctrl-é", "é", "ab", "a,", "meta-a", " "]
    {
        assert!(text.parse::<Keys>().is_err(), "{text:?}");
    }
    assert!(vec!["a"; 17].join(",").parse::<Keys>().is_err(), "no hand types that");
}

#[test]
fn a_single_key_is_held_until_the_next_one_tells() {
    let mut detach = Detach::new(&Keys::default());
    assert_eq!(detach.feed(b"a\x1c"), (b"a".to_vec(), false));
    assert!(detach.holds());
    assert_eq!(detach.feed(b"b"), (b"\x1cb".to_vec(), false));
    assert!(!detach.holds());
    assert_eq!(detach.feed(b"\x1c"), (vec![], false));
    assert_eq!(detach.release(), b"\x1c");
    assert_eq!(detach.feed(b"\x1c"), (vec![], false), "it begins anew after a release");
    assert_eq!(detach.feed(b"\x1cmore"), (vec![], true), "what is behind goes nowhere");
}

#[test]
fn a_false_start_may_hold_a_true_one() {
    let mut detach = Detach::new(&keys("a,a,b"));
    assert_eq!(detach.feed(b"aaab"), (b"a".to_vec(), true));
    let mut detach = Detach::new(&keys("a,b,a,c"));
    assert_eq!(detach.feed(b"ababac"), (b"ab".to_vec(), true));
}

#[test]
fn switched_off_everything_passes() {
    let mut detach = Detach::new(&keys("none"));
    assert_eq!(detach.feed(b"\x1c\x1c"), (b"\x1c\x1c".to_vec(), false));
    assert!(!detach.holds());
    assert!(detach.release().is_empty());
}

/// Of few letters, so that the keys are often there, or nearly.
fn letters(length: std::ops::Range<usize>) -> impl Strategy<Value = Vec<u8>> {
    vec(prop::sample::select(b"ab".to_vec()), length)
}

fn written(keys: &[u8]) -> Keys {
    let names: Vec<String> = keys.iter().map(|&byte| char::from(byte).to_string()).collect();
    self::keys(&names.join(","))
}

proptest! {
    #[test]
    fn nothing_is_lost_and_the_keys_are_found_where_they_are(
        wanted in letters(1..5),
        typed in letters(0..40),
        cuts in vec(any::<prop::sample::Index>(), 0..10),
    ) {
        let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(typed.len() + 1)).collect();
        at.extend([0, typed.len()]);
        at.sort_unstable();
        let mut detach = Detach::new(&written(&wanted));
        let (mut passed, mut left) = (Vec::new(), false);
        for pair in at.windows(2) {
            let (more, found) = detach.feed(&typed[pair[0]..pair[1]]);
            passed.extend(more);
            left = found;
            if left {
                break;
            }
        }
        let found = typed.windows(wanted.len()).position(|window| window == wanted);
        prop_assert_eq!(left, found.is_some());
        if let Some(found) = found {
            prop_assert_eq!(passed, &typed[..found]);
        } else {
            // Only what may still become the keys is held back.
            let held = detach.release();
            prop_assert!(held.len() < wanted.len() && wanted.starts_with(&held));
            prop_assert_eq!([passed, held].concat(), typed);
        }
    }

    #[test]
    fn a_release_at_any_time_loses_nothing(typed in vec((letters(0..6), any::<bool>()), 0..10)) {
        let mut detach = Detach::new(&keys("a,b,a"));
        let (mut passed, mut all) = (Vec::new(), Vec::new());
        for (piece, release) in typed {
            let (more, found) = detach.feed(&piece);
            if found {
                return Ok(());
            }
            all.extend(piece);
            passed.extend(more);
            if release {
                passed.extend(detach.release());
            }
        }
        passed.extend(detach.release());
        prop_assert_eq!(passed, all);
    }
}
