//! Machines broken on purpose, one for each law: a law that no machine can break says nothing.

use fullstop_core::clocks::Clocks;
use fullstop_core::ladder::Target;
use fullstop_core::machine::{
    Ask, Climb, Effect, Input, Leader, Plan, Recipients, Rest, State, Stop, decide,
};
use fullstop_core::signal::Signal;
use fullstop_core::words::{Moment, OnExit, Proof, Reason};

use crate::cast::Left;
use crate::world::Decide;
use crate::{QUIET, laws};

type Decision = (State, Vec<Effect>);

/// A law, a machine that breaks it, and what must happen for that.
pub const ALL: &[(&str, Decide, Left)] = &[
    (laws::PROVEN, takes_patience_for_proof, QUIET),
    (laws::FIRST_REASON, believes_the_last_who_asks, Left { asks: 1, kills: 1, ..QUIET }),
    (laws::SILENCE, kills_once_more, QUIET),
    (laws::BIRTH, starts_what_was_stopped, Left { kills: 1, ..QUIET }),
    (laws::NO_WAY_BACK, turns_polite_again, Left { hosts: 1, ..QUIET }),
    (laws::THE_LIVING, talks_to_the_dead, QUIET),
    (laws::IN_TIME, waits_anew, QUIET),
    (laws::CLIPPED, forgets_the_time, Left { asks: 1, ..QUIET }),
    (laws::CLIPPED, prolongs_a_stop, Left { asks: 2, ..QUIET }),
    (laws::SETTLED, leaves_the_rest_alone, QUIET),
    (laws::CONFIRMED, never_looks_at_a_stuck_run_again, QUIET),
    (laws::TRIED, gives_up_without_a_kill, QUIET),
    (laws::GUARDED, trusts_the_dead_keeper, Left { keepers: 1, ..QUIET }),
    (laws::ON_PURPOSE, always_lets_go, QUIET),
    (laws::TOLD, keeps_it_to_itself, QUIET),
    (laws::PATIENT, does_not_listen, Left { signs: 1, ..QUIET }),
    (laws::PATIENT, takes_work_for_words, Left { signs: 1, ..QUIET }),
    (laws::PATIENT, counts_the_pause, Left { pauses: 1, ..QUIET }),
    (laws::PATIENT, forgets_what_came_in_the_pause, Left { signs: 2, pauses: 1, ..QUIET }),
    (laws::PATIENT, knows_one_clock, Left { signs: 1, ..QUIET }),
    (laws::SETTLED, pauses_with_the_dead, Left { pauses: 1, ..QUIET }),
    (laws::SETTLED, never_goes_on, Left { pauses: 1, ..QUIET }),
];

fn takes_patience_for_proof(plan: &Plan, state: State, input: Input, now: Moment) -> Decision {
    match decide(plan, state, input, now) {
        (State::Stuck { reason, leader, .. }, effects) => {
            (State::Ended { reason, leader, proof: Proof::ScanClean }, effects)
        }
        decision => decision,
    }
}

fn believes_the_last_who_asks(plan: &Plan, state: State, input: Input, now: Moment) -> Decision {
    match (state, input) {
        (State::Stopping(stop), Input::Kill) => {
            let stop = State::Stopping(Stop { reason: Reason::Killed, ..stop });
            decide(plan, stop, input, now)
        }
        (state, input) => decide(plan, state, input, now),
    }
}

fn kills_once_more(plan: &Plan, state: State, input: Input, now: Moment) -> Decision {
    let (state, mut effects) = decide(plan, state, input, now);
    if let Input::Extinct(_) = input {
        effects.push(Effect::Kill);
    }
    (state, effects)
}

fn starts_what_was_stopped(plan: &Plan, state: State, input: Input, now: Moment) -> Decision {
    let (state, mut effects) = decide(plan, state, input, now);
    if input == Input::CageReady && effects.is_empty() {
        effects.push(Effect::Spawn);
    }
    (state, effects)
}

fn turns_polite_again(plan: &Plan, state: State, input: Input, now: Moment) -> Decision {
    let killing = state.is_killing();
    let (state, mut effects) = decide(plan, state, input, now);
    if killing && input == Input::HostGone {
        effects.push(Effect::Signal { signal: Signal::TERM, whom: Recipients::Tree });
    }
    (state, effects)
}

fn talks_to_the_dead(plan: &Plan, state: State, input: Input, now: Moment) -> Decision {
    let (state, mut effects) = decide(plan, state, input, now);
    for effect in &mut effects {
        if let Effect::Signal { whom: whom @ Recipients::Children, .. } = effect {
            *whom = Recipients::Leader;
        }
    }
    (state, effects)
}

fn waits_anew(plan: &Plan, state: State, input: Input, now: Moment) -> Decision {
    match (state, input) {
        (
            State::Stopping(Stop {
                reason,
                leader,
                climb: Climb::Soft { ladder, step, .. },
                asked,
                limit,
            }),
            Input::Tick,
        ) if ladder.soft()[step].target == Target::Tree => {
            let deadline = now + ladder.soft()[step].patience;
            let climb = Climb::Soft { ladder, step, deadline };
            (State::Stopping(Stop { reason, leader, climb, asked, limit }), vec![])
        }
        (state, input) => decide(plan, state, input, now),
    }
}

