use super::*;
use crate::blocking;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;
use tokio::task::JoinSet;
use tokio::time::timeout;

const SOON: Duration = Duration::from_secs(20);
/// Far longer than a nap, and shorter than anything is looked at again.
const QUIET: Duration = Duration::from_millis(100);

struct Place {
    store: Arc<Store>,
}

impl Place {
    fn new(name: &str) -> Place {
        let path = std::env::temp_dir().join(format!("fullstop-{name}-{}", std::process::id()));
        Place { store: Arc::new(Store::at(&path).expect("a store")) }
    }

    /// A follower that has had its first wake-up.
    async fn follow(&self, run: u64) -> Follower {
        let mut follower = Follower::of_run(&self.store, &id(run));
        // It is open once the first follower of the journal was woken.
        while self.watcher_is_opening() {
            sleep(Duration::from_millis(1)).await;
        }
        follower.changed.mark_unchanged();
        follower
    }

    fn watcher_is_opening(&self) -> bool {
        !WATCHER.lock().sources.has_begun(&Key::Journal(self.store.path().to_owned()))
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
    wait(async {
        let (mut one, mut other) = (place.follow(1).await, place.follow(2).await);
        let mut all = Follower::of_journal(&place.store);
        place.tell(1);
        one.changed().await;
        all.changed().await;
        assert!(timeout(QUIET, other.changed()).await.is_err(), "it was about another run");
        place.tell(2);
        other.changed().await;
        all.changed().await;
    });
}

/// Followers wait in runtimes that may stand still: none of them reads for the others.
#[test]
fn a_follower_that_is_not_polled_keeps_nobody_waiting() {
    let place = Arc::new(Place::new("still"));
    let theirs = Arc::clone(&place);
    let (go, gone) = std::sync::mpsc::channel::<()>();
    let still = std::thread::spawn(move || {
        wait(async {
            let mut follower = theirs.follow(1).await;
            assert!(timeout(QUIET, follower.changed()).await.is_err());
            let _ = gone.recv();
        });
    });
    wait(async {
        let mut follower = place.follow(2).await;
        for _ in 0..3 {
            place.tell(2);
            follower.changed().await;
        }
    });
    drop(go);
    still.join().expect("the other runtime");
}

#[test]
fn many_follow_and_each_is_woken() {
    const MANY: u64 = 200;
    let place = Arc::new(Place::new("many"));
    wait(async {
        let mut waiting = JoinSet::new();
        for run in 0..MANY {
            let mut follower = place.follow(run).await;
            waiting.spawn(async move { follower.changed().await });
        }
        for run in 0..MANY {
            place.tell(run);
            waiting.join_next().await.expect("one more").expect("woken");
        }
    });
    assert!(place.watcher_is_not_needed(), "nobody follows any more");
}

impl Place {
    fn watcher_is_not_needed(&self) -> bool {
        !WATCHER.lock().sources.has_journal(self.store.path())
    }
}

#[test]
fn another_journal_wakes_everybody() {
    let place = Place::new("another");
    wait(async {
        let mut follower = place.follow(1).await;
        let mut all = Follower::of_journal(&place.store);
        std::fs::remove_file(place.journal()).expect("removed");
        follower.changed().await;
        all.changed().await;
        // And the new one is followed.
        place.tell(1);
        follower.changed().await;
    });
}

#[test]
fn what_was_told_before_is_not_told_again() {
    let place = Place::new("before");
    wait(async {
        drop(place.follow(1).await);
        place.tell(1);
        let mut follower = place.follow(1).await;
        assert!(timeout(QUIET, follower.changed()).await.is_err());
        place.tell(1);
        follower.changed().await;
    });
}

/// Where there can be no journal all are woken four times a second, to look for themselves.
#[test]
fn without_a_journal_all_look_for_themselves() {
    let place = Place::new("none");
    std::fs::create_dir(place.journal()).expect("no journal");
    wait(async {
        let mut follower = Follower::of_run(&place.store, &id(1));
        for _ in 0..3 {
            follower.changed().await;
        }
        assert!(follower.why_polling().is_some());
        std::fs::remove_dir(place.journal()).expect("removed");
        while follower.why_polling().is_some() {
            follower.changed().await;
        }
        place.tell(1);
        follower.changed().await;
    });
}

#[test]
fn what_is_written_in_a_directory_wakes_its_followers() {
    let place = Place::new("directory");
    let paths = ["one", "two"].map(|name| place.store.path().join(name));
    wait(async {
        let mut followers = Vec::new();
        for path in &paths {
            std::fs::create_dir(path).expect("a directory");
            let mut follower = Follower::of_directory(path);
            // The first wake-up tells that it is watched.
            follower.changed().await;
            assert_eq!(follower.why_polling(), None);
            followers.push(follower);
        }
        let [one, two] = followers.as_mut_slice() else { panic!("two followers") };
        for round in 0..3 {
            append(&paths[0].join("out.log")).write_all(b"line\n").expect("written");
            one.changed().await;
            // Who comes and goes in a run is not followed.
            append(&paths[1].join("members")).write_all(b"one more\n").expect("written");
            assert!(timeout(QUIET, two.changed()).await.is_err(), "round {round}");
            // Creation and writing may come apart.
            one.changed.mark_unchanged();
        }
        let mut follower = Follower::of_directory(&place.store.path().join("missing"));
        follower.begun().await;
        assert!(follower.why_polling().is_some(), "it is told before the first wake-up");
        // A directory that does not exist is looked at, and watched as soon as it does.
        let later = place.store.path().join("later");
        let mut follower = Follower::of_directory(&later);
        follower.changed().await;
        assert!(follower.why_polling().is_some());
        std::fs::create_dir(&later).expect("a directory");
        while follower.why_polling().is_some() {
            follower.changed().await;
        }
    });
}
