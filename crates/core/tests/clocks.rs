//! What holds for the clocks of a run, whatever it writes and whenever it is paused.

use std::time::Duration;

use fullstop_core::machine::{Input, Leader, Plan, State, decide};
use fullstop_core::words::{Exit, Moment, OnExit, Reason};
use proptest::collection::vec;
use proptest::prelude::*;

const BEGIN: Moment = Moment::at(Duration::from_secs(1));

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn plan(timeout: Option<Duration>, no_output: Option<Duration>, idle: Option<Duration>) -> Plan {
    let ladder = "term@tree:1s,kill".parse().unwrap();
    Plan { ladder, on_exit: OnExit::Wait, timeout, no_output, idle }
}

/// Plans with any of the clocks, all within the same seconds, so that they race.
fn plans() -> impl Strategy<Value = Plan> {
    let patience = || prop::option::of((0..6_u64).prop_map(|n| ms(n * 500)));
    (patience(), patience(), patience()).prop_map(|(a, b, c)| plan(a, b, c))
}

fn signs() -> impl Strategy<Value = Input> {
    prop_oneof![Just(Input::Output), Just(Input::Busy)]
}

/// Facts and when they come, counted from the beginning.
type History = Vec<(Duration, Input)>;

fn histories() -> impl Strategy<Value = History> {
    vec(((0..8_u64).prop_map(|n| ms(n * 250)), signs()), 0..8).prop_map(|mut history| {
        history.sort_by_key(|(at, _)| *at);
        history
    })
}

/// Lives through a history and beyond it, with a tick whenever one is wanted. Says how long it took
/// until a clock ended it, and which.
fn ended(
    plan: &Plan,
    mut state: State,
    history: &[(Duration, Input)],
) -> Option<(Duration, Reason)> {
    let mut facts = history.iter();
    loop {
        let next = facts.next();
        let due = state.deadline().filter(|at| next.is_none_or(|(then, _)| *at <= BEGIN + *then));
        if let Some(at) = due {
            state = decide(plan, state, Input::Tick, at).0;
            return Some((at.since(BEGIN), state.reason()?));
        }
        let (then, input) = next?;
        // One that comes too early, or in a pause, changes nothing.
        for input in [Input::Tick, *input, Input::Tick] {
            let (after, effects) = decide(plan, state, input, BEGIN + *then);
            assert_eq!((after.reason(), effects), (None, vec![]));
            state = after;
        }
    }
}

fn born(plan: &Plan) -> State {
    let state = decide(plan, State::new(plan, BEGIN), Input::CageReady, BEGIN).0;
    decide(plan, state, Input::LeaderRuns, BEGIN).0
}

/// When this clock runs out: at the end of the first wait between facts that wind it up which is
/// as long as its patience.
fn runs_out(patience: Duration, history: &History, winds: impl Fn(Input) -> bool) -> Duration {
    let mut since = Duration::ZERO;
    for (at, _) in history.iter().filter(|(_, input)| winds(*input)) {
        if *at >= since + patience {
            break;
        }
        since = *at;
    }
    since + patience
}

fn expected(plan: &Plan, history: &History) -> Option<(Duration, Reason)> {
    let overall = plan.timeout.map(|patience| (patience, Reason::OverallTimeout));
    let silence = plan.no_output.map(|patience| {
        let at = runs_out(patience, history, |input| input == Input::Output);
        (at, Reason::NoOutputTimeout)
    });
    let idle = plan.idle.map(|patience| {
        let at = runs_out(patience, history, |_| true);
        (at, Reason::IdleTimeout)
    });
    [overall, silence, idle].into_iter().flatten().min_by_key(|(at, _)| *at)
}

/// A pause: after how much time that counts, how long, and what was heard in it.
#[derive(Clone, Debug)]
struct Pause {
    at: Duration,
    length: Duration,
    heard: Option<Input>,
}

fn pauses() -> impl Strategy<Value = Vec<Pause>> {
    // A little off the history's beat, so that a pause is never at the instant of an end.
    let pause = ((0..8_u64), 0..10_000_u64, prop::option::of(signs()))
        .prop_map(|(n, length, heard)| Pause { at: ms(n * 250 + 7), length: ms(length), heard });
    vec(pause, 0..4).prop_map(|mut pauses| {
        pauses.sort_by_key(|pause| pause.at);
        pauses
    })
}

/// The history as it would be without pauses: what was heard in one counts from its end.
fn without(history: &History, pauses: &[Pause]) -> History {
    let heard = pauses.iter().filter_map(|pause| Some((pause.at, pause.heard?)));
    let mut history: History = history.iter().copied().chain(heard).collect();
    history.sort_by_key(|(at, _)| *at);
    history
}

