//! The machine's table, row by row: every kind of state against every kind of fact.
//!
//! `table.txt` is written to be read. A row says the fact, the state after it (`=` where nothing
//! changes), and after an arrow what is ordered. Times count from the moment the state was entered.

use std::time::Duration;

use fullstop_core::clocks::Clocks;
use fullstop_core::duration;
use fullstop_core::ladder::{Ladder, Step, host_gone};
use fullstop_core::machine::{Ask, Climb, Effect, Input, Leader, Plan, Rest, State, Stop, decide};
use fullstop_core::signal::Signal;
use fullstop_core::words::{Exit, Moment, OnExit, Proof, Reason};

const TABLE: &str = include_str!("table.txt");

/// When every state below was entered.
const ENTERED: Duration = Duration::from_secs(100);
/// Soon enough to be the same ask as the first.
const SOON: Duration = Duration::from_millis(500);
/// Late enough to be another ask, and before any deadline but that of a stuck run.
const LATER: Duration = Duration::from_millis(1500);

fn after(wait: Duration) -> Moment {
    Moment::at(ENTERED + wait)
}

fn seconds(seconds: u64) -> Moment {
    after(Duration::from_secs(seconds))
}

fn ladder() -> Ladder {
    "int@leader:3s,close-stdin:1s,term@tree:2s,kill".parse().unwrap()
}

fn soft(ladder: Ladder, step: usize) -> Climb {
    let deadline = after(ladder.soft()[step].patience);
    Climb::Soft { ladder, step, deadline }
}

fn stopping(reason: Reason, leader: Leader, climb: Climb, asked: bool) -> State {
    let asked = asked.then(|| after(Duration::ZERO));
    State::Stopping(Stop { reason, leader, climb, asked, limit: None })
}

/// Asking the leader, with a second less than its step alone would take.
fn limited() -> State {
    let (reason, leader, limit) = (Reason::Stopped, Leader::Alive, seconds(2));
    let climb = Climb::Soft { ladder: ladder(), step: 0, deadline: limit };
    State::Stopping(Stop { reason, leader, climb, asked: Some(seconds(0)), limit: Some(limit) })
}

fn order(within: Option<u64>) -> Input {
    let within = within.map(Duration::from_millis);
    Input::Ask(Ask::Order { reason: Reason::GroupClosed, within })
}

fn patient(timeout: Option<u64>, no_output: Option<u64>, idle: Option<u64>) -> Plan {
    let [timeout, no_output, idle] =
        [timeout, no_output, idle].map(|seconds| seconds.map(Duration::from_secs));
    Plan { ladder: ladder(), on_exit: OnExit::Stop, timeout, no_output, idle }
}

/// Most states have the overall clock alone.
fn timed() -> Plan {
    patient(Some(60), None, None)
}

/// These states have all clocks.
fn watched() -> Vec<(&'static str, Plan, State)> {
    let gone = Leader::Gone(Exit::Code(7));
    let entered = after(Duration::ZERO);
    let plan = || patient(Some(60), Some(30), Some(20));
    let clocks = Clocks::new(&plan(), entered);
    // Five seconds of its patience were used up when it was paused.
    let before = Moment::at(ENTERED.saturating_sub(Duration::from_secs(5)));
    let paused = Clocks::new(&plan(), before).pause(entered);
    let state = |leader, clocks| State::Running { leader, clocks };
    let running = |plan: Plan| {
        let state = state(Leader::Alive, Clocks::new(&plan, entered));
        (plan, state)
    };
    let (silent, is_silent) = running(patient(Some(60), Some(30), None));
    let (at_once, is_at_once) = running(patient(Some(20), Some(20), Some(20)));
    let (quiet, is_quiet) = running(patient(None, Some(20), Some(20)));
    vec![
        ("watched while starting", plan(), State::Starting { born: false, clocks }),
        ("watched", plan(), state(Leader::Alive, clocks)),
        ("watched for silence", silent, is_silent),
        ("all clocks run out at once", at_once, is_at_once),
        ("silent and idle at once", quiet, is_quiet),
        ("paused while starting", plan(), State::Starting { born: true, clocks: paused }),
        ("paused", plan(), state(Leader::Alive, paused)),
        ("waiting for the rest, watched", plan(), state(gone, clocks)),
    ]
}

