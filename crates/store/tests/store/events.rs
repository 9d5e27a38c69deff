//! Lines that are torn, damaged, or not there yet.

use crate::kit::{Home, begin, event, id};
use std::io::Write as _;

fn at(events: &[fullstop_protocol::Event]) -> Vec<u64> {
    events.iter().map(|event| event.at.unix_ms()).collect()
}

#[test]
fn a_torn_last_line_waits_for_its_end() {
    let home = Home::new();
    let run = begin(&home, &id(1), None);
    assert_eq!(home.events(&id(1), 0).expect("none yet"), (vec![], 0));
    run.append(&[event(&id(1), 1)]).expect("written");
    let (first, from) = home.events(&id(1), 0).expect("read");
    assert_eq!(at(&first), [1]);
    let line = serde_json::to_vec(&event(&id(1), 2)).expect("a line");
    let mut file = run.append_to("events.jsonl").expect("the file");
    for end in 1..line.len() {
        file.write_all(&line[end - 1..end]).expect("written");
        assert_eq!(home.events(&id(1), from).expect("read"), (vec![], from), "{end} bytes");
    }
    file.write_all(&line[line.len() - 1..]).expect("written");
    file.write_all(b"\n").expect("written");
    let (second, end) = home.events(&id(1), from).expect("read");
    assert_eq!(at(&second), [2]);
    assert_eq!(home.events(&id(1), end).expect("read"), (vec![], end));
}

/// An offset into the file before is none of this one, however long this one is.
#[test]
fn a_file_that_was_begun_anew_is_read_from_its_beginning() {
    let home = Home::new();
    let run = begin(&home, &id(1), None);
    run.append(&[event(&id(1), 1), event(&id(1), 2)]).expect("written");
    let (_, from) = home.events(&id(1), 0).expect("read");
    let path = run.path().join("events.jsonl");
    std::fs::remove_file(&path).expect("removed");
    assert_eq!(home.events(&id(1), from).expect("read"), (vec![], from), "there is none yet");
    // An event of another length.
    let mut at_last = vec![1000];
    run.append(&[event(&id(1), 1000)]).expect("written");
    assert_eq!(at(&home.events(&id(1), from).expect("read").0), at_last);
    run.append(&[event(&id(1), 1001), event(&id(1), 1002)]).expect("written");
    at_last.extend([1001, 1002]);
    assert_eq!(at(&home.events(&id(1), from).expect("read").0), at_last);
}

#[test]
fn a_damaged_line_hides_no_other() {
    let home = Home::new();
    let run = begin(&home, &id(1), None);
    run.append(&[event(&id(1), 1)]).expect("written");
    let mut file = run.append_to("events.jsonl").expect("the file");
    file.write_all(b"{\"at\":\n\n\xff\xfe\n[]\n{\"event\":\"from the future\"}\n")
        .expect("written");
    run.append(&[event(&id(1), 2)]).expect("written");
    assert_eq!(at(&home.events(&id(1), 0).expect("read").0), [1, 2]);
}

/// A keeper that is killed while it writes takes no event of its guard along.
#[test]
fn what_follows_a_torn_line_is_kept() {
    let home = Home::new();
    let run = begin(&home, &id(1), None);
    run.append(&[event(&id(1), 1)]).expect("written");
    let line = serde_json::to_vec(&event(&id(1), 2)).expect("a line");
    let mut file = run.append_to("events.jsonl").expect("the file");
    file.write_all(&line[..line.len() / 2]).expect("written");
    let (_, from) = home.events(&id(1), 0).expect("read");
    run.append(&[event(&id(1), 3), event(&id(1), 4)]).expect("written");
    assert_eq!(at(&home.events(&id(1), 0).expect("read").0), [1, 3, 4]);
    assert_eq!(at(&home.events(&id(1), from).expect("read").0), [3, 4]);
}
