//! A run whose host is gone gets another one; whose host lives, it does not; and an adoption that
//! was dropped half way stops nothing.

use fullstop::{AppRun, Error, EventKind, HostPolicy, HostedBy, Id, Reason, Run, Runs, blocking};
use std::future::poll_fn;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::pin::pin;
use std::process::{Child, Command, Stdio};
use std::task::Poll;
use std::time::{Duration, Instant};

const APP: &str = "adoption-test";
/// Longer than anything that is meant to happen at once takes on a busy machine.
const SOON: Duration = Duration::from_mins(1);
/// An adoption is polled about so often until it is done.
const MOST_POLLS: u32 = 7;
const ROUNDS: u32 = 70;

type Outcome = Result<(), Box<dyn std::error::Error>>;
type Test = fn(&Runs) -> Outcome;

fn main() -> Outcome {
    let words: Vec<String> = std::env::args().collect();
    if let [_, role, state] = words.as_slice()
        && role == "be-a-window"
    {
        return be_a_window(Path::new(state));
    }
    let dir = std::env::temp_dir().join(format!("fullstop-adoption-{}", std::process::id()));
    let runs = Runs::at(&dir)?.with_app(APP)?;
    let tests: [(&str, Test); 7] = [
        ("a_living_siblings_run_is_not_adopted", a_living_siblings_run_is_not_adopted),
        ("a_dead_predecessors_run_is_adopted", a_dead_predecessors_run_is_adopted),
        ("the_policy_is_the_adopters", the_policy_is_the_adopters),
        ("a_handle_from_before_an_adoption_lets_nothing_go", old_handles_let_nothing_go),
        ("what_is_restarted_or_stays_can_be_adopted", what_is_restarted_or_stays_can_be_adopted),
        ("a_dropped_adoption_stops_nothing", a_dropped_adoption_stops_nothing),
        ("what_is_being_stopped_is_not_adopted", what_is_being_stopped_is_not_adopted),
    ];
    for (name, test) in tests {
        test(&runs)?;
        println!("test {name} ... ok");
    }
    assert_eq!(blocking::wait(runs.live_ids())?, Vec::<Id>::new(), "a run was left");
    std::fs::remove_dir_all(&dir)?;
    Ok(())
}

