//! Only the owner can look: whatever the umask, whatever was there before.

use crate::kit::{Scratch, begin, id};
use crate::stage;
use fullstop_core::words::Stream;
use fullstop_store::{GroupName, Store, StoreError};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

fn mode(path: &Path) -> u32 {
    std::fs::symlink_metadata(path).expect("something").permissions().mode() & 0o7777
}

/// Everything below a directory, and itself.
fn everything(path: &Path) -> Vec<PathBuf> {
    let mut found = vec![path.to_owned()];
    let mut next = 0;
    while let Some(path) = found.get(next).cloned() {
        next += 1;
        if path.is_dir() {
            let entries = std::fs::read_dir(&path).expect("a directory");
            found.extend(entries.map(|entry| entry.expect("an entry").path()));
        }
    }
    found
}

fn plays_with_umask(test: &str, umask: &str) {
    if let Some(dir) = stage::dir().filter(|_| stage::is_on(test)) {
        return everything_is_private(&dir.join("above/state"));
    }
    let scratch = Scratch::new();
    stage::play(test, &[], &format!("umask {umask}"), scratch.path());
}

fn everything_is_private(path: &Path) {
    let store = Store::at(path).expect("a store");
    let mut run = begin(&store, &id(1), None);
    // The next generation replaces what the first one wrote.
    run.write_spec(&fullstop_store::format::SpecFile {
        generation: 2,
        ..crate::kit::spec(&id(1), None)
    })
    .expect("a spec");
    run.append(&[crate::kit::event(&id(1), 1)]).expect("an event");
    drop(run.log_file(Stream::Out).expect("a log"));
    let log = run.log(fullstop_core::words::Stream::Err, Some(100));
    log.expect("a log").write(&[b'x'; 1000], 1);
    let group: GroupName = "plan/research".parse().expect("a name");
    run.join(&group).expect("joined");
    group.close(store.root()).expect("closed");
    let found = everything(path);
    assert!(found.iter().any(|path| path.ends_with("spec.json")));
    for path in found {
        let wanted = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode(&path), wanted, "{}", path.display());
    }
}

#[test]
fn with_no_umask() {
    plays_with_umask("private::with_no_umask", "0000");
}

#[test]
fn with_the_usual_umask() {
    plays_with_umask("private::with_the_usual_umask", "0022");
}

#[test]
fn with_a_narrow_umask() {
    plays_with_umask("private::with_a_narrow_umask", "0077");
}

#[test]
fn a_wider_directory_is_narrowed() {
    let scratch = Scratch::new();
    for wide in [0o755, 0o750, 0o701, 0o777] {
        std::fs::set_permissions(scratch.path(), PermissionsExt::from_mode(wide)).expect("widened");
        Store::at(scratch.path()).expect("a store");
        assert_eq!(mode(scratch.path()), 0o700, "was {wide:o}");
    }
}

#[test]
fn somebody_elses_directory_is_refused() {
    const STRANGER: u32 = 12_345;
    let scratch = Scratch::new();
    if let Err(error) = chown(scratch.path(), Some(STRANGER), None) {
        return stage::skipped("somebody_elses_directory_is_refused", &error.to_string());
    }
    let before = mode(scratch.path());
    let error = Store::at(scratch.path()).expect_err("refused");
    assert!(matches!(error, StoreError::Foreign { owner: STRANGER, .. }), "{error:?}");
    let said = error.to_string();
    assert!(
        said.contains("12345") && said.contains("FULLSTOP_DIR") && !said.contains('\n'),
        "{said}"
    );
    assert_eq!((mode(scratch.path()), everything(scratch.path()).len()), (before, 1));
}

/// Runs carry a hash of the path, by which those that are not listed are found.
#[test]
fn one_directory_has_one_path_however_it_is_written() {
    let scratch = Scratch::new();
    let state = scratch.path().join("state");
    let store = Store::at(&state).expect("a store");
    let real = scratch.path().canonicalize().expect("a path").join("state");
    let link = scratch.path().join("link");
    std::os::unix::fs::symlink(&state, &link).expect("a link");
    std::fs::create_dir(scratch.path().join("beside")).expect("a directory");
    let around = scratch.path().join("beside/../state");
    let through = [link.clone(), around].map(|path| Store::at(&path).expect("the same store"));
    for store in [&store].into_iter().chain(&through) {
        assert_eq!(store.path(), real);
    }
    // What is made through a link is made where that leads, and has that path at once.
    std::fs::remove_dir(&state).expect("removed");
    std::fs::remove_file(&link).expect("removed");
    std::os::unix::fs::symlink(scratch.path(), &link).expect("a link");
    assert_eq!(Store::at(&link.join("state")).expect("made").path(), real);
}
