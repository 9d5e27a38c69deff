//! The journal: what is appended is read, and what cannot be read is said to be missed.

use crate::kit::{Home, begin, event, id, live_and_end, record};
use fullstop_core::words::Reason;
use fullstop_protocol::RunState;
use fullstop_store::{Cursor, JournalReader, News, Notice};
use proptest::prelude::*;
use rustix::fs::{CWD, FileType, Mode};
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

const LENGTH: u64 = 256;

fn told(reader: &mut JournalReader) -> Vec<(u64, String)> {
    let News { notices, missed } = reader.read().expect("read");
    assert!(!missed);
    let days = |notice: &Notice| (1..9).find(|&day| id(day) == notice.id).expect("a run of ours");
    notices.iter().map(|notice| (days(notice), notice.state.clone())).collect()
}

fn journal(home: &Home) -> File {
    OpenOptions::new().append(true).open(home.path().join("journal")).expect("the journal")
}

#[test]
fn every_change_of_a_state_is_told_once() {
    let home = Home::new();
    let mut reader = home.journal().expect("a journal");
    let run = begin(&home, &id(1), None);
    run.write_record(&record(&id(1), RunState::Running)).expect("the same state");
    let stopping = |step: &str| RunState::Stopping {
        reason: Reason::Stopped.into(),
        step: step.to_owned(),
        left: Duration::from_secs(3),
        alive: Some(1),
    };
    run.write_record(&record(&id(1), stopping("term@leader"))).expect("a step");
    run.write_record(&record(&id(1), stopping("kill"))).expect("another step");
    live_and_end(&home, &id(2), None);
    let all = ["running", "stopping", "stopping"].map(|state| (1, state.to_owned()));
    let other = ["running", "ended"].map(|state| (2, state.to_owned()));
    assert_eq!(told(&mut reader), [&all[..], &other[..]].concat());
    assert_eq!(told(&mut reader), []);
    let length = journal(&home).metadata().expect("its size").len();
    assert_eq!(length, 5 * LENGTH);
}

/// A follower of events reads those of the runs that a notice names.
#[test]
fn appended_events_have_a_notice_whatever_the_state() {
    let home = Home::new();
    let mut reader = home.journal().expect("a journal");
    let run = begin(&home, &id(1), None);
    assert_eq!(told(&mut reader).len(), 1);
    let running = record(&id(1), RunState::Running);
    run.append(&[event(&id(1), 1)]).expect("an event");
    assert_eq!(told(&mut reader), [], "the record that follows brings the notice");
    run.write_record(&running).expect("the same state");
    assert_eq!(told(&mut reader).len(), 1);
    run.append(&[event(&id(1), 2)]).expect("an event");
    run.notify(&running);
    assert_eq!(told(&mut reader).len(), 1);
    run.write_record(&running).expect("the same state");
    assert_eq!(told(&mut reader), [], "there was a notice of both events");
}

/// Nothing is written for a reader who is not there: so a state directory that is removed
/// once its runs are over stays removed.
#[test]
fn without_a_reader_there_is_no_journal() {
    let home = Home::new();
    live_and_end(&home, &id(1), None);
    home.remove(&id(1)).expect("removed");
    assert!(!home.path().join("journal").exists());
}

#[test]
fn whoever_comes_later_reads_from_there_on() {
    let home = Home::new();
    live_and_end(&home, &id(1), None);
    let mut reader = home.journal().expect("a journal");
    assert_eq!(told(&mut reader), []);
    live_and_end(&home, &id(2), None);
    reader.go_to_end().expect("its end");
    assert_eq!(told(&mut reader), []);
}

#[test]
fn another_file_of_that_name_is_read_from_its_end() {
    let home = Home::new();
    let mut reader = home.journal().expect("a journal");
    live_and_end(&home, &id(1), None);
    std::fs::remove_file(home.path().join("journal")).expect("removed");
    live_and_end(&home, &id(2), None);
    assert!(!home.path().join("journal").exists(), "a writer has made it");
    assert!(reader.reopen_if_replaced().expect("looked"));
    assert!(!reader.reopen_if_replaced().expect("looked"));
    live_and_end(&home, &id(3), None);
    assert_eq!(told(&mut reader).len(), 2);
}

/// Resuming: what came since is read, once; what cannot be read any more is not guessed.
#[test]
fn a_cursor_goes_on_where_another_reader_was() {
    let home = Home::new();
    let mut reader = home.journal().expect("a journal");
    live_and_end(&home, &id(1), None);
    assert_eq!(told(&mut reader).len(), 2);
    let cursor: Cursor = reader.cursor().to_string().parse().expect("a cursor");
    live_and_end(&home, &id(2), None);
    let mut later = home.journal().expect("a journal");
    assert!(later.go_to(&cursor).expect("looked"));
    assert_eq!(told(&mut later).first().expect("two notices").0, 2);
    assert_eq!(later.cursor(), home.journal().expect("a journal").cursor());

    let at = |next: u64| -> Cursor {
        let text = cursor.to_string();
        let (journal, _) = text.rsplit_once('-').expect("its parts");
        format!("{journal}-{next:x}").parse().expect("a cursor")
    };
    assert!(!later.go_to(&at(1 << 30)).expect("looked"), "nothing was ever there");
    assert!(later.go_to(&at(0)).expect("looked"), "the beginning is kept for a while");
    journal(&home).set_len(3 << 20).expect("a long one");
    assert!(!later.go_to(&cursor).expect("looked"), "it lies in the head that is gone");
    // A copy of the state directory has a journal of its own.
    let path = home.path().join("journal");
    let (copy, was) = (path.with_extension("copy"), std::fs::read(&path).expect("its text"));
    std::fs::write(&copy, was).expect("a copy");
    std::fs::rename(&copy, &path).expect("in its place");
    assert!(!home.journal().expect("a journal").go_to(&at(3 << 20)).expect("looked"));
}

