//! A pid namespace per question: what a member leaves behind ends with it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum User {
    Root,
    Nobody,
}

/// What every script can use. `$zoo` starts the program as the user asked for.
const PRELUDE: &str = r#"
set -u
mkfifo -m 666 ready
exec 3<>ready
# Starts a member; the process in between, $keeper, tells when and how its leader ended.
start() {
    { $zoo --dir "$PWD" "$@" >/dev/null 2>err 3<&-; echo "gone $?" >&3; } &
    keeper=$!
}
# All pids alive but our own two, oldest first, into $pids, and how many into $alive.
# Forks nothing.
census() {
    alive=0 pids=
    for at in /proc/[0-9] /proc/[0-9][0-9] /proc/[0-9][0-9][0-9] /proc/[0-9][0-9][0-9][0-9]*; do
        pid=${at#/proc/}
        [ "$pid" = $$ ] || [ "$pid" = "$keeper" ] && continue
        { read -r stat <"$at/stat"; } 2>/dev/null || continue
        case ${stat##*) } in
            Z* | X*) ;;
            *) alive=$((alive + 1)) pids="$pids $pid" ;;
        esac
    done
}
state() { read -r stat <"/proc/$1/stat"; stat=${stat##*) }; state=${stat%% *}; }
"#;

/// Longer than any script takes, so that a hang is a failure and not a stuck test.
const DEADLINE: &str = "60";

static WORLDS: AtomicU32 = AtomicU32::new(0);

pub fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|me| std::os::unix::fs::MetadataExt::uid(&me) == 0)
}

/// Runs a script in a new pid namespace and a scratch directory. `None`: no namespace or
/// no such user can be had here.
pub fn ask(user: User, script: &str, arguments: &[&str]) -> Option<String> {
    if user == User::Nobody && !is_root() {
        return None;
    }
    let dir = scratch();
    let zoo = dir.join("zoo");
    // A build directory may be closed to others; and tests of the setuid copy need root.
    fs::copy(env!("CARGO_BIN_EXE_zoo"), &zoo).expect("copying zoo");
    if is_root() {
        fs::copy(&zoo, dir.join("zoo-suid")).expect("copying zoo");
        let setuid = fs::Permissions::from_mode(0o4755);
        fs::set_permissions(dir.join("zoo-suid"), setuid).expect("chmod");
    }
    let start = match user {
        User::Root => "zoo=./zoo",
        User::Nobody => "zoo='setpriv --reuid=65534 --regid=65534 --clear-groups ./zoo'",
    };
    let unshare = ["--pid", "--fork", "--mount-proc", "--kill-child"];
    let extra: &[&str] = if is_root() { &[] } else { &["--map-root-user"] };
    let works = Command::new("unshare").args(unshare).args(extra).arg("true").output();
    if !works.is_ok_and(|done| done.status.success()) {
        return None;
    }
    let done = Command::new("timeout")
        .args(["--signal=KILL", DEADLINE, "unshare"])
        .args(unshare)
        .args(extra)
        .args(["sh", "-c", &format!("{start}\n{PRELUDE}\n{script}"), "sh"])
        .args(arguments)
        .current_dir(&dir)
        .output()
        .expect("unshare ran a moment ago");
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    let err = fs::read_to_string(dir.join("err")).unwrap_or_default();
    let complaint = String::from_utf8_lossy(&done.stderr);
    let _ = fs::remove_dir_all(&dir);
    assert!(done.status.success(), "{}: {said}{complaint}{err}", done.status);
    Some(said)
}

fn scratch() -> PathBuf {
    let nth = WORLDS.fetch_add(1, Ordering::Relaxed);
    let dir = std::env::temp_dir().join(format!("zoo-{}-{nth}", std::process::id()));
    fs::create_dir(&dir).expect("a scratch directory");
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).expect("chmod");
    dir
}
