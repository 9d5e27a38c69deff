//! Tests that change what belongs to the whole process play in one of their own.

use std::path::Path;
use std::process::{Command, Stdio};

const STAGE: &str = "FULLSTOP_STORE_STAGE";
const DIR: &str = "FULLSTOP_STORE_STAGE_DIR";

/// Where the stage was set, if this process is on it.
pub fn dir() -> Option<std::path::PathBuf> {
    std::env::var_os(DIR).map(Into::into)
}

/// Whether this process is on the stage of that test.
pub fn is_on(test: &str) -> bool {
    std::env::var(STAGE).is_ok_and(|on| on == test)
}

/// Plays a test again, with a few words of shell before it; `$DIR` is the directory.
pub fn play(test: &str, before: &[&str], shell: &str, dir: &Path) {
    let script = format!("{shell}\nexec \"$0\" \"$@\"");
    let words = before.iter().copied().chain(["sh", "-ec", &script]).collect::<Vec<_>>();
    let output = Command::new(words[0])
        .args(&words[1..])
        .arg(std::env::current_exe().expect("this program"))
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(STAGE, test)
        .env(DIR, dir)
        .env("DIR", dir)
        .stdin(Stdio::null())
        .output()
        .expect("a stage");
    let said =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    // A name that no test has would pass as well.
    assert!(output.status.success() && said[0].contains("1 passed"), "{}{}", said[0], said[1]);
}

/// Why a mount of one's own cannot be had here.
pub fn no_mounts() -> Option<&'static str> {
    let tried = Command::new("unshare")
        .args(["--mount", "sh", "-c", "mount -t tmpfs none /tmp"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match tried {
        Ok(status) if status.success() => None,
        Ok(_) => Some("no right to mount"),
        Err(_) => Some("there is no unshare"),
    }
}

/// A test that cannot be played here says so.
pub fn skipped(test: &str, why: &str) {
    eprintln!("skipped: {test}: {why}");
}