/// Another process of the application: it begins a run, says its id, and lives until its stdin
/// ends.
fn be_a_window(state: &Path) -> Outcome {
    let runs = Runs::at(state)?.with_app(APP)?;
    let run = blocking::start(runs.command("sleep").arg("60"))?;
    println!("{}", run.id());
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

struct Window {
    process: Child,
    run: Run,
}

impl Window {
    fn open(runs: &Runs) -> Result<Window, Box<dyn std::error::Error>> {
        let mut process = Command::new(std::env::current_exe()?)
            .arg("be-a-window")
            .arg(runs.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(process.stdout.take().ok_or("no stdout")?).read_line(&mut line)?;
        Ok(Window { run: blocking::wait(runs.find(line.trim()))?, process })
    }

    fn crash(mut self) -> Result<Run, Box<dyn std::error::Error>> {
        self.process.kill()?;
        self.process.wait()?;
        Ok(self.run)
    }
}

fn found(runs: &Runs, run: &Run) -> Result<AppRun, Box<dyn std::error::Error>> {
    let all = blocking::wait(runs.of(APP))?;
    Ok(all.into_iter().find(|found| found.run.id() == run.id()).ok_or("it is not found")?)
}

fn refusal(adopted: Result<Run, Error>) -> String {
    adopted.map_or_else(|error| error.code().to_owned(), |_| "adopted".to_owned())
}

fn adopt(run: &Run, policy: HostPolicy) -> Result<Run, Error> {
    blocking::wait(run.adopt(policy))
}

fn a_living_siblings_run_is_not_adopted(runs: &Runs) -> Outcome {
    let window = Window::open(runs)?;
    let sibling = found(runs, &window.run)?;
    assert_eq!(sibling.hosted_by, HostedBy::Sibling);
    assert_eq!(sibling.host.process.pid, i32::try_from(window.process.id())?);
    assert_eq!(refusal(adopt(&sibling.run, HostPolicy::Stop)), "has-host");
    assert_eq!(found(runs, &window.run)?.host, sibling.host, "the record was changed");
    blocking::wait(window.crash()?.kill())?;
    Ok(())
}

fn a_dead_predecessors_run_is_adopted(runs: &Runs) -> Outcome {
    let run = Window::open(runs)?.crash()?;
    let orphan = found(runs, &run)?;
    assert_eq!(orphan.hosted_by, HostedBy::Predecessor);
    let ours = adopt(&orphan.run, HostPolicy::Stop)?;
    let adopted = found(runs, &run)?;
    assert_eq!(adopted.hosted_by, HostedBy::ThisProcess);
    assert_eq!(adopted.host.process.pid, i32::try_from(std::process::id())?);
    let tells =
        |kind: &EventKind| matches!(kind, EventKind::Adopted { host, .. } if *host == adopted.host);
    until(|| {
        let events =
            blocking::wait(runs.past_events(std::slice::from_ref(run.id()))).unwrap_or_default();
        events.iter().any(|event| tells(&event.kind))
    });
    drop(ours);
    let report = blocking::wait(run.wait())?;
    assert!(report.is_proven(), "{report:?}");
    Ok(())
}

fn the_policy_is_the_adopters(runs: &Runs) -> Outcome {
    let run = blocking::start(runs.command("sleep").arg("60"))?;
    let stops = adopt(&run, HostPolicy::Stop)?;
    // The host itself may say otherwise, on another line: the first one means nothing then.
    let ignores = adopt(&run, HostPolicy::Ignore)?;
    drop(stops);
    drop(ignores);
    assert_lives(&run)?;
    // And once more.
    drop(adopt(&run, HostPolicy::Stop)?);
    assert!(blocking::wait(run.wait())?.is_proven());
    Ok(())
}

/// Nor does it let anything stay.
fn old_handles_let_nothing_go(runs: &Runs) -> Outcome {
    for round in 0..20 {
        let spawned = blocking::spawn(runs.command("sleep").arg("60"))?;
        let stops = adopt(&spawned, HostPolicy::Stop)?;
        let refused = blocking::wait(spawned.stay()).map_err(|error| error.code().to_owned());
        assert_eq!(refused, Err("not-host".to_owned()), "round {round}");
        // A clone of the old handle is one as well.
        let clone = spawned.clone();
        drop(spawned);
        let adopted_again = adopt(&clone, HostPolicy::Stop)?;
        drop((stops, clone));
        assert_lives(&adopted_again)?;
        let found = blocking::wait(runs.find(&adopted_again.id().to_string()))?;
        drop(adopted_again);
        let report = blocking::wait(found.wait())?;
        assert_eq!(report.reason(), Reason::Stopped, "round {round}: {report:?}");
    }
    Ok(())
}

fn what_is_restarted_or_stays_can_be_adopted(runs: &Runs) -> Outcome {
    let run = blocking::start(runs.command("sleep").arg("60"))?;
    let run = blocking::wait(run.restart())?;
    assert_eq!(blocking::wait(run.record())?.host, None, "a restarted run has no host");
    let ours = adopt(&run, HostPolicy::Stop)?;
    blocking::wait(ours.stay())?;
    drop(ours);
    assert_lives(&run)?;
    let ours = adopt(&run, HostPolicy::Stop)?;
    assert_eq!(found(runs, &run)?.hosted_by, HostedBy::ThisProcess);
    let report = blocking::wait(ours.stop())?;
    assert_eq!(report.reason(), Reason::Stopped);
    Ok(())
}

fn a_dropped_adoption_stops_nothing(runs: &Runs) -> Outcome {
    let orphan = Window::open(runs)?.crash()?;
    let mut done = 0;
    for round in 0..ROUNDS {
        if let Some(ours) = adopt_and_drop_after(&orphan, 1 + round % MOST_POLLS)? {
            done += 1;
            blocking::wait(ours.stay())?;
        }
        assert_lives(&orphan)?;
    }
    assert!(done > 0, "no adoption was polled to its end");
    assert!(done < ROUNDS, "every adoption was done: none was dropped");
    blocking::wait(orphan.kill())?;
    Ok(())
}

/// Begins an adoption, and drops it after some polls; the run, if it was done before.
fn adopt_and_drop_after(run: &Run, polls: u32) -> Result<Option<Run>, Error> {
    blocking::wait(async {
        let mut adoption = pin!(run.adopt(HostPolicy::Stop));
        let mut left = polls;
        poll_fn(|context| {
            left -= 1;
            match adoption.as_mut().poll(context) {
                Poll::Ready(run) => Poll::Ready(run.map(Some)),
                Poll::Pending if left == 0 => Poll::Ready(Ok(None)),
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    })
}

fn what_is_being_stopped_is_not_adopted(runs: &Runs) -> Outcome {
    let script = "trap '' TERM; echo ready; while :; do sleep 1; done";
    let command = runs.command("sh").args(["-c", script]);
    let run = blocking::start(command.ladder("term@tree:60s,kill".parse()?))?;
    until(|| blocking::wait(run.output()).is_ok_and(|(out, _)| out == b"ready\n"));
    blocking::wait(run.ask_to_stop())?;
    assert_eq!(refusal(adopt(&run, HostPolicy::Ignore)), "ending");
    blocking::wait(run.kill())?;
    assert_eq!(refusal(adopt(&run, HostPolicy::Ignore)), "ended");
    let nameless = runs.clone().with_app("no word").map(|_| ());
    assert_eq!(nameless.map_err(|error| error.code().to_owned()), Err("invalid-app".to_owned()));
    Ok(())
}

/// The keeper has heard what was said before, and the run goes on.
fn assert_lives(run: &Run) -> Outcome {
    blocking::wait(run.signal("winch".parse()?))?;
    let state = blocking::wait(run.record())?.state;
    assert_eq!(state.word(), "running", "{state:?}");
    Ok(())
}

fn until(is_so: impl Fn() -> bool) {
    let until = Instant::now() + SOON;
    while !is_so() {
        assert!(Instant::now() < until, "it has not come to pass");
        std::thread::yield_now();
    }
}
