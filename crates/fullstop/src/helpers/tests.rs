use super::*;
use crate::blocking::wait;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{current, sleep};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// As in a program with a runtime of its own.
fn block_on<T>(what: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(what)
}

#[test]
fn much_work_is_done_by_a_few_threads() {
    static AT_WORK: AtomicUsize = AtomicUsize::new(0);
    let most = block_on(async {
        let mut all = JoinSet::new();
        for _ in 0..100 {
            all.spawn(help(|| {
                let at_work = AT_WORK.fetch_add(1, Ordering::SeqCst) + 1;
                sleep(Duration::from_millis(1));
                AT_WORK.fetch_sub(1, Ordering::SeqCst);
                at_work
            }));
        }
        let mut most = 0;
        while let Some(at_work) = all.join_next().await {
            most = most.max(at_work.expect("no panic").expect("done"));
        }
        most
    });
    assert!((1..=MOST).contains(&most), "{most}");
}

#[test]
fn work_that_panics_is_told_and_harms_no_other() {
    for _ in 0..MOST * 2 {
        assert!(block_on(help(|| panic!("as it should"))).is_err());
        assert!(wait(help(|| panic!("as it should"))).is_err());
    }
    assert_eq!(block_on(help(|| 7)).ok(), Some(7));
    assert_eq!(wait(help(|| 7)).ok(), Some(7));
}

#[test]
fn who_waits_does_the_work_itself_and_nobody_else_does() {
    let own = current().id();
    let worker = || help(|| current().id());
    assert_eq!(wait(worker()).ok(), Some(own));
    assert_ne!(block_on(worker()).ok(), Some(own), "a poll was kept waiting");
    let spawned = wait(async { tokio::spawn(worker()).await.expect("no panic") });
    assert_eq!(spawned.ok(), Some(own));
    let mut value = Helped::Here(None);
    let at_work = wait(async { Ok(*value.work(|it| *it = Some(current().id())).await?) });
    assert_eq!(at_work.ok(), Some(Some(own)));
}

/// All who do what takes long are busy, and files are read all the same.
#[test]
fn what_takes_long_keeps_no_reader_waiting() {
    let (go, gone) = mpsc::channel::<()>();
    let gone = Arc::new(Mutex::new(gone));
    let read = block_on(async {
        let mut all = JoinSet::new();
        for _ in 0..MOST * 2 {
            let gone = Arc::clone(&gone);
            all.spawn(help_long((), move |()| {
                let _ = gone.lock().map(|gone| gone.recv());
                Ok(())
            }));
        }
        tokio::task::yield_now().await;
        let read = timeout(Duration::from_mins(1), help_with(7, |it| Ok(*it))).await;
        drop(go);
        while let Some(done) = all.join_next().await {
            done.expect("no panic").expect("done");
        }
        read
    });
    assert!(matches!(read, Ok(Ok(7))), "{read:?}");
}

#[test]
fn what_was_begun_is_not_lost_with_the_future_that_waited_for_it() {
    let mut value = Helped::Here(Vec::new());
    let (go, gone) = mpsc::channel::<()>();
    let gone = Arc::new(Mutex::new(gone));
    let done = block_on(async {
        let slow = value.work(move |value| {
            let _ = gone.lock().map(|gone| gone.recv());
            value.push(1);
        });
        let cut = timeout(Duration::from_millis(1), slow).await;
        assert!(cut.is_err(), "it was done without leave");
        drop(go);
        value.work(|value| value.push(2)).await.cloned()
    });
    assert_eq!(done.ok(), Some(vec![1, 2]));
}

/// As after a fork: the threads are counted, and none is there.
#[test]
fn a_copy_of_a_process_has_helpers_of_its_own() {
    let job: Job = Box::new(|| unreachable!("the original does this"));
    let left = Helpers::default();
    *left.state.lock().expect("a lock") = State {
        owner: Owner::of_another_process(),
        threads: MOST,
        jobs: VecDeque::from([job]),
        ..State::default()
    };
    let helpers = Box::leak(Box::new(left));
    let done = block_on(async { timeout(Duration::from_mins(1), done_by(helpers, || 7)).await });
    assert_eq!(done.expect("nobody does it").ok(), Some(7));
}
