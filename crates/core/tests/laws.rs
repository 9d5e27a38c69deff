//! What holds for the machine whatever it is told, in whatever order, however often.

use std::time::Duration;

use fullstop_core::ladder::Ladder;
use fullstop_core::machine::{
    Ask, Climb, Effect, Input, Leader, Plan, Recipients, Rest, State, Stop, decide,
};
use fullstop_core::signal::Signal;
use fullstop_core::words::{Exit, Moment, OnExit, Proof, Reason};
use proptest::collection::vec;
use proptest::prelude::*;

fn signals() -> impl Strategy<Value = Signal> {
    (1..=64).prop_map(|number| Signal::new(number).unwrap())
}

fn ladders() -> impl Strategy<Value = Ladder> {
    let step = prop_oneof![
        (signals(), prop_oneof![Just("leader"), Just("group"), Just("tree")])
            .prop_map(|(signal, target)| format!("{signal}@{target}")),
        Just("close-stdin".to_owned()),
        Just("input:\"/exit\"".to_owned()),
    ];
    let step = (step, 0..4000_u64).prop_map(|(step, patience)| format!("{step}:{patience}ms"));
    (vec(step, 0..5), 1..4000_u64).prop_map(|(steps, kill)| {
        let steps: String = steps.into_iter().map(|step| step + ",").collect();
        format!("{steps}kill:{kill}ms").parse().unwrap()
    })
}

fn plans() -> impl Strategy<Value = Plan> {
    let on_exit = prop_oneof![Just(OnExit::Stop), Just(OnExit::Wait), Just(OnExit::Release)];
    let patience = || prop::option::of((0..20_000_u64).prop_map(Duration::from_millis));
    let clocks = (patience(), patience(), patience());
    (ladders(), on_exit, clocks).prop_map(|(ladder, on_exit, (timeout, no_output, idle))| Plan {
        ladder,
        on_exit,
        timeout,
        no_output,
        idle,
    })
}

fn proofs() -> impl Strategy<Value = Proof> {
    prop_oneof![Just(Proof::NoChildren), Just(Proof::CgroupEmpty), Just(Proof::ScanClean)]
}

fn orders() -> impl Strategy<Value = Ask> {
    prop::option::of((0..4000_u64).prop_map(Duration::from_millis))
        .prop_map(|within| Ask::Order { reason: Reason::GroupClosed, within })
}

fn inputs() -> impl Strategy<Value = Input> {
    let exit = prop_oneof![
        (0..256).prop_map(Exit::Code),
        signals().prop_map(Exit::Signal),
        Just(Exit::Unknown),
    ];
    let rest = prop_oneof![4 => Just(Rest::Alive), 1 => proofs().prop_map(Rest::Gone)];
    let ask = prop_oneof![
        Just(Ask::Plain),
        orders(),
        signals().prop_map(Ask::Signal),
        prop_oneof![Just(Signal::INT), Just(Signal::QUIT), Just(Signal::HUP)]
            .prop_map(Ask::Terminal),
    ];
    prop_oneof![
        4 => Just(Input::CageReady),
        4 => Just(Input::LeaderRuns),
        1 => Just(Input::SpawnFailed),
        2 => (exit, rest).prop_map(|(exit, rest)| Input::LeaderExited { exit, rest }),
        1 => proofs().prop_map(Input::Extinct),
        3 => ask.prop_map(Input::Ask),
        1 => Just(Input::Kill),
        1 => signals().prop_map(Input::Forward),
        1 => Just(Input::HostGone),
        1 => Just(Input::Storm),
        1 => Just(Input::KeeperDied),
        2 => prop_oneof![Just(Input::Output), Just(Input::Busy)],
        2 => prop_oneof![Just(Input::Paused), Just(Input::Resumed)],
        8 => Just(Input::Tick),
    ]
}

/// Facts with the time that passed before each.
fn histories() -> impl Strategy<Value = Vec<(Input, Duration)>> {
    let wait = prop_oneof![
        3 => Just(Duration::ZERO),
        2 => (0..5000_u64).prop_map(Duration::from_millis),
        1 => (0..100_000_u64).prop_map(Duration::from_millis),
    ];
    vec((inputs(), wait), 0..40)
}

/// One decision of a history.
struct Turn {
    before: State,
    input: Input,
    now: Moment,
    after: State,
    effects: Vec<Effect>,
}

fn live(plan: &Plan, history: &[(Input, Duration)]) -> Vec<Turn> {
    let mut now = Moment::at(Duration::from_secs(1));
    let mut state = State::new(plan, now);
    let mut turns = vec![];
    for (input, wait) in history {
        now = now + *wait;
        let before = state.clone();
        let (after, effects) = decide(plan, state, *input, now);
        state = after.clone();
        turns.push(Turn { before, input: *input, now, after, effects });
    }
    turns
}

