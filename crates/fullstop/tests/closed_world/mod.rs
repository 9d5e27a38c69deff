//! A pid namespace of its own, for tests that kill guards and keepers.

use std::error::Error;
use std::process::Command;

/// Says for which test the namespace is made.
const INSIDE: &str = "FULLSTOP_TEST_INSIDE";

/// Plays this test program once more in a closed world. Returns whether this process is in the
/// world of that test, and has it before it; elsewhere it is done, or cannot be.
pub fn is_inside(test: &str) -> Result<bool, Box<dyn Error>> {
    if let Some(inside) = std::env::var_os(INSIDE) {
        return Ok(inside == test);
    }
    if !rustix::process::geteuid().is_root() {
        println!("test {test} ... ignored: only root makes a pid namespace");
        return Ok(false);
    }
    // Its pids tell it from nobody out here, so that it has a place of its own for what it writes.
    let place = std::env::temp_dir().join(format!("fullstop-world-{}", std::process::id()));
    std::fs::create_dir(&place)?;
    // A shell stays in front, and reaps whoever is left to it.
    let played = Command::new("unshare")
        .args(["--pid", "--fork", "--mount-proc", "--kill-child", "--"])
        .args(["sh", "-c", "\"$0\"; exit $?"])
        .arg(std::env::current_exe()?)
        .env(INSIDE, test)
        .env("TMPDIR", &place)
        .status();
    std::fs::remove_dir_all(&place)?;
    let played = played?;
    assert!(played.success(), "{test}: {played}");
    println!("test {test} ... ok");
    Ok(false)
}