fn states() -> Vec<(&'static str, State)> {
    let gone = Leader::Gone(Exit::Code(7));
    let clocks = Clocks::new(&timed(), after(Duration::ZERO));
    let kill = || Climb::Kill { deadline: seconds(4) };
    let asked = |leader, climb| stopping(Reason::Stopped, leader, climb, true);
    vec![
        ("starting", State::Starting { born: false, clocks }),
        ("born", State::Starting { born: true, clocks }),
        ("running", State::Running { leader: Leader::Alive, clocks }),
        ("waiting for the rest", State::Running { leader: gone, clocks }),
        ("asking the leader", asked(Leader::Alive, soft(ladder(), 0))),
        ("closing stdin", asked(Leader::Alive, soft(ladder(), 1))),
        ("asking the tree", asked(Leader::Alive, soft(ladder(), 2))),
        ("asking within a time", limited()),
        (
            "asking the rest",
            stopping(Reason::Exited, gone, soft(ladder().after_leader(), 0), false),
        ),
        (
            "asking without a host",
            stopping(Reason::HostGone, Leader::Alive, soft(host_gone(), 0), false),
        ),
        ("killing", asked(Leader::Alive, kill())),
        (
            "killing what failed to start",
            stopping(Reason::SpawnFailed, Leader::Unborn, kill(), false),
        ),
        (
            "stuck",
            State::Stuck { reason: Reason::Stopped, leader: Leader::Alive, again: seconds(1) },
        ),
        ("ended", State::Ended { reason: Reason::Exited, leader: gone, proof: Proof::NoChildren }),
        ("released", State::Released { leader: gone }),
    ]
}

/// The facts, the policy that matters to them, and when they come.
fn facts(state: &State) -> Vec<(&'static str, Input, OnExit, Moment)> {
    let exited = |rest| Input::LeaderExited { exit: Exit::Code(0), rest };
    let (soon, later) = (after(SOON), after(LATER));
    let ask = |ask| Input::Ask(ask);
    let due = state.deadline().unwrap_or(later);
    let early = if due > soon { soon } else { after(Duration::ZERO) };
    let stop = OnExit::Stop;
    vec![
        ("cage-ready", Input::CageReady, stop, soon),
        ("leader-runs", Input::LeaderRuns, stop, soon),
        ("spawn-failed", Input::SpawnFailed, stop, soon),
        ("leader-exited (stop)", exited(Rest::Alive), OnExit::Stop, soon),
        ("leader-exited (wait)", exited(Rest::Alive), OnExit::Wait, soon),
        ("leader-exited (release)", exited(Rest::Alive), OnExit::Release, soon),
        ("all-exited", exited(Rest::Gone(Proof::CgroupEmpty)), OnExit::Release, soon),
        ("extinct", Input::Extinct(Proof::CgroupEmpty), stop, soon),
        ("ask", ask(Ask::Plain), stop, soon),
        ("ask hup", ask(Ask::Signal(Signal::HUP)), stop, soon),
        ("ask int from terminal", ask(Ask::Terminal(Signal::INT)), stop, soon),
        ("ask hup from terminal", ask(Ask::Terminal(Signal::HUP)), stop, soon),
        ("ask, later", ask(Ask::Plain), stop, later),
        ("ask hup, later", ask(Ask::Signal(Signal::HUP)), stop, later),
        ("ask int from terminal, later", ask(Ask::Terminal(Signal::INT)), stop, later),
        ("ask hup from terminal, later", ask(Ask::Terminal(Signal::HUP)), stop, later),
        ("order", order(None), stop, soon),
        ("order, later", order(None), stop, later),
        ("order within 1s", order(Some(1000)), stop, soon),
        ("order within 10s", order(Some(10_000)), stop, soon),
        ("order within 0s", order(Some(0)), stop, soon),
        ("kill", Input::Kill, stop, soon),
        ("forward usr1", Input::Forward(Signal::USR1), stop, soon),
        ("host-gone", Input::HostGone, stop, soon),
        ("storm", Input::Storm, stop, soon),
        ("keeper-died", Input::KeeperDied, stop, soon),
        ("output", Input::Output, stop, soon),
        ("busy", Input::Busy, stop, soon),
        ("paused", Input::Paused, stop, soon),
        ("resumed", Input::Resumed, stop, soon),
        ("tick, too early", Input::Tick, stop, early),
        ("tick", Input::Tick, stop, due),
    ]
}

/// The facts that mean something to a clock. Whatever else happens to these states is as above.
fn facts_for_clocks(state: &State) -> Vec<(&'static str, Input, OnExit, Moment)> {
    let mut facts = facts(state);
    facts.retain(|(_, input, on_exit, _)| match input {
        Input::LeaderExited { rest: Rest::Alive, .. } => *on_exit == OnExit::Wait,
        Input::CageReady
        | Input::LeaderRuns
        | Input::Output
        | Input::Busy
        | Input::Paused
        | Input::Resumed
        | Input::Tick => true,
        _ => false,
    });
    facts.push(("tick, long after", Input::Tick, OnExit::Stop, seconds(600)));
    facts
}