#[test]
fn what_is_no_cursor_is_refused() {
    for text in
        ["", "1-2-3", "x-1-2-3", "a-1-2-", "a-1-2-3-4", "a-1-2-3\n", "a-1-2-10000000000000000"]
    {
        assert!(text.parse::<Cursor>().is_err(), "{text}");
    }
}

#[test]
fn a_removal_is_told() {
    let home = Home::new();
    live_and_end(&home, &id(1), None);
    let mut reader = home.journal().expect("a journal");
    home.remove(&id(1)).expect("removed");
    assert_eq!(told(&mut reader), [(1, Notice::REMOVED.to_owned())]);
}

#[test]
fn a_journal_that_was_cut_has_missed_something() {
    let home = Home::new();
    drop(home.journal().expect("a journal"));
    live_and_end(&home, &id(1), None);
    let mut reader = home.journal().expect("a journal");
    journal(&home).set_len(LENGTH).expect("cut");
    assert!(reader.read().expect("read").missed);
    live_and_end(&home, &id(2), None);
    assert_eq!(told(&mut reader).len(), 2);
}

/// It keeps its last mebibyte, whatever is appended, and the place of a notice stays.
#[test]
fn the_head_is_punched_out() {
    use std::os::unix::fs::MetadataExt as _;
    const KEPT: u64 = 1 << 20;
    let home = Home::new();
    let mut reader = home.journal().expect("a journal");
    let mut head = journal(&home);
    head.write_all(&vec![b'x'; 512 * 1024]).expect("written");
    head.set_len(2 * KEPT - LENGTH).expect("a long one");
    let before = head.metadata().expect("its size");
    drop(begin(&home, &id(1), None));
    let after = head.metadata().expect("its size");
    assert_eq!(after.len(), 2 * KEPT);
    assert!(after.blocks() < before.blocks(), "{before:?} {after:?}");
    assert!(reader.read().expect("read").missed, "a reader in the hole knows that it is there");
    live_and_end(&home, &id(2), None);
    assert_eq!(told(&mut reader).len(), 2);
}

/// Terabytes that were never written are not read either.
#[test]
fn a_hole_is_passed_over() {
    let home = Home::new();
    let mut reader = home.journal().expect("a journal");
    journal(&home).set_len(1 << 40).expect("a hole");
    assert!(reader.read().expect("read").missed);
    live_and_end(&home, &id(1), None);
    assert_eq!(told(&mut reader).len(), 2);
}

/// Neither a pipe nor a link of that name is waited for, or written through.
#[test]
fn what_is_no_plain_file_is_no_journal() {
    let home = Home::new();
    let path = home.path().join("journal");
    let elsewhere = home.path().join("elsewhere");
    for make in [
        (|path, _| rustix::fs::mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0).expect("a pipe"))
            as fn(&Path, &Path),
        |path, elsewhere| std::os::unix::fs::symlink(elsewhere, path).expect("a link"),
        |path, _| std::os::unix::fs::symlink("/dev/zero", path).expect("a link"),
    ] {
        make(&path, &elsewhere);
        assert!(home.journal().is_err());
        live_and_end(&home, &id(1), None);
        home.remove(&id(1)).expect("removed");
        std::fs::remove_file(&path).expect("removed");
    }
    assert!(!elsewhere.exists());
}

proptest! {
    /// Whatever a stranger appends: nothing panics, and what is told behind it is read,
    /// or said to be missed, and read again at the latest from the next on.
    #[test]
    fn garbage_hides_nothing_for_long(garbage in prop::collection::vec(any::<u8>(), 0..2000)) {
        let home = Home::new();
        let mut reader = home.journal().expect("a journal");
        journal(&home).write_all(&garbage).expect("written");
        live_and_end(&home, &id(1), None);
        live_and_end(&home, &id(2), None);
        let first = reader.read().expect("read");
        let whole = first.notices.len() == 4;
        prop_assert!(whole || first.missed, "{} of 4, and nothing missed", first.notices.len());
        live_and_end(&home, &id(3), None);
        live_and_end(&home, &id(4), None);
        let News { notices, .. } = reader.read().expect("read");
        prop_assert!(notices.iter().any(|notice| notice.id == id(4) && notice.state == "ended"));
    }
}
