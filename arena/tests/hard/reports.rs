//! Where the report goes, and what happens when it cannot.

use std::fs::{self, File};
use std::process::Stdio;

use arena::report::Report;
use arena::{Context, Drain, Ended, Outcome, Registry, World, ensure, millis};

use super::kit::{ANYWHERE, EVERYWHERE, Launch, Place, SOON, add, all_clean};

pub fn register(registry: &mut Registry) {
    add(registry, "report::to-stdout", &EVERYWHERE, &[], to_stdout);
    add(registry, "report::cannot-be-opened", &ANYWHERE, &[], cannot_be_opened);
    add(registry, "report::cannot-be-written", &EVERYWHERE, &[], cannot_be_written);
}

fn to_stdout(world: &mut World, place: Place) -> Outcome {
    let mut run = Launch::new(place)
        .without_report()
        .options(&["--report", "-"])
        .stdout(Stdio::piped())
        .start(world, &["sh", "-c", "echo the output; sleep 50 & exit 2"])?;
    let output = Drain::start(run.child.stdout.take().context("stdout")?);
    let ended = world.wait(&run.spawned, SOON)?;
    ensure!(ended == Ended::Code(2), "run ended with {ended}");
    let said = output.expect_end(millis(500))?.beginning;
    let (first, rest) = said.split_once('\n').context("one line at least")?;
    ensure!(first == "the output", "the command's output comes first: {said}");
    let path = world.out().join("report.json");
    fs::write(&path, rest).context("report")?;
    let report = Report::read(&path)?;
    ensure!(report.state == "ended" && report.leftovers.len() == 1, "{report:?}");
    // A file that is appended to keeps what it has.
    let path = world.out().join("log");
    fs::write(&path, "before\n").context("log")?;
    let log = File::options().append(true).open(&path).context("log")?;
    let launch = Launch::new(place).without_report().options(&["--report", "-"]);
    let (ended, _) = launch.stdout(log).finish(world, &["echo", "during"])?;
    ensure!(ended == Ended::Code(0), "run ended with {ended}");
    let log = fs::read_to_string(&path).context("log")?;
    ensure!(log.starts_with("before\nduring\n{"), "the log is {log:?}");
    all_clean(world)
}

fn cannot_be_opened(world: &mut World, place: Place) -> Outcome {
    for path in ["/no/such/dir/report.json", "/", ""] {
        let launch = Launch::new(place).without_report().options(&["--report", path]);
        let (ended, run) = launch.finish(world, &["touch", "was-here"])?;
        let said = run.stderr();
        ensure!(ended == Ended::Code(125), "--report {path:?}: run ended with {ended}: {said}");
        ensure!(said.lines().count() == 1, "not one line was said: {said:?}");
        ensure!(said.starts_with("fullstop: ") && said.contains("--report"), "unclear: {said:?}");
        ensure!(!world.dir().join("was-here").exists(), "the command ran all the same");
    }
    all_clean(world)
}

/// A report that cannot be written changes nothing but is said.
fn cannot_be_written(world: &mut World, place: Place) -> Outcome {
    let launch = Launch::new(place).without_report().options(&["--report", "/dev/full"]);
    let (ended, run) = launch.finish(world, &["sh", "-c", "exit 3"])?;
    ensure!(ended == Ended::Code(3), "run ended with {ended}");
    let said = run.stderr();
    ensure!(said.lines().count() == 1, "not one line was said: {said:?}");
    ensure!(said.contains("report"), "unclear: {said:?}");
    all_clean(world)
}
