//! `fullstop demo`: a hostile little agent, shown, stopped, and proven dead.

use fullstop_cage::linux::{Held, descendants, is_alive};
use fullstop_core::report::{Member, Report};
use fullstop_core::signal::Signal;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// What agents really do: tools in sessions of their own, servers that detach,
/// that scrub their environment, that do not listen. Each says when it is up, and
/// none lives longer than a minute even without us.
const AGENT: &str = r#"
tool='echo up; exec sleep 60'
setsid sh -c "$tool" &
sh -c "trap '' TERM INT HUP; $tool" &
(setsid sh -c "$tool" &)
(env -i PATH="$PATH" setsid sh -c "trap '' TERM; $tool" &)
echo up
wait
"#;
const UP: usize = 5;

pub fn demo() -> Result<(), String> {
    let report = std::env::temp_dir().join(format!("fullstop-demo-{}.json", std::process::id()));
    let shown = show(&report);
    let _ = std::fs::remove_file(&report);
    shown
}

fn show(path: &std::path::Path) -> Result<(), String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    println!("A hostile little agent: tools in sessions of their own, a daemon, one with an");
    println!("empty environment, one deaf to TERM.\n");
    println!("$ fullstop run --grace 1s --report … -- sh -c '…'\n");
    let mut run = Command::new(own)
        .args(["run", "--grace", "1s", "--name", "demo", "--report"])
        .arg(path)
        .args(["--", "sh", "-c", AGENT])
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot start the demo: {error}"))?;
    wait_until_up(&mut run)?;
    let guard = i32::try_from(run.id()).map_err(|error| error.to_string())?;
    let tree = descendants(guard);
    println!("fullstop run (pid {guard}), the guard");
    print_below(&tree, guard, "");
    println!("\n$ kill -TERM {guard}\n");
    let held = Held::child(guard).ok_or("the run is gone already")?;
    held.send(Signal::TERM).map_err(|error| error.to_string())?;
    run.wait().map_err(|error| error.to_string())?;
    let text = std::fs::read_to_string(path).map_err(|error| format!("no report: {error}"))?;
    let report: Report = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    print_report(&report);
    let alive = tree.iter().filter(|member| is_alive(member)).count();
    println!("\nLooked for in /proc: {alive} of {} alive.", tree.len());
    Ok(())
}

fn wait_until_up(run: &mut Child) -> Result<(), String> {
    let stdout = run.stdout.take().ok_or("the demo has no output")?;
    let lines = BufReader::new(stdout).lines().take(UP).filter_map(Result::ok).count();
    if lines == UP { Ok(()) } else { Err("the demo's agent did not come up".to_owned()) }
}

fn print_below(tree: &[Member], parent: i32, indent: &str) {
    let children: Vec<_> = tree.iter().filter(|member| member.ppid == parent).collect();
    for (place, child) in children.iter().enumerate() {
        let last = place + 1 == children.len();
        let (branch, below) = if last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        let command = child.command.lines().next().unwrap_or_default();
        let session = if child.sid == child.pid { "  (own session)" } else { "" };
        println!("{indent}{branch}{} {command:.40}{session}", child.pid);
        print_below(tree, child.pid, &format!("{indent}{below}"));
    }
}

fn print_report(report: &Report) {
    println!("The report:");
    for step in &report.steps {
        println!(
            "  {:>5} ms  {:<14} {} alive, {} signalled",
            step.at_ms, step.step, step.alive, step.signalled
        );
    }
    let proof = report.proof.map_or("none".to_owned(), |proof| proof.to_string());
    println!("  {:>5} ms  {}: {}, proof: {proof}", report.elapsed_ms, report.state, report.reason);
}
