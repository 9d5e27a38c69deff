//! Orders are given whole, by their first poll.

use crate::kit::{SOON, Sleeper, finish, poll_times, until};
use fullstop::{
    EndUpdate, Id, Order, Ready, Reason, Run, RunState, Runs, Signal, Stdin, ask_all, end_all,
    end_all_with_ticks,
};
use std::error::Error;
use std::pin::Pin;
use std::time::Duration;

/// An order is answered after a few polls; this many come to every await of it.
const MOST_POLLS: usize = 12;
/// Each of many orders.
const MANY: usize = 5;

type Done = Pin<Box<dyn Future<Output = ()>>>;

type Give = fn(Run) -> Done;

/// Orders that a run's end follows from, by their names.
fn orders() -> Vec<(&'static str, Give)> {
    vec![
        ("stop", |run| Box::pin(async move { drop(run.stop().await) })),
        ("stop_with", |run| Box::pin(async move { drop(run.stop_with(|_| ()).await) })),
        ("stop_within", |run| {
            Box::pin(async move { drop(run.stop_within(Duration::from_secs(1)).await) })
        }),
        ("kill", |run| Box::pin(async move { drop(run.kill().await) })),
        ("ask_to_stop", |run| Box::pin(async move { drop(run.ask_to_stop().await) })),
        ("ask_to_kill", |run| Box::pin(async move { drop(run.ask_to_kill().await) })),
        ("signal", |run| Box::pin(async move { drop(run.signal(Signal::TERM).await) })),
    ]
}

/// What any order does that was given before has been seen by the keeper when this returns, and
/// written down.
fn catch_up(run: &Run) -> fullstop::Result<()> {
    for _ in 0..2 {
        finish(run.signal(Signal::WINCH))?;
    }
    Ok(())
}

fn untouched(sleeper: &Sleeper, what: &str) -> fullstop::Result<()> {
    catch_up(&sleeper.run)?;
    let record = finish(sleeper.run.record())?;
    assert_eq!(record.state, RunState::Running, "{what}");
    assert!(sleeper.lives(), "{what}");
    Ok(())
}

pub fn one_run(runs: &Runs) -> Result<(), Box<dyn Error>> {
    for (name, order) in orders() {
        let never = Sleeper::start(runs, 10)?;
        assert!(poll_times(order(never.run.clone()), 0).is_none());
        untouched(&never, name)?;
        finish(never.run.kill())?;
        for polls in 1..=MOST_POLLS {
            let sleeper = Sleeper::start(runs, 11)?;
            let answered = poll_times(order(sleeper.run.clone()), polls).is_some();
            let report = finish(sleeper.run.wait_for(Some(SOON)))?;
            assert!(report.is_proven() && !sleeper.lives(), "{name}, after {polls} polls");
            if answered {
                break;
            }
        }
    }
    restarts(runs)?;
    input(runs)?;
    asks_whoever_is_late(runs)?;
    Ok(())
}

/// The new generation has the same id, so that it is known.
fn restarts(runs: &Runs) -> Result<(), Box<dyn Error>> {
    for polls in 0..=MOST_POLLS {
        let sleeper = Sleeper::start(runs, 12)?;
        let answered = poll_times(sleeper.run.restart(), polls).is_some();
        if polls == 0 {
            untouched(&sleeper, "restart")?;
        } else {
            let id = sleeper.run.id().to_string();
            let is_second = |run: &Run| {
                let record = finish(run.record());
                record.is_ok_and(|it| it.generation == 2 && it.state == RunState::Running)
            };
            until("its second generation runs", || {
                finish(runs.find(&id)).is_ok_and(|run| is_second(&run))
            });
        }
        finish(finish(runs.find(&sleeper.run.id().to_string()))?.kill())?;
        if answered {
            break;
        }
    }
    Ok(())
}

/// What was given of its input arrives whole, and its end is an order like any.
fn input(runs: &Runs) -> Result<(), Box<dyn Error>> {
    for polls in 0..=MOST_POLLS {
        let run = finish(runs.command("cat").stdin(Stdin::Pipe).start())?;
        let sent = poll_times(run.send(b"whole\n"), polls).is_some();
        let mut closed = poll_times(run.close_stdin(), polls).is_some();
        if polls == 0 {
            catch_up(&run)?;
            assert_eq!(finish(run.record())?.state, RunState::Running, "its input was ended");
            finish(run.close_stdin())?;
            closed = false;
        }
        let report = finish(run.wait_for(Some(SOON)))?;
        assert_eq!(report.reason(), Reason::Exited, "after {polls} polls");
        let (out, _) = finish(run.output())?;
        assert!(out == b"whole\n" || out.is_empty() && !sent, "after {polls} polls: {out:?}");
        if sent && closed {
            break;
        }
    }
    Ok(())
}

/// `ready_or_stop` waits, and that ends with it; the stop that follows is an order.
fn asks_whoever_is_late(runs: &Runs) -> Result<(), Box<dyn Error>> {
    let never = Ready::File("/nonexistent/ready".into());
    let late = Sleeper::start(runs, 13)?;
    let waiting = late.run.ready_or_stop(&never, Duration::from_hours(1));
    assert!(poll_times(waiting, 1).is_none());
    untouched(&late, "ready_or_stop, while it waits")?;
    assert!(finish(late.run.ready_or_stop(&never, Duration::ZERO)).is_err());
    let report = finish(late.run.wait_for(Some(SOON)))?;
    assert_eq!(report.reason(), Reason::StartTimeout);
    Ok(())
}