fn carries_proof(input: Input) -> bool {
    matches!(input, Input::Extinct(_) | Input::LeaderExited { rest: Rest::Gone(_), .. })
}

fn is_stuck(state: &State) -> bool {
    matches!(state, State::Stuck { .. })
}

fn is_ended(state: &State) -> bool {
    matches!(state, State::Ended { .. })
}

fn is_released(state: &State) -> bool {
    matches!(state, State::Released { .. })
}

fn asks_somebody(effect: &Effect) -> bool {
    !matches!(effect, Effect::Spawn | Effect::Kill | Effect::Release | Effect::Report)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn it_ends_with_a_proof_and_only_then(plan in plans(), history in histories()) {
        for turn in live(&plan, &history) {
            if is_ended(&turn.after) && !is_ended(&turn.before) {
                prop_assert!(carries_proof(turn.input));
            }
            // Before the birth a proof says nothing yet.
            let unborn = matches!(turn.before, State::Starting { born: false, .. });
            if carries_proof(turn.input) && !unborn {
                prop_assert!(turn.after.is_over());
            }
        }
    }

    #[test]
    fn the_first_reason_never_changes(plan in plans(), history in histories()) {
        for turn in live(&plan, &history) {
            if let Some(reason) = turn.before.reason() {
                prop_assert_eq!(turn.after.reason(), Some(reason));
            }
        }
    }

    #[test]
    fn nothing_is_ordered_with_the_proof_or_after_it(plan in plans(), history in histories()) {
        for turn in live(&plan, &history) {
            if turn.before.is_over() {
                prop_assert_eq!(&turn.after, &turn.before);
                prop_assert!(turn.effects.is_empty());
            } else if carries_proof(turn.input) {
                prop_assert!(turn.effects.iter().all(|effect| *effect == Effect::Report));
            }
        }
    }

    #[test]
    fn the_leader_is_born_once_and_only_without_a_reason(plan in plans(), history in histories()) {
        let turns = live(&plan, &history);
        let born: Vec<&Turn> =
            turns.iter().filter(|turn| turn.effects.contains(&Effect::Spawn)).collect();
        prop_assert!(born.len() <= 1);
        prop_assert!(born.iter().all(|turn| turn.after.reason().is_none()));
    }

    #[test]
    fn nobody_is_asked_once_the_kill_was_ordered(plan in plans(), history in histories()) {
        let turns = live(&plan, &history);
        let mut orders = turns.iter().flat_map(|turn| &turn.effects);
        let _ = orders.by_ref().find(|effect| **effect == Effect::Kill);
        prop_assert!(!orders.any(asks_somebody));
    }

    #[test]
    fn a_stop_goes_up_the_ladder_only(plan in plans(), history in histories()) {
        let place = |state: &State| match state {
            State::Stopping(Stop { climb: Climb::Soft { ladder, step, .. }, .. }) => {
                Some((ladder.clone(), *step))
            }
            _ => None,
        };
        for turn in live(&plan, &history) {
            if let (Some((old, from)), Some((new, to))) = (place(&turn.before), place(&turn.after)) {
                prop_assert!(turn.input == Input::HostGone || (old == new && from <= to));
            }
            if turn.before.is_killing() || is_stuck(&turn.before) {
                let after = &turn.after;
                prop_assert!(after.is_killing() || is_stuck(after) || after.is_over());
            }
        }
    }

    #[test]
    fn only_a_leader_that_lives_is_spoken_to(plan in plans(), history in histories()) {
        for turn in live(&plan, &history) {
            let to_leader = |effect: &Effect| {
                asks_somebody(effect)
                    && !matches!(effect, Effect::Signal { whom: Recipients::Children | Recipients::Group | Recipients::Tree, .. })
            };
            if turn.effects.iter().any(to_leader) {
                prop_assert_eq!(turn.after.leader(), Leader::Alive);
            }
        }
    }

    #[test]
    fn every_stop_has_a_deadline(plan in plans(), history in histories()) {
        for turn in live(&plan, &history) {
            let waits = matches!(turn.after, State::Stopping(_) | State::Stuck { .. });
            prop_assert!(!waits || turn.after.deadline().is_some());
            prop_assert!(!turn.after.is_over() || turn.after.deadline().is_none());
            // A tick that comes when it should moves on, so that nobody spins.
            if turn.input == Input::Tick && turn.before.deadline().is_some_and(|at| at <= turn.now) {
                prop_assert_ne!(turn.before, turn.after);
            }
        }
    }

    #[test]
    fn the_clock_alone_brings_a_stop_to_its_end(plan in plans(), history in histories()) {
        let host_gone = fullstop_core::ladder::host_gone();
        let longest = plan.ladder.total().max(host_gone.total())
            + plan.ladder.kill_patience().max(host_gone.kill_patience());
        let most = plan.ladder.soft().len().max(1) + 1;
        for Turn { after, now: began, .. } in live(&plan, &history) {
            let (mut state, mut now, mut ticks) = (after, began, 0);
            while matches!(state, State::Stopping(_)) && ticks < most {
                now = state.deadline().unwrap().max(now);
                state = decide(&plan, state, Input::Tick, now).0;
                ticks += 1;
            }
            prop_assert!(ticks == 0 || is_stuck(&state));
            prop_assert!(now.since(began) <= longest);
        }
    }

    #[test]
    fn an_order_within_a_time_kills_by_then(
        plan in plans(),
        history in histories(),
        within in 0..4000_u64,
    ) {
        let within = Duration::from_millis(within);
        for Turn { after, now: began, .. } in live(&plan, &history) {
            if after.is_over() || is_stuck(&after) || after.is_killing() {
                continue;
            }
            let order = Input::Ask(Ask::Order { reason: Reason::Stopped, within: Some(within) });
            let (mut state, mut effects) = decide(&plan, after, order, began);
            let mut now = began;
            // Nothing that anybody says meanwhile gives it more time.
            let later = Ask::Order { reason: Reason::Stopped, within: Some(within * 2) };
            for ask in [later, Ask::Order { reason: Reason::Stopped, within: None }] {
                if !effects.contains(&Effect::Kill) {
                    (state, effects) = decide(&plan, state, Input::Ask(ask), now);
                }
            }
            while !effects.contains(&Effect::Kill) {
                now = state.deadline().unwrap().max(now);
                (state, effects) = decide(&plan, state, Input::Tick, now);
            }
            prop_assert!(now.since(began) <= within);
            prop_assert!(state.is_killing());
        }
    }

    #[test]
    fn an_order_never_prolongs_a_stop(plan in plans(), history in histories(), order in orders()) {
        for Turn { after, now, .. } in live(&plan, &history) {
            let before = after.deadline();
            if !matches!(after, State::Stopping(_)) {
                continue;
            }
            let (state, effects) = decide(&plan, after, Input::Ask(order), now);
            prop_assert!(effects.contains(&Effect::Kill) || state.deadline() <= before);
        }
    }

    #[test]
    fn being_stuck_is_told_once_and_tried_for_ever(plan in plans(), history in histories()) {
        for Turn { after, mut now, .. } in live(&plan, &history) {
            if after.is_over() {
                break;
            }
            let (mut state, _) = decide(&plan, after, Input::Kill, now);
            for _ in 0..5 {
                now = state.deadline().unwrap().max(now);
                let already = is_stuck(&state);
                let (next, effects) = decide(&plan, state, Input::Tick, now);
                prop_assert!(is_stuck(&next));
                prop_assert_eq!(effects, [if already { Effect::Kill } else { Effect::Report }]);
                state = next;
            }
            let (state, effects) = decide(&plan, state, Input::Extinct(Proof::NoChildren), now);
            prop_assert!(is_ended(&state));
            prop_assert_eq!(effects, [Effect::Report]);
        }
    }

    #[test]
    fn whoever_must_kill_kills_at_any_time(plan in plans(), history in histories()) {
        for Turn { after, now, .. } in live(&plan, &history) {
            if after.is_over() {
                break;
            }
            // A second kill joins the first, but a guard has not killed yet.
            let joins = after.is_killing();
            for (input, orders) in [(Input::Kill, !joins), (Input::KeeperDied, true)] {
                let (next, effects) = decide(&plan, after.clone(), input, now);
                prop_assert!(next.is_killing() || is_stuck(&next));
                prop_assert_eq!(effects.contains(&Effect::Kill), orders);
            }
        }
    }

    #[test]
    fn a_released_run_was_to_be_released(plan in plans(), history in histories()) {
        for turn in live(&plan, &history) {
            if is_released(&turn.after) && !is_released(&turn.before) {
                prop_assert_eq!(plan.on_exit, OnExit::Release);
                prop_assert_eq!(turn.before.reason(), None);
                prop_assert_eq!(turn.effects, [Effect::Release, Effect::Report]);
            }
        }
    }

    #[test]
    fn a_state_survives_the_way_to_the_guard(plan in plans(), history in histories()) {
        for turn in live(&plan, &history) {
            let sent = serde_json::to_string(&turn.after).unwrap();
            prop_assert_eq!(serde_json::from_str::<State>(&sent).unwrap(), turn.after);
        }
    }
}