fn at(moment: Moment) -> String {
    duration::format(moment.since(after(Duration::ZERO)))
}

fn show_leader(leader: Leader) -> String {
    match leader {
        Leader::Unborn => "unborn".to_owned(),
        Leader::Alive => "alive".to_owned(),
        Leader::Gone(Exit::Code(code)) => format!("gone({code})"),
        Leader::Gone(Exit::Signal(signal)) => format!("gone({signal})"),
        Leader::Gone(Exit::Unknown) => "gone(?)".to_owned(),
    }
}

fn show_clocks(clocks: &Clocks) -> String {
    let all = [
        (" until", clocks.overall),
        (", silent until", clocks.silence),
        (", idle until", clocks.idle),
        (", paused at", clocks.paused),
    ];
    let shown = all.into_iter().filter_map(|(word, when)| Some(format!("{word} {}", at(when?))));
    shown.collect()
}

fn show_state(state: &State) -> String {
    match state {
        State::Starting { born: false, clocks } => format!("starting{}", show_clocks(clocks)),
        State::Starting { born: true, clocks } => format!("born{}", show_clocks(clocks)),
        State::Running { leader, clocks } => {
            format!("running{}, leader {}", show_clocks(clocks), show_leader(*leader))
        }
        State::Stopping(Stop { reason, leader, climb, asked, limit }) => {
            let step = climb.current_step().map_or("kill".to_owned(), Step::label);
            let leader = show_leader(*leader);
            let asked = asked.map_or("unasked".to_owned(), |when| format!("asked at {}", at(when)));
            let limit = limit.map(|limit| format!(", within {}", at(limit))).unwrap_or_default();
            let until = at(climb.deadline());
            format!("{reason}: {step} until {until}, leader {leader}, {asked}{limit}")
        }
        State::Stuck { reason, leader, again } => {
            format!("stuck: {reason}, leader {}, again at {}", show_leader(*leader), at(*again))
        }
        State::Ended { reason, leader, proof } => {
            format!("ended: {reason}, leader {}, {proof}", show_leader(*leader))
        }
        State::Released { leader } => format!("released, leader {}", show_leader(*leader)),
    }
}

fn show_effect(effect: &Effect) -> String {
    match effect {
        Effect::Signal { signal, whom } => format!("{signal} to {whom:?}").to_lowercase(),
        Effect::Heard(signal) => format!("{signal} was heard"),
        Effect::Forward(signal) => format!("forward {signal}"),
        Effect::WriteInput(text) => format!("write {text:?}"),
        Effect::Spawn => "spawn".to_owned(),
        Effect::CloseStdin => "close stdin".to_owned(),
        Effect::Kill => "kill".to_owned(),
        Effect::Release => "release".to_owned(),
        Effect::Report => "report".to_owned(),
    }
}

/// The whole table as the machine decides it, line by line.
fn decided() -> Vec<String> {
    let mut lines = vec![];
    let timed = states().into_iter().map(|(name, state)| (name, timed(), facts(&state), state));
    let watched = watched().into_iter();
    let watched = watched.map(|(name, plan, state)| (name, plan, facts_for_clocks(&state), state));
    for (name, plan, facts, state) in timed.chain(watched) {
        lines.extend([name.to_owned(), format!("    {}", show_state(&state))]);
        for (fact, input, on_exit, now) in facts {
            let plan = Plan { on_exit, ..plan.clone() };
            let (next, effects) = decide(&plan, state.clone(), input, now);
            let next = if next == state { "=".to_owned() } else { show_state(&next) };
            let effects: Vec<String> = effects.iter().map(show_effect).collect();
            let arrow = if effects.is_empty() { "" } else { " -> " };
            lines.push(format!("        {fact}: {next}{arrow}{}", effects.join(", ")));
        }
        lines.push(String::new());
    }
    lines
}

#[test]
fn every_row_is_as_written() {
    let decided = decided();
    let mut state = "";
    let mut wrong = vec![];
    for (number, (is, should)) in decided.iter().zip(TABLE.lines()).enumerate() {
        if !is.is_empty() && !is.starts_with(' ') {
            state = is;
        }
        if is != should {
            wrong.push(format!("line {}, {state}\nwritten: {should}\ndecided: {is}", number + 1));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(decided.len(), TABLE.lines().count());
}