fn forgets_the_time(plan: &Plan, state: State, input: Input, now: Moment) -> Decision {
    let input = match input {
        Input::Ask(Ask::Order { reason, .. }) => Input::Ask(Ask::Order { reason, within: None }),
        other => other,
    };
    decide(plan, state, input, now)
}

/// Whoever asks again takes back the time that was given before.
fn prolongs_a_stop(plan: &Plan, state: State, input: Input, now: Moment) -> Decision {
    let again = matches!((&state, input), (State::Stopping(_), Input::Ask(Ask::Order { .. })));
    match decide(plan, state, input, now) {
        (State::Stopping(Stop { climb: Climb::Soft { ladder, step, .. }, leader, .. }), _)
            if again =>
        {
            let (reason, deadline) = (Reason::Stopped, now + ladder.soft()[step].patience);
            let climb = Climb::Soft { ladder, step, deadline };
            let stop = Stop { reason, leader, climb, asked: Some(now), limit: None };
            (State::Stopping(stop), vec![])
        }
        decision => decision,
    }
}

fn leaves_the_rest_alone(plan: &Plan, state: State, input: Input, now: Moment) -> Decision {
    match (state, input) {
        (State::Running { .. }, Input::LeaderExited { exit, rest: Rest::Alive }) => {
            (State::Running { leader: Leader::Gone(exit), clocks: Clocks::default() }, vec![])
        }
        (state, input) => decide(plan, state, input, now),
    }
}

fn never_looks_at_a_stuck_run_again(
    plan: &Plan,
    state: State,
    input: Input,
    now: Moment,
) -> Decision {
    match state {
        State::Stuck { .. } => (state, vec![]),
        state => decide(plan, state, input, now),
    }
}

fn gives_up_without_a_kill(plan: &Plan, state: State, input: Input, now: Moment) -> Decision {
    match decide(plan, state, input, now) {
        (State::Stopping(Stop { reason, leader, climb: Climb::Kill { deadline }, .. }), _)
            if input == Input::Tick =>
        {
            (State::Stuck { reason, leader, again: deadline }, vec![Effect::Report])
        }
        decision => decision,
    }
}

fn trusts_the_dead_keeper(plan: &Plan, state: State, input: Input, now: Moment) -> Decision {
    if state.is_killing() && input == Input::KeeperDied {
        return (state, vec![]);
    }
    decide(plan, state, input, now)
}

fn always_lets_go(plan: &Plan, state: State, input: Input, now: Moment) -> Decision {
    let plan = Plan { on_exit: OnExit::Release, ..plan.clone() };
    decide(&plan, state, input, now)
}

fn keeps_it_to_itself(plan: &Plan, state: State, input: Input, now: Moment) -> Decision {
    let (state, mut effects) = decide(plan, state, input, now);
    effects.retain(|effect| *effect != Effect::Report);
    (state, effects)
}

fn does_not_listen(plan: &Plan, state: State, input: Input, now: Moment) -> Decision {
    if input == Input::Output {
        return (state, vec![]);
    }
    decide(plan, state, input, now)
}

fn takes_work_for_words(plan: &Plan, state: State, input: Input, now: Moment) -> Decision {
    let input = if input == Input::Busy { Input::Output } else { input };
    decide(plan, state, input, now)
}

fn counts_the_pause(plan: &Plan, state: State, input: Input, now: Moment) -> Decision {
    match (state, input) {
        (State::Running { leader, clocks }, Input::Resumed) => {
            (State::Running { leader, clocks: Clocks { paused: None, ..clocks } }, vec![])
        }
        (state, input) => decide(plan, state, input, now),
    }
}

fn forgets_what_came_in_the_pause(
    plan: &Plan,
    state: State,
    input: Input,
    now: Moment,
) -> Decision {
    match (&state, input) {
        (State::Running { clocks: Clocks { paused: Some(_), .. }, .. }, Input::Output) => {
            (state, vec![])
        }
        _ => decide(plan, state, input, now),
    }
}

fn knows_one_clock(plan: &Plan, state: State, input: Input, now: Moment) -> Decision {
    match (state.clone(), decide(plan, state, input, now)) {
        (State::Running { .. }, (State::Stopping(stop), effects)) if stop.reason.is_timeout() => {
            (State::Stopping(Stop { reason: Reason::OverallTimeout, ..stop }), effects)
        }
        (_, decision) => decision,
    }
}

/// A leader that was stopped when it was killed holds up the clocks of the rest.
fn pauses_with_the_dead(plan: &Plan, state: State, input: Input, now: Moment) -> Decision {
    let held = match &state {
        State::Running { clocks, .. } => clocks.paused,
        _ => None,
    };
    match decide(plan, state, input, now) {
        (State::Running { leader: leader @ Leader::Gone(_), clocks }, effects) => {
            let clocks = Clocks { paused: held, ..clocks };
            (State::Running { leader, clocks }, effects)
        }
        decision => decision,
    }
}

fn never_goes_on(plan: &Plan, state: State, input: Input, now: Moment) -> Decision {
    match (state, input) {
        (State::Running { leader, .. }, Input::Resumed) => {
            (State::Running { leader, clocks: Clocks::default() }, vec![])
        }
        (state, input) => decide(plan, state, input, now),
    }
}
