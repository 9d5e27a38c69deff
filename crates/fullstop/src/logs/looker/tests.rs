use super::*;
use crate::blocking::wait;
use crate::logs::Logs;
use crate::logs::tests::{Stage, reads, told};
use crate::watcher::Follower;
use std::os::fd::AsFd as _;

fn follower(stage: &Stage) -> Looker {
    let mut looker = Looker::new(stage.run.files());
    looker.open();
    assert!(looker.error.is_none(), "{:?}", looker.error);
    looker
}

/// All that can be told at once.
fn look(looker: &mut Looker) -> Vec<String> {
    looker.look(true);
    assert!(looker.error.is_none(), "{:?}", looker.error);
    looker.ready.drain(..).map(|entry| told(&entry)).collect()
}

fn next(logs: &mut Logs) -> Option<String> {
    wait(logs.next()).expect("read").map(|entry| told(&entry))
}

#[test]
fn a_follower_hears_a_prompt_after_a_moment_and_the_end() {
    let mut stage = Stage::new();
    let mut logs = stage.logs().follow();
    stage.out.write(b"one\nprompt> ", 1_000_000);
    assert_eq!(next(&mut logs).as_deref(), Some("o:one\n"));
    // It comes by itself, once it was silent for long enough.
    let begun = Instant::now();
    assert_eq!(next(&mut logs).as_deref(), Some("o:prompt> "));
    assert!(begun.elapsed() >= SILENCE / 2, "{:?}", begun.elapsed());
    stage.out.write(b"last words", 2_000_000);
    stage.end();
    assert_eq!(next(&mut logs).as_deref(), Some("o:last words"));
    assert_eq!(next(&mut logs), None);
}

#[test]
fn a_follower_goes_on_after_a_restart() {
    let mut stage = Stage::new();
    let mut looker = follower(&stage);
    stage.out.write(b"first\n", 1_000_000);
    stage.end();
    assert_eq!(look(&mut looker), ["o:first\n"]);
    assert!(looker.over.is_some() && !looker.is_over_for_good(), "it may be restarted");
    let id = stage.run.id().clone();
    std::fs::write(stage.run.dir().join("lock"), "").expect("a lock");
    let _live = lock(&stage.run.dir().join("lock"));
    let store = fullstop_store::Store::at(stage.run.runs().path()).expect("the store");
    assert_eq!(store.standing(&id).expect("asked"), Standing::Live);
    stage.out.write(b"second\n", 2_000_000);
    assert_eq!(look(&mut looker), ["o:second\n"]);
    assert_eq!(looker.over, None, "it is live again");
}

fn lock(path: &std::path::Path) -> std::fs::File {
    let file = std::fs::File::options().read(true).write(true).open(path).expect("open");
    assert!(fullstop_cage::linux::try_lock(file.as_fd(), 0).expect("locked"));
    file
}

#[test]
fn a_follower_that_is_not_heard_reads_no_more_than_it_can_keep() {
    let mut stage = Stage::new();
    let line = [&[b'x'; 1023][..], b"\n"].concat();
    let lines = 4 * AHEAD / line.len();
    for at in 0..lines {
        stage.out.write(&line, at as u64);
        stage.out.part();
    }
    let mut looker = follower(&stage);
    looker.look(true);
    let size = |looker: &Looker| {
        let length = |entry: &LogEntry| match entry {
            LogEntry::Text { bytes, .. } => bytes.len(),
            LogEntry::Cut { .. } => 0,
        };
        looker.ready.iter().map(length).sum::<usize>()
    };
    assert!(looker.is_behind && size(&looker) < 2 * AHEAD, "{} bytes", size(&looker));
    assert!(looker.patience().is_zero(), "the rest is there already");
    let mut all = size(&looker);
    while looker.is_behind {
        looker.ready.clear();
        looker.look(false);
        all += size(&looker);
    }
    assert_eq!(all, lines * line.len());
}

#[test]
fn a_follower_that_hears_nothing_reads_little_and_keeps_one_descriptor() {
    const LOOKS: u64 = 50;
    let mut stage = Stage::new();
    stage.out.write(b"one\n", 1_000_000);
    let mut looker = follower(&stage);
    assert_eq!(look(&mut looker), ["o:one\n"]);
    assert_eq!(descriptors_in(&stage), 1, "the directory itself");
    let before = reads();
    for _ in 0..LOOKS {
        looker.look(false);
        assert!(looker.ready.is_empty());
    }
    // The ends of both logs and of their indices; whether the run is live is asked without
    // a read.
    assert!(reads() - before <= 4 * LOOKS + 10, "{} reads", reads() - before);
    stage.err.write(b"two\n", 2_000_000);
    assert_eq!(look(&mut looker), ["e:two\n"]);
}

/// The descriptors of this process that lead to the run's directory or into it, but for the
/// writer's.
fn descriptors_in(stage: &Stage) -> usize {
    let count = || {
        let all = std::fs::read_dir("/proc/self/fd").expect("our descriptors");
        let inside = |path: std::path::PathBuf| path.starts_with(stage.run.dir());
        all.flatten()
            .filter_map(|fd| fd.path().read_link().ok())
            .filter(|it| inside(it.clone()))
            .count()
    };
    let mut other = follower(stage);
    let one = count();
    look(&mut other);
    let two = count();
    drop(other);
    assert_eq!(one, two, "it rests after a look");
    two - count()
}

#[test]
fn a_follower_that_is_told_nothing_finds_out_and_looks() {
    let mut stage = Stage::new();
    let mut logs = stage.logs().follow();
    // As where the kernel says nothing of this directory.
    let other = Follower::of_directory(&stage.run.runs().path().join("live"));
    logs.following.as_mut().expect("followed").follower = Some(other);
    // That the other one is watched by now has woken it once.
    for line in ["one\n", "two\n", "three\n", "four\n", "five\n"] {
        stage.out.write(line.as_bytes(), 1_000_000);
        assert_eq!(next(&mut logs), Some(format!("o:{line}")));
    }
    assert!(logs.why_polling().is_some());
    stage.out.write(b"six\n", 2_000_000);
    assert_eq!(next(&mut logs).as_deref(), Some("o:six\n"));
}
