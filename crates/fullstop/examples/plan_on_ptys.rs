//! A plan: several steps at once, each on a terminal of its own, as a person would run them side by
//! side. One of them asks, and is answered; one fails and does not end; then the plan is cancelled
//! as a whole, and no process, no terminal and no descriptor is left.
//!
//! ```text
//! cargo run --release -p fullstop --example plan_on_ptys
//! ```
//!
//! Read [`plan`] first.

use fullstop::{AttachOptions, Error, Exit, Key, Result, Run, Runs, Screen, Size, WindowEvent};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tokio::time::{sleep, timeout};

/// The steps of one plan, which is one of many that may be under way.
const PLAN: &str = "plan/release";
const SIZE: Size = Size { rows: 24, cols: 80 };
/// How often a terminal is looked at whose prompt is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Longer than anything takes here.
const PATIENCE: Duration = Duration::from_mins(1);

/// It asks before it goes on.
const REVIEW: &str =
    "printf 'Release it? [y/N] '; read answer; test \"$answer\" = y && echo released";
/// It draws over its own line, as most programs do that show how far they are.
const BUILD: &str =
    "read line; for done in 33 66 100; do printf '\\rbuilt %s %%' $done; done; echo";
/// It has failed, and neither it nor its server ends. It hears no hang-up of its terminal.
const DEPLOY: &str = "trap '' HUP INT; setsid sleep 300 & \
                      echo 'error: no such host'; printf 'Retry? '; read line; exit 1";

/// The plan, from its first step to the cancel.
async fn plan(runs: &Runs) -> Result<()> {
    let step = |script: &str| runs.command("sh").args(["-c", script]).group(PLAN).pty(SIZE);
    let review = step(REVIEW).name("review").spawn().await?;
    let build = step(BUILD).name("build").spawn().await?;
    let deploy = step(DEPLOY).name("deploy").spawn().await?;
    let watcher = step("echo watching; exec sleep 300").name("watcher").spawn().await?;

    // A step that asks is answered, key by key.
    let screen = until_it_shows(&review, "Release it? [y/N] ").await?;
    assert_eq!((screen.cursor().row, screen.cursor().col), (0, 18), "it waits behind its prompt");
    review.input().send_keys(&["y".parse()?, Key::enter()]).await?;
    let report = review.wait().await?;
    println!("review: answered, and {}", report.reason());
    assert_eq!(report.exit, Some(Exit::Code(0)));
    let (shown, _) = review.output().await?;
    assert!(String::from_utf8_lossy(&shown).ends_with("released\r\n"));

    // A window follows a step to its end. The screen is what a person sees in it.
    let mut window = build.attach(AttachOptions::default()).await?;
    window.type_bytes(b"\r").await?;
    let mut screen = Screen::new(SIZE);
    let report = loop {
        match window.next().await? {
            WindowEvent::Over(report) => break report,
            shown => screen.show(&shown),
        }
    };
    println!("build: {}, and its terminal shows {:?}", report.reason(), screen.text().trim());
    assert_eq!(screen.text().trim(), "built 100 %");

    // A step that has failed, and lives on with what it has started, shows what went wrong.
    let screen = until_it_shows(&deploy, "Retry?").await?;
    println!("deploy: lives on, and shows {:?}", screen.text());
    until_it_shows(&watcher, "watching").await?;

    let mut members = Vec::new();
    for run in [&deploy, &watcher] {
        members.extend(run.processes().await?.iter().map(|process| process.pid));
    }
    let terminals: Vec<_> = members.iter().filter_map(|pid| Terminal::of(*pid)).collect();
    assert!(members.len() >= 3 && terminals.len() == members.len(), "{members:?}, {terminals:?}");

    println!("cancelling the plan");
    let cancelled = runs.group(PLAN)?.close().await?;
    for report in &cancelled.reports {
        let name = report.name.as_deref().unwrap_or("?");
        let proof = report.proof.as_ref().map_or("none".to_owned(), ToString::to_string);
        println!("{name}: {}, {}, proof {proof}", report.state.word(), report.reason());
    }
    assert!(cancelled.is_clean() && cancelled.reports.len() == 2, "{cancelled:?}");
    assert!(!members.into_iter().any(lives), "the cancel has not reached everybody");
    comes_true("a terminal is left", || !terminals.iter().any(Terminal::is_there)).await;
    let refused = step("echo never").spawn().await;
    assert!(matches!(refused, Err(Error::GroupClosed { .. })), "{refused:?}");
    Ok(())
}

/// What a step shows, once that holds this text. A step that ends before is an error, which has its
/// report.
async fn until_it_shows(run: &Run, text: &str) -> Result<Screen> {
    let look = async {
        loop {
            let screen = run.screen().await?;
            if screen.text().contains(text) {
                return Ok(screen);
            }
            sleep(LOOK_EVERY).await;
        }
    };
    let late = |_| Error::NotReady { id: run.id().clone(), patience: PATIENCE };
    timeout(PATIENCE, look).await.map_err(late)?
}

/// A terminal, which is not taken for a later one of the same number.
#[derive(Debug)]
struct Terminal {
    path: PathBuf,
    made: (i64, i64),
}

impl Terminal {
    /// On which a process writes.
    fn of(pid: i32) -> Option<Terminal> {
        let path = std::fs::read_link(format!("/proc/{pid}/fd/1")).ok()?;
        let made = Terminal::made(&path)?;
        path.starts_with("/dev/pts").then_some(Terminal { path, made })
    }

    fn made(path: &PathBuf) -> Option<(i64, i64)> {
        let found = std::fs::metadata(path).ok()?;
        Some((found.ctime(), found.ctime_nsec()))
    }

    fn is_there(&self) -> bool {
        Terminal::made(&self.path) == Some(self.made)
    }
}

/// Whether a process of this pid lives. A zombie does not.
fn lives(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, behind)| !behind.starts_with(['Z', 'X']))
}

/// How many descriptors this program has.
fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

/// Looks until this is so: the kernel may take a moment after the last close.
async fn comes_true(otherwise: &str, is_true: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_true() {
        assert!(began.elapsed() < PATIENCE, "{otherwise}");
        sleep(LOOK_EVERY).await;
    }
}

#[tokio::main]
pub async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let state = std::env::temp_dir().join(format!("fullstop-plan-{}", std::process::id()));
    let runs = Runs::at(&state)?;
    let before = descriptors();
    plan(&runs).await?;
    // The thread that carries out orders lingers for two seconds, with three of its own.
    comes_true("a descriptor is left", || descriptors() <= before).await;
    println!("descriptors: {before} before, {} after", descriptors());
    std::fs::remove_dir_all(&state)?;
    Ok(())
}