/// The history with its pauses, each told twice, as is its end.
fn with(history: &History, pauses: &[Pause]) -> History {
    let lost = |at: Duration| -> Duration {
        pauses.iter().filter(|pause| pause.at < at).map(|pause| pause.length).sum()
    };
    let mut all: History = history.iter().map(|(at, input)| (*at + lost(*at), *input)).collect();
    let mut passed = Duration::ZERO;
    for Pause { at, length, heard } in pauses {
        let begin = *at + passed;
        passed += *length;
        all.extend([(begin, Input::Paused), (begin + *length / 3, Input::Paused)]);
        all.extend(heard.map(|heard| (begin + *length / 2, heard)));
        all.extend([(begin + *length, Input::Resumed), (begin + *length, Input::Resumed)]);
    }
    // Stable, so that what comes at one instant stays in its order.
    all.sort_by_key(|(at, _)| *at);
    all
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whoever_writes_often_enough_is_never_too_silent(
        patience in 2..5000_u64,
        waits in vec((any::<prop::sample::Index>(), prop::option::of(Just(Input::Busy))), 0..20),
    ) {
        let plan = plan(None, Some(ms(patience)), None);
        let mut at = Duration::ZERO;
        let mut history = vec![];
        for (wait, busy) in waits {
            let wait = ms(wait.index(usize::try_from(patience).unwrap()) as u64);
            history.extend(busy.map(|busy| (at + wait / 2, busy)));
            at += wait;
            history.push((at, Input::Output));
        }
        // And when it stops writing, it is, however busy.
        let end = at + ms(patience);
        history.push((at + ms(patience - 1), Input::Busy));
        prop_assert_eq!(ended(&plan, born(&plan), &history), Some((end, Reason::NoOutputTimeout)));
    }

    #[test]
    fn whoever_writes_or_works_is_never_idle(
        patience in 2..5000_u64,
        waits in vec((any::<prop::sample::Index>(), signs()), 0..20),
    ) {
        let plan = plan(None, None, Some(ms(patience)));
        let mut at = Duration::ZERO;
        let mut history = vec![];
        for (wait, sign) in waits {
            at += ms(wait.index(usize::try_from(patience).unwrap()) as u64);
            history.push((at, sign));
        }
        let end = at + ms(patience);
        prop_assert_eq!(ended(&plan, born(&plan), &history), Some((end, Reason::IdleTimeout)));
    }

    #[test]
    fn the_first_clock_to_run_out_is_the_reason(plan in plans(), history in histories()) {
        prop_assert_eq!(ended(&plan, born(&plan), &history), expected(&plan, &history));
    }

    #[test]
    fn a_pause_makes_no_clock_early_or_late(
        plan in plans(),
        history in histories(),
        pauses in pauses(),
    ) {
        let lost = |end: Duration| -> Duration {
            pauses.iter().filter(|pause| pause.at < end).map(|pause| pause.length).sum()
        };
        let end = ended(&plan, born(&plan), &without(&history, &pauses));
        let paused = ended(&plan, born(&plan), &with(&history, &pauses));
        prop_assert_eq!(paused, end.map(|(end, reason)| (end + lost(end), reason)));
    }

    #[test]
    fn where_it_stands_makes_no_difference(plan in plans(), history in histories()) {
        let running = ended(&plan, born(&plan), &history);
        prop_assert_eq!(ended(&plan, State::new(&plan, BEGIN), &history), running);
        let State::Running { clocks, .. } = born(&plan) else { unreachable!() };
        let waiting = State::Running { leader: Leader::Gone(Exit::Code(0)), clocks };
        prop_assert_eq!(ended(&plan, waiting, &history), running);
    }

    #[test]
    fn no_time_is_too_long(
        patiences in prop::array::uniform3(prop::option::of(long())),
        history in vec((long(), any_fact()), 0..8),
    ) {
        let [timeout, no_output, idle] = patiences;
        let plan = plan(timeout, no_output, idle);
        let shortest = patiences.into_iter().flatten().min();
        let mut now = BEGIN;
        let mut state = born(&plan);
        for (wait, input) in history {
            now = now + wait;
            if state.deadline().is_some_and(|at| at <= now) {
                break;
            }
            state = decide(&plan, state, input, now).0;
            // What cannot be counted any more lies at the end of time, not at its beginning.
            prop_assert_eq!(state.reason(), None);
            let due = state.deadline();
            prop_assert!(due.is_none_or(|at| shortest.is_some_and(|wait| at >= BEGIN + wait)));
        }
    }
}

/// From nothing to all the time there is.
fn long() -> impl Strategy<Value = Duration> {
    let year = Duration::from_hours(365 * 24);
    prop_oneof![
        Just(Duration::ZERO),
        Just(year),
        Just(Duration::MAX.saturating_sub(year)),
        Just(Duration::MAX),
        any::<u64>().prop_map(Duration::from_secs),
    ]
}

fn any_fact() -> impl Strategy<Value = Input> {
    prop_oneof![signs(), Just(Input::Paused), Just(Input::Resumed), Just(Input::Tick)]
}
