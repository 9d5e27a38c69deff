//! A scratch directory with a `fullstop` that has two runs and some groups, and
//! programs run with it in front of their PATH.

use fullstop_cli::args::Shell;
use fullstop_cli::completions;
use libtest_mimic::{Completion, Trial};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// One group is named to do harm where a shell expands it. Errors are noise that
/// nobody should see.
const FULLSTOP: &str = r#"#!/bin/sh
echo noise >&2
case "$*" in
"ps -a -q") printf '%s\n' 1run-one 1run-two ;;
"group ls -q") printf '%s\n' plan plan/research 'evil$(touch harm)' ;;
*) exit 125 ;;
esac
"#;

/// What every shell must offer for these lines: all of the first, none of the
/// second.
const LINES: &[(&str, &[&str], &[&str])] = &[
    ("fullstop ", &["run", "start", "group", "help"], &["--version", "ls"]),
    ("fullstop st", &["start", "stop"], &["run", "restart"]),
    ("fullstop --v", &["--version"], &["--verbose"]),
    ("fullstop run --on", &["--on-exit", "--on-host-exit"], &["--ladder", "--json"]),
    ("fullstop run -q --on-exit ", &["stop", "wait", "release"], &["ignore", "sh"]),
    ("fullstop run --on-exit w", &["wait"], &["stop"]),
    ("fullstop run --agent c", &["claude", "codex"], &["gemini"]),
    ("fullstop run --agent cl --on-exit wa", &["wait"], &["stop"]),
    ("fullstop run --group pl", &["plan", "plan/research"], &["1run-one"]),
    ("fullstop run --cage tree unsha", &["unshare"], &[]),
    ("fullstop run -- unsha", &["unshare"], &[]),
    ("fullstop start --wait-ready ", &["tcp:", "file:"], &[]),
    ("fullstop ps --", &["--all", "--watch", "--help"], &["--follow"]),
    ("fullstop stop ", &["1run-one", "1run-two"], &["plan"]),
    ("fullstop stop 1run-one 1run-t", &["1run-two"], &["1run-one"]),
    ("fullstop signal us", &["usr1", "usr2"], &["1run-one"]),
    ("fullstop signal usr1 ", &["1run-one", "1run-two"], &["usr2"]),
    ("fullstop group ", &["ls", "stop", "close", "open"], &["run"]),
    ("fullstop group stop pl", &["plan", "plan/research"], &["1run-one"]),
    ("fullstop completions ", &["bash", "zsh", "fish"], &["run"]),
    ("fullstop help gr", &["group"], &["run"]),
    ("fullstop demo ", &[], &["run", "1run-one"]),
];

fn check(line: &str, offered: &[String]) {
    let expected = LINES.iter().find(|(known, ..)| *known == line);
    let (_, wanted, unwanted) = expected.unwrap_or_else(|| panic!("{line:?} is not in the list"));
    let has = |word: &&&str| offered.iter().any(|offer| offer == **word);
    assert!(wanted.iter().all(|word| has(&word)), "{line:?} offers {offered:?}");
    assert!(!unwanted.iter().any(|word| has(&word)), "{line:?} offers {offered:?}");
}

/// One call for each line, in the words of any of the shells.
pub fn calls(lines: &[&str]) -> String {
    let calls: Vec<_> = lines.iter().map(|line| format!("complete_line '{line}'")).collect();
    calls.join("\n") + "\n"
}

/// Those that every shell is asked.
pub fn lines() -> Vec<&'static str> {
    LINES.iter().map(|(line, ..)| *line).collect()
}

pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Scratch {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("fullstop-tools-{}-{number}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        fs::create_dir_all(dir.join("bin")).unwrap();
        let scratch = Scratch(dir);
        let program = scratch.file("bin/fullstop", FULLSTOP);
        fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
        scratch
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path
    }

    pub fn script(&self, shell: Shell) -> PathBuf {
        self.file("script", &completions::script(shell))
    }

    /// Runs it here, within a minute; returns what it printed, and checks that
    /// it had nothing to complain about.
    pub fn run(&self, program: &str, args: &[&str]) -> String {
        let path = std::env::var("PATH").unwrap_or_default();
        let output = Command::new("timeout")
            .args(["60", program])
            .args(args)
            .current_dir(&self.0)
            .env("PATH", format!("{}:{path}", self.0.join("bin").display()))
            .env("HOME", &self.0)
            .env("TERM", "dumb")
            .output()
            .unwrap();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program} {args:?}: {} {complaint}", output.status);
        assert_eq!(complaint, "", "{program} {args:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// What was offered for each line: printed as `line<TAB>offer`, one on a line.
    pub fn check_all(&self, printed: &str) {
        for (line, ..) in LINES {
            let offers = printed.lines().filter_map(|row| row.split_once('\t'));
            let offers = offers.filter(|(about, _)| about == line);
            let offered: Vec<_> = offers.map(|(_, offer)| offer.to_owned()).collect();
            check(line, &offered);
        }
        assert!(!self.0.join("harm").exists(), "a name was expanded");
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A test that is skipped, with the reason, where the program is not installed.
pub fn with(program: &'static str, name: &str, test: fn()) -> Trial {
    Trial::ignorable_test(format!("{program}::{name}"), move || {
        if !installed(program) {
            return Ok(Completion::ignored_with(format!("{program} is not installed")));
        }
        test();
        Ok(Completion::Completed)
    })
}

fn installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}
