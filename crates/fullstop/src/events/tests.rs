use super::*;
use fullstop_protocol::{EventKind, Timestamp};
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

struct Place {
    path: PathBuf,
    runs: Runs,
}

impl Place {
    fn new(name: &str) -> Place {
        let path =
            std::env::temp_dir().join(format!("fullstop-events-{name}-{}", std::process::id()));
        let runs = Runs::at(&path).expect("a directory");
        Place { path, runs }
    }

    fn append(&self, path: &str, text: &str) {
        let path = self.path.join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        let file = fs::OpenOptions::new().create(true).append(true).open(path);
        file.expect("a file").write_all(text.as_bytes()).expect("written");
    }

    /// Appends an event, as a keeper does, and the notice unless the keeper is killed
    /// between the two.
    fn happens(&self, run: u64, at: u64, has_notice: bool) {
        let event = Event {
            number: at,
            at: Timestamp::from_unix_ms(at),
            id: id(run),
            generation: 1,
            kind: EventKind::Stuck { survivors: 1 },
        };
        let line = serde_json::to_string(&event).expect("JSON");
        self.append(&format!("runs/{}/events.jsonl", id(run)), &format!("{line}\n"));
        if has_notice {
            let notice = r#"{"version":1,"id":"#;
            let line = format!(r#"{notice}"{}","generation":1,"state":"stuck"}}"#, id(run));
            self.append("journal", &format!("{line:255}\n"));
        }
    }

    fn list(&self, run: u64) {
        self.append(&format!("live/{}", id(run)), "");
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn id(run: u64) -> Id {
    format!("0tewhm6{run:06}").parse().expect("an id")
}

impl Place {
    /// As one who follows the events of these runs, or of all.
    fn follow(&self, only: &[Id]) -> Looker {
        Looker::new(&self.runs, only.to_vec())
    }
}

/// The times of the new events, which tell the events apart.
fn look(looker: &mut Looker) -> Vec<u64> {
    looker.look();
    assert!(looker.error.is_none(), "{:?}", looker.error);
    std::mem::take(&mut looker.new).iter().map(|event| event.at.unix_ms()).collect()
}

#[test]
fn history_is_shown_once_and_then_the_runs_that_notices_name() {
    let place = Place::new("told");
    place.happens(1, 20, true);
    place.happens(2, 10, true);
    let mut events = place.follow(&[]);
    place.happens(1, 30, true);
    assert_eq!(look(&mut events), [10, 20, 30]);
    // The notice of an event that was read already does not show it again.
    assert_eq!(look(&mut events), [0; 0]);
    place.happens(3, 50, true);
    place.happens(2, 40, true);
    place.happens(2, 60, true);
    assert_eq!(look(&mut events), [40, 50, 60]);
    assert_eq!(look(&mut events), [0; 0]);
}

#[test]
fn of_some_runs_only() {
    let place = Place::new("some");
    for run in 1..=3 {
        place.happens(run, run, true);
    }
    let mut events = place.follow(&[id(2)]);
    assert_eq!(look(&mut events), [2]);
    place.happens(1, 11, true);
    place.happens(2, 12, true);
    assert_eq!(look(&mut events), [12]);
    assert_eq!(place.runs.files().past_events(&[id(2)]).expect("events").len(), 2);
}

#[test]
fn a_lost_notice_is_made_good_and_history_is_left_alone() {
    let place = Place::new("lost");
    place.list(1);
    place.happens(1, 1, true);
    place.happens(2, 2, true);
    let mut events = place.follow(&[]);
    assert_eq!(look(&mut events), [1, 2]);
    place.happens(3, 3, true);
    assert_eq!(look(&mut events), [3]);
    // Run 1 is unfinished, run 2 ended before the first look, run 3 had a notice since.
    for run in 1..=3 {
        place.happens(run, 10 + run, false);
    }
    assert_eq!(look(&mut events), [0; 0], "there was no notice");
    events.rounds.as_mut().expect("a look").make_due();
    assert_eq!(look(&mut events), [11, 13]);
}

#[test]
fn a_journal_that_is_replaced_or_gone_hides_nothing() {
    let place = Place::new("replaced");
    let mut events = place.follow(&[]);
    assert_eq!(look(&mut events), [0; 0]);
    fs::remove_file(place.path.join("journal")).expect("removed");
    place.happens(1, 1, true);
    assert_eq!(look(&mut events), [1]);
    place.happens(2, 2, true);
    assert_eq!(look(&mut events), [2]);
}

#[test]
fn without_a_journal_the_unfinished_are_looked_at() {
    let place = Place::new("none");
    fs::create_dir(place.path.join("journal")).expect("no journal");
    place.list(1);
    place.happens(2, 2, false);
    let mut events = place.follow(&[]);
    assert_eq!(look(&mut events), [2]);
    place.happens(1, 11, false);
    place.happens(2, 12, false);
    assert_eq!(look(&mut events), [11]);
}

/// One run is gone on with by the number of its last event, through all generations.
#[test]
fn what_was_seen_elsewhere_is_not_told_again() {
    let place = Place::new("resumed");
    for number in 1..=3 {
        place.happens(1, number, true);
    }
    let mut events = place.runs.follow_events(&[id(1)]).after(2);
    let new = crate::blocking::wait(events.next()).expect("the third");
    assert_eq!(new.iter().map(|event| event.number).collect::<Vec<_>>(), [3]);
}

/// Only a run that is gone has no more events: what cannot be read for a while is read on
/// from where it was.
#[test]
fn what_cannot_be_read_for_a_while_is_not_told_again() {
    let place = Place::new("unread");
    place.happens(1, 1, true);
    let mut events = place.follow(&[]);
    assert_eq!(look(&mut events), [1]);
    let file = place.path.join(format!("runs/{}/events.jsonl", id(1)));
    let aside = file.with_extension("aside");
    fs::rename(&file, &aside).expect("put aside");
    fs::create_dir(&file).expect("nothing to read");
    place.happens(2, 2, true);
    events.rounds.as_mut().expect("a look").make_due();
    events.unfinished.insert(id(1));
    assert!(place.runs.files().events(&id(1), 0).is_err(), "it can be read");
    assert_eq!(look(&mut events), [2]);
    fs::remove_dir(&file).expect("removed");
    fs::rename(&aside, &file).expect("put back");
    place.happens(1, 3, true);
    assert_eq!(look(&mut events), [3]);
}
