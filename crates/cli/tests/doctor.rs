//! `fullstop doctor` as it is called. Nothing here starts a run; as root each call
//! has a pid namespace of its own. What this machine has not is skipped with a reason.

// Every test may be skipped, but not all of them ever are.
#![allow(clippy::unnecessary_wraps)]

use fullstop_store::Tag;
use libtest_mimic::{Arguments, Completion, Trial};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

const BINARY: &str = env!("CARGO_BIN_EXE_fullstop");
const NOBODY: u32 = 65534;
const LOST: &str = "2a00000000001";
const ELSEWHERE: &str = "2a00000000002";
const DAMAGED: &str = "2a00000000003";
const OVER: &str = "2a00000000004";

/// Played, or why it was skipped.
type Played = Result<(), String>;
type Test = (&'static str, fn() -> Played);

fn main() {
    let tests: [Test; 6] = [
        ("root_with_a_cgroup_gets_one", root_with_a_cgroup_gets_one),
        ("a_cgroup_left_over_is_named", a_cgroup_left_over_is_named),
        ("a_user_without_one_is_told_the_way_out", a_user_without_one_is_told_the_way_out),
        ("lost_and_damaged_runs_are_told", lost_and_damaged_runs_are_told),
        ("red_is_status_1", red_is_status_1),
        ("colours_only_on_a_terminal", colours_only_on_a_terminal),
    ];
    let trial = |(name, test): Test| {
        Trial::ignorable_test(name, move || match test() {
            Ok(()) => Ok(Completion::Completed),
            Err(why) => Ok(Completion::ignored_with(why)),
        })
    };
    let trials = tests.into_iter().map(trial).collect();
    // One at a time: each looks for what another's try would leave in the same place.
    let arguments = Arguments { test_threads: Some(1), ..Arguments::from_args() };
    libtest_mimic::run(&arguments, trials).exit();
}

/// A directory of the test's own, which every user may enter.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("fullstop-doctor-test-{}-{number}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        fs::create_dir_all(dir.join("state")).unwrap();
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).unwrap();
        Scratch(dir)
    }

    fn state(&self) -> PathBuf {
        self.0.join("state")
    }

    /// A run as it is on disk; `listed` as unfinished, or not.
    fn run(&self, id: &str, record: &str, listed: bool) {
        let dir = self.state().join("runs").join(id);
        fs::create_dir_all(&dir).unwrap();
        fs::create_dir_all(self.state().join("live")).unwrap();
        fs::write(dir.join("record.json"), record).unwrap();
        if listed {
            fs::write(dir.join("lock"), "").unwrap();
            fs::hard_link(dir.join("lock"), self.state().join("live").join(id)).unwrap();
        }
    }

    /// Runs a line of sh, as root in a pid namespace of its own; `$FULLSTOP` is the
    /// binary, and pid 1 is the shell.
    fn sh(&self, line: &str) -> Output {
        let mut command = Command::new("timeout");
        command.arg("60");
        if is_root() {
            command.args(["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]);
        }
        command.args(["sh", "-c", &format!("{line}\nexit $?")]);
        command.env("FULLSTOP", BINARY).env("FULLSTOP_DIR", self.state());
        command.env_remove("NO_COLOR").env("TERM", "xterm");
        command.output().unwrap()
    }

    fn examine(&self, line: &str) -> Found {
        let output = self.sh(line);
        let complaint = String::from_utf8_lossy(&output.stderr);
        let value = serde_json::from_slice(&output.stdout);
        let value = value.unwrap_or_else(|error| panic!("{error}: {output:?}"));
        assert_eq!(complaint, "");
        Found { value, status: output.status.code() }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

struct Found {
    value: Value,
    status: Option<i32>,
}

impl Found {
    fn finding(&self, area: &str, name: &str) -> &Value {
        let all = self.value["findings"].as_array().expect("findings");
        let mut found = all.iter().filter(|it| it["area"] == area && it["name"] == name);
        let one = found.next().unwrap_or_else(|| panic!("no {area}/{name} in {}", self.value));
        assert!(found.next().is_none(), "{area}/{name} stands twice");
        one
    }

    fn what(&self, area: &str, name: &str) -> &str {
        self.finding(area, name)["what"].as_str().expect("a sentence")
    }

    /// Green says nothing to do, and everything else does.
    fn keeps_the_law(&self) {
        for finding in self.value["findings"].as_array().expect("findings") {
            assert_eq!(finding["level"] == "green", finding["next"].is_null(), "{finding}");
        }
        assert_eq!(self.value["verdict"] == "green", self.value["next"].is_null());
        assert_eq!(self.status, Some(i32::from(self.value["verdict"] == "red")), "{}", self.value);
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn needs_root() -> Played {
    if is_root() { Ok(()) } else { Err("only root can play it".to_owned()) }
}

fn needs(program: &str) -> Played {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let there = std::env::split_paths(&path).any(|dir| dir.join(program).is_file());
    if there { Ok(()) } else { Err(format!("{program} is not installed")) }
}

/// Where root may make cgroups, asked of the doctor and then of the kernel.
fn place(found: &Found) -> Result<PathBuf, String> {
    let what = found.what("cage", "cage");
    match what.split_once(" beneath ") {
        Some((before, dir)) if before.starts_with("cgroup:") => Ok(PathBuf::from(dir)),
        _ => Err(format!("no cgroup to be had here: {what}")),
    }
}

fn of_doctors(place: &Path) -> usize {
    let names = fs::read_dir(place).unwrap().flatten().map(|entry| entry.file_name());
    names.filter(|name| name.to_string_lossy().starts_with("fullstop-doctor-")).count()
}

fn root_with_a_cgroup_gets_one() -> Played {
    needs_root()?;
    let scratch = Scratch::new();
    // What the kernel allows is asked without the doctor.
    let usual = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map(Path::new);
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = own.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or("..").to_owned();
    let procs = |mount: &&Path| mount.join(&own).join("cgroup.controllers").exists();
    let dir = usual.into_iter().find(procs).ok_or("no cgroup v2 where it usually is")?.join(own);
    let test = dir.join(format!("doctor-test-{}", std::process::id()));
    fs::create_dir(&test).map_err(|error| format!("{}: {error}", dir.display()))?;
    fs::remove_dir(&test).unwrap();

    let found = scratch.examine("$FULLSTOP doctor --json");
    found.keeps_the_law();
    assert_eq!(found.value["cage"], "cgroup");
    assert_eq!(found.finding("cage", "cage")["level"], "green");
    assert_eq!(place(&found)?, dir.components().collect::<PathBuf>());
    assert!(found.what("escape", "servers").contains("docker"));
    assert!(!found.value.to_string().contains("cannot be told from a stranger"));
    assert_eq!(of_doctors(&dir), 0, "the try left something behind");

    let shown = scratch.sh("$FULLSTOP doctor");
    let shown = String::from_utf8_lossy(&shown.stdout);
    assert!(shown.contains("cgroup: a run of uid 0 gets one beneath"), "{shown}");
    Ok(())
}

fn a_cgroup_left_over_is_named() -> Played {
    struct Left(PathBuf);
    impl Drop for Left {
        fn drop(&mut self) {
            let _ = fs::remove_dir(&self.0);
        }
    }
    needs_root()?;
    let scratch = Scratch::new();
    let place = place(&scratch.examine("$FULLSTOP doctor --json"))?;
    let tag = |state: &Path| Tag::new(&LOST.parse().unwrap(), state).cgroup();
    let left = Left(place.join(tag(&scratch.state())));
    fs::create_dir(&left.0).unwrap();
    let other = Left(place.join(tag(Path::new("/of/another"))));
    fs::create_dir(&other.0).unwrap();
    let found = scratch.examine("$FULLSTOP doctor --json");
    let what = found.what("state", "cgroups");
    assert!(what.starts_with("1 left over"), "that of another state directory is told: {what}");
    found.keeps_the_law();
    let next = found.finding("state", "cgroups")["next"].as_str().unwrap_or_default().to_owned();
    assert_eq!(next, "fullstop sweep");
    // One that an unfinished run has a right to is not left over.
    scratch.run(LOST, "{}", true);
    let found = scratch.examine("$FULLSTOP doctor --json");
    assert!(!found.what("state", "cgroups").contains(LOST));
    Ok(())
}

fn a_user_without_one_is_told_the_way_out() -> Played {
    needs_root()?;
    needs("setpriv")?;
    let scratch = Scratch::new();
    // The target directory may be closed to others.
    fs::copy(BINARY, scratch.0.join("fullstop")).unwrap();
    std::os::unix::fs::chown(scratch.state(), Some(NOBODY), Some(NOBODY)).unwrap();
    let found = scratch.examine(&format!(
        "setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups \
         \"$FULLSTOP_DIR/../fullstop\" doctor --json"
    ));
    found.keeps_the_law();
    if found.value["cage"] == "cgroup" {
        return Err("here even uid 65534 can make cgroups".to_owned());
    }
    assert_eq!(found.value["cage"], "tree");
    let cage = found.finding("cage", "cage");
    assert_eq!(cage["level"], "yellow");
    let what = found.what("cage", "cage");
    assert!(what.contains("uid 65534") && what.starts_with("tree:"), "{what}");
    let next = cage["next"].as_str().expect("a way out");
    let ways = ["-p Delegate=yes", "--cgroupns=private", "cgroup_writable", "mount -t cgroup2"];
    assert!(ways.iter().any(|way| next.contains(way)), "{next}");
    // A place that is there and closed is named.
    assert!(what.contains("no cgroup v2 is mounted") || what.contains("beneath /"), "{what}");
    assert!(found.what("escape", "newborn").contains("cannot be told from a stranger"));
    assert!(found.what("escape", "setuid").contains("a plain user cannot signal it"));
    assert!(found.what("state", "directory").contains("of uid 65534, mode 0700"));
    Ok(())
}

/// A record of a run that nobody looks after; its pid namespace is filled in there.
fn record(id: &str, namespace: &str) -> String {
    let line = |path| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let mut machine = line("/etc/machine-id");
    if machine.is_empty() {
        machine = line("/proc/sys/kernel/hostname");
    }
    let boot = line("/proc/sys/kernel/random/boot_id");
    format!(
        r#"{{"version":1,"id":"{id}","generation":1,"command":["sleep","9"],
        "state":{{"state":"running"}},"cage":"tree","cgroup":null,
        "world":{{"machine":"{machine}","boot":"{boot}","pid_namespace":{namespace}}},
        "keeper":null,"guard":null,"leader":null,"started_at":0}}"#
    )
}

fn lost_and_damaged_runs_are_told() -> Played {
    let scratch = Scratch::new();
    scratch.run(LOST, &record(LOST, "@HERE@"), true);
    scratch.run(ELSEWHERE, &record(ELSEWHERE, "1"), true);
    scratch.run(DAMAGED, "{\"version\":1,\"id\":", true);
    // History is counted, and not read.
    scratch.run(OVER, "{\"version\":1,\"id\":", false);
    fs::create_dir_all(scratch.state().join("groups/plan")).unwrap();
    fs::write(scratch.state().join("groups/plan/.closed"), "").unwrap();
    let found = scratch.examine(&format!(
        "sed -i s/@HERE@/$(stat -Lc %i /proc/self/ns/pid)/ $FULLSTOP_DIR/runs/{LOST}/record.json\n\
         $FULLSTOP doctor --json"
    ));
    found.keeps_the_law();
    assert_eq!(found.what("state", "runs"), "4 written down, 3 unfinished");
    let lost = found.what("state", "lost");
    assert!(lost.starts_with("1 run is lost") && lost.contains(LOST), "{lost}");
    assert!(!lost.contains(ELSEWHERE), "{lost}");
    assert_eq!(found.finding("state", "lost")["next"], "fullstop sweep");
    let elsewhere = found.what("state", "elsewhere");
    assert!(elsewhere.starts_with("1 lost") && elsewhere.contains("1 of pid namespace 1"));
    assert_eq!(found.finding("state", "elsewhere")["next"], "fullstop prune --forget");
    let damaged = found.what("state", "damaged");
    assert!(damaged.contains(&format!("{DAMAGED}/record.json is damaged")), "{damaged}");
    assert!(!damaged.contains(OVER), "{damaged}");
    let next = found.finding("state", "damaged")["next"].as_str().expect("a way out");
    assert!(next.contains(&format!("live/{DAMAGED}")), "{next}");
    assert!(found.what("state", "groups").contains("plan"));
    // It was only looked at.
    for id in [LOST, ELSEWHERE] {
        let lock = fs::metadata(scratch.state().join("live").join(id)).unwrap();
        assert_eq!(lock.nlink(), 2, "{id}");
    }
    let mut left: Vec<_> =
        fs::read_dir(scratch.state()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["groups", "live", "runs"]);
    Ok(())
}

fn red_is_status_1() -> Played {
    let scratch = Scratch::new();
    let found = scratch.examine("FULLSTOP_DIR=/dev/null $FULLSTOP doctor --json");
    found.keeps_the_law();
    assert_eq!((&found.value["verdict"], found.status), (&"red".into(), Some(1)));
    assert_eq!(found.finding("state", "directory")["level"], "red");
    let next = found.value["next"].as_str().expect("a way out");
    assert!(next.contains("FULLSTOP_DIR"), "{next}");
    let shown = scratch.sh("FULLSTOP_DIR=/dev/null $FULLSTOP doctor");
    assert_eq!(shown.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&shown.stdout).contains("\nred, next: set FULLSTOP_DIR"));
    Ok(())
}

fn colours_only_on_a_terminal() -> Played {
    needs("script")?;
    let scratch = Scratch::new();
    let coloured = |line: &str| scratch.sh(line).stdout.contains(&0x1b);
    assert!(!coloured("$FULLSTOP doctor"));
    assert!(coloured("script -qec '$FULLSTOP doctor' /dev/null </dev/null"));
    assert!(!coloured("NO_COLOR=1 script -qec '$FULLSTOP doctor' /dev/null </dev/null"));
    Ok(())
}
