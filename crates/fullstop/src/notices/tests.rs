use super::*;
use crate::blocking;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;
use tokio::task::JoinSet;
use tokio::time::timeout;

const SOON: Duration = Duration::from_secs(20);

struct Place {
    store: Store,
    notices: Arc<Notices>,
}

impl Place {
    fn new(name: &str) -> Place {
        let path = std::env::temp_dir().join(format!("fullstop-{name}-{}", std::process::id()));
        Place { store: Store::at(&path).expect("a store"), notices: Arc::default() }
    }

    fn follow(&self, run: u64) -> Follower {
        self.notices.follow(&self.store, &id(run))
    }

    fn journal(&self) -> PathBuf {
        self.store.path().join("journal")
    }

    /// As a keeper does.
    fn tell(&self, run: u64) {
        let mut journal = append(&self.journal());
        let line =
            format!(r#"{{"version":1,"id":"{}","generation":1,"state":"running"}}"#, id(run));
        writeln!(journal, "{line:255}").expect("told");
    }
}

fn append(path: &PathBuf) -> File {
    OpenOptions::new().create(true).append(true).open(path).expect("the journal")
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(self.store.path());
    }
}

fn id(run: u64) -> Id {
    Id::new(1_800_000_000_000, run)
}

fn wait<T>(what: impl Future<Output = T>) -> T {
    let what = async { timeout(SOON, what).await.expect("in time") };
    blocking::wait(async { Ok(what.await) }).expect("a runtime")
}

#[test]
fn a_notice_wakes_those_it_is_about() {
    let place = Place::new("notice");
    let (mut one, mut other) = (place.follow(1), place.follow(2));
    place.tell(1);
    wait(async {
        one.changed().await;
        let nothing = timeout(NAP * 10, other.changed()).await;
        assert!(nothing.is_err(), "it was about another run");
        place.tell(2);
        other.changed().await;
    });
}

/// Whoever reads for all may go at any time; another one reads on.
#[test]
fn many_follow_by_one_who_reads() {
    const MANY: u64 = 200;
    let place = Arc::new(Place::new("many"));
    wait(async {
        let mut waiting = JoinSet::new();
        for run in 0..MANY {
            let mut follower = place.follow(run);
            waiting.spawn(async move { follower.changed().await });
        }
        // Each ends, and whoever read for all is among them.
        for run in 0..MANY {
            place.tell(run);
            waiting.join_next().await.expect("one more").expect("woken");
        }
    });
    assert!(place.notices.heard().followed.is_empty(), "nobody follows any more");
}

#[test]
fn another_journal_wakes_everybody() {
    let place = Place::new("another");
    let mut follower = place.follow(1);
    std::fs::remove_file(place.journal()).expect("removed");
    wait(async {
        follower.changed().await;
        // And the new one is followed.
        place.tell(1);
        follower.changed().await;
    });
}

#[test]
fn what_was_told_before_is_not_told_again() {
    let place = Place::new("before");
    drop(place.follow(1));
    place.tell(1);
    let mut follower = place.follow(1);
    wait(async {
        assert!(timeout(NAP * 10, follower.changed()).await.is_err());
        place.tell(1);
        follower.changed().await;
    });
}