/// What is ordered of many.
#[derive(Clone, Copy, Debug)]
enum ToMany {
    EndAll,
    AskAll,
    Stop,
    Close,
}

pub fn many_runs(runs: &Runs) -> Result<(), Box<dyn Error>> {
    for what in [ToMany::EndAll, ToMany::AskAll, ToMany::Stop, ToMany::Close] {
        for polls in 0..=MOST_POLLS {
            if order_many(runs, what, polls)? {
                break;
            }
        }
    }
    Ok(())
}

/// Whether it was answered.
fn order_many(runs: &Runs, what: ToMany, polls: usize) -> Result<bool, Box<dyn Error>> {
    let name = format!("plan-{what:?}-{polls}").to_lowercase();
    let all: Vec<Sleeper> = (0..MANY)
        .map(|number| Sleeper::start_in(runs, 20 + number, &name))
        .collect::<Result<_, _>>()?;
    let group = runs.group(&name)?;
    let these: Vec<Run> = all.iter().map(|sleeper| sleeper.run.clone()).collect();
    let order = async {
        match what {
            ToMany::EndAll => end_all(these, Order::Stop, |_: &Id, _| ()).await,
            ToMany::AskAll => ask_all(these, Order::Kill, |_, _| ()).await,
            ToMany::Stop => drop(group.stop().await),
            ToMany::Close => drop(group.close().await),
        }
    };
    let answered = poll_times(order, polls).is_some();
    if polls == 0 {
        for sleeper in &all {
            untouched(sleeper, &name)?;
        }
        assert_eq!(finish(group.closed_by())?, None);
        for sleeper in &all {
            finish(sleeper.run.kill())?;
        }
        return Ok(false);
    }
    for sleeper in &all {
        assert!(
            finish(sleeper.run.wait_for(Some(SOON)))?.is_proven() && !sleeper.lives(),
            "{name}"
        );
    }
    if matches!(what, ToMany::Close) {
        assert_eq!(finish(group.closed_by())?, Some(name));
    }
    Ok(answered)
}

/// Who draws a clock needs no runtime for it either.
pub fn clock(runs: &Runs) -> Result<(), Box<dyn Error>> {
    let sleeper = Sleeper::start(runs, 31)?;
    let (mut ticks, mut done) = (0, 0);
    // It is stopped once the clock has been drawn.
    let stops = runs.command("sh").args(["-c", "trap '' TERM; echo deaf; exec sleep 1000"]);
    let deaf = finish(stops.ladder("term@leader:300s,kill".parse()?).start())?;
    finish(deaf.wait_ready(&Ready::Line("deaf".to_owned()), SOON))?;
    let idle = Some(Duration::from_millis(1));
    let these = vec![sleeper.run.clone(), deaf.clone()];
    let order = end_all_with_ticks(these, Order::Stop, idle, |told| match told {
        None => {
            ticks += 1;
            if ticks == 3 {
                assert!(poll_times(deaf.kill(), 1).is_none());
            }
        }
        Some((_, EndUpdate::Done(_))) => done += 1,
        Some(_) => {}
    });
    finish(order);
    assert!(ticks >= 3 && done == 2, "{ticks} ticks, {done} reports");
    Ok(())
}

/// Stops of one run, short and long ones, beside the last handle that is dropped: one stop, in
/// the shortest of the times.
pub fn that_meet(runs: &Runs) -> Result<(), Box<dyn Error>> {
    const SHORT: Duration = Duration::from_millis(200);
    let times = [Duration::MAX, Duration::from_hours(1), SHORT, Duration::MAX];
    for turn in 0..times.len() {
        let deaf = runs.command("sh").args(["-c", "trap '' TERM; echo deaf; exec sleep 1000"]);
        let deaf = deaf.capture().ladder("term@leader:300s,kill".parse()?);
        let run = finish(deaf.spawn())?;
        finish(run.wait_ready(&Ready::Line("deaf".to_owned()), SOON))?;
        let found = finish(runs.find(&run.id().to_string()))?;
        let mut stops: Vec<_> = (0..times.len())
            .map(|at| Box::pin(found.stop_within(times[(turn + at) % times.len()])))
            .collect();
        let mut plain = Box::pin(found.stop());
        assert!(poll_times(plain.as_mut(), 1).is_none());
        for (at, stop) in stops.iter_mut().enumerate() {
            assert!(poll_times(stop.as_mut(), 1).is_none());
            if at == turn {
                finish(run.ask_to_stop())?;
            }
        }
        drop(run);
        let report = finish(found.wait_for(Some(SOON)))?;
        assert_eq!(report.reason(), Reason::Stopped, "turn {turn}");
        for stop in stops {
            let told = finish(stop)?;
            assert!(told.is_proven() && told.steps == report.steps, "turn {turn}: {told:?}");
        }
        assert!(finish(plain)?.is_proven(), "turn {turn}");
    }
    Ok(())
}

pub fn waits(runs: &Runs) -> Result<(), Box<dyn Error>> {
    let sleeper = Sleeper::start(runs, 30)?;
    let run = &sleeper.run;
    let never = Ready::File("/nonexistent/ready".into());
    let hour = Duration::from_hours(1);
    for polls in 0..2 {
        assert!(poll_times(run.wait(), polls).is_none());
        assert!(poll_times(run.wait_for(Some(hour)), polls).is_none());
        assert!(poll_times(run.wait_ready(&never, hour), polls).is_none());
        untouched(&sleeper, "waits")?;
    }
    finish(run.kill())?;
    Ok(())
}
