//! Laws of everything that is read from a text and written to one.

use std::time::Duration;

use fullstop_core::ladder::{Action, KILL_PATIENCE, Ladder, SOFT_PATIENCE, Step};
use fullstop_core::signal::Signal;
use fullstop_core::{duration, preset};
use proptest::collection::vec;
use proptest::prelude::*;

fn durations() -> impl Strategy<Value = Duration> {
    let longest = u64::try_from(duration::LONGEST.as_nanos()).unwrap();
    prop_oneof![
        (0..100_000_u64).prop_map(Duration::from_millis),
        (0..=longest).prop_map(Duration::from_nanos),
        Just(duration::LONGEST),
        Just(Duration::ZERO),
    ]
}

/// Steps as texts, because a ladder has no other way in: that is what keeps it well formed.
fn steps() -> impl Strategy<Value = String> {
    let signal = (1..=64_i32).prop_map(|number| Signal::new(number).unwrap());
    let target = prop_oneof![Just("leader"), Just("group"), Just("tree")];
    let asked = (signal, target, durations())
        .prop_map(|(signal, target, d)| format!("{signal}@{target}:{}", duration::format(d)));
    let closed = durations().prop_map(|d| format!("close-stdin:{}", duration::format(d)));
    let written = (any::<String>(), durations())
        .prop_map(|(text, d)| format!("input:{}:{}", quoted(&text), duration::format(d)));
    prop_oneof![asked, closed, written]
}

fn quoted(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{text}\"")
}

fn ladders() -> impl Strategy<Value = Ladder> {
    let last = prop_oneof![
        Just("kill".to_owned()),
        (1..10_000_u64).prop_map(|ms| format!("kill:{ms}ms")),
    ];
    (vec(steps(), 0..6), last).prop_map(|(mut steps, last)| {
        steps.push(last);
        steps.join(",").parse().unwrap()
    })
}

/// Texts that get further into a reader than random ones do.
fn near_misses() -> impl Strategy<Value = String> {
    let pieces = [
        "term",
        "kill",
        "input",
        "close-stdin",
        "@",
        ":",
        ",",
        "\"",
        "\\",
        "\\x",
        "7f",
        "leader",
        "tree",
        "3s",
        "1m",
        " ",
        "é",
        ".",
        "-",
        "\n",
        "rtmin+",
        "9",
        "\u{1f600}",
        "npx",
        "claude",
    ];
    vec(proptest::sample::select(pieces.to_vec()), 0..12).prop_map(|pieces| pieces.concat())
}

/// Reads a text as everything it might be: no panic, and mistakes that point into the text.
fn read_as_anything(text: &str) {
    let points_into = |position: usize, told: String| {
        assert!(text.is_char_boundary(position), "{position} in {text:?}");
        assert_eq!(told.lines().count(), 1, "{told:?}");
    };
    if let Err(error) = text.parse::<Ladder>() {
        points_into(error.position, error.to_string());
    }
    if let Err(error) = duration::parse(text) {
        points_into(error.position, error.to_string());
    }
    let _ = text.parse::<Signal>();
    let words: Vec<&str> = text.split(' ').collect();
    let _ = preset::for_command(&words);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_duration_reads_back(d in durations()) {
        let text = duration::format(d);
        prop_assert!(!text.contains(char::is_whitespace), "{}", text);
        prop_assert_eq!(duration::parse(&text), Ok(d));
    }

    #[test]
    fn what_is_too_long_to_read_can_be_written(seconds in any::<u64>(), nanos in 0..1_000_000_000_u32) {
        let d = Duration::new(seconds, nanos);
        let read = duration::parse(&duration::format(d));
        prop_assert_eq!(read.ok(), (d <= duration::LONGEST).then_some(d));
    }

    #[test]
    fn a_bare_number_is_in_seconds(seconds in 0..1_000_000_u64) {
        prop_assert_eq!(duration::parse(&seconds.to_string()), Ok(Duration::from_secs(seconds)));
    }

    #[test]
    fn parts_add_up(m in 0..1000_u64, s in 0..1000_u64, ms in 0..1000_u64) {
        let sum = Duration::from_millis((m * 60 + s) * 1000 + ms);
        prop_assert_eq!(duration::parse(&format!("{m}m{s}s{ms}ms")), Ok(sum));
        prop_assert_eq!(duration::parse(&format!("{m}m {s}s {ms}ms")), Ok(sum));
    }

    #[test]
    fn a_fraction_is_what_it_says(ms in 0..10_000_000_u64) {
        let text = format!("{}.{:03}s", ms / 1000, ms % 1000);
        prop_assert_eq!(duration::parse(&text), Ok(Duration::from_millis(ms)));
    }

    #[test]
    fn a_ladder_reads_back(ladder in ladders()) {
        let text = ladder.to_string();
        prop_assert!(!text.contains(['\n', '\r', '\u{1b}']), "{:?}", text);
        prop_assert_eq!(text.parse(), Ok(ladder.clone()));
        let json = serde_json::to_string(&ladder).unwrap();
        prop_assert_eq!(serde_json::from_str::<Ladder>(&json).unwrap(), ladder);
    }

    #[test]
    fn what_is_written_to_the_leader_is_what_was_quoted(text in any::<String>()) {
        let ladder: Ladder = format!("input:{}", quoted(&text)).parse().unwrap();
        prop_assert_eq!(&ladder.soft()[0].action, &Action::Input(text));
        prop_assert_eq!(ladder.soft()[0].patience, SOFT_PATIENCE);
        prop_assert_eq!(ladder.kill_patience(), KILL_PATIENCE);
    }

    #[test]
    fn no_text_makes_a_reader_panic(text in any::<String>()) {
        read_as_anything(&text);
    }

    #[test]
    fn nor_does_a_near_miss(text in near_misses()) {
        read_as_anything(&text);
    }

    #[test]
    fn nor_does_a_ladder_cut_short(ladder in ladders(), cut in any::<prop::sample::Index>()) {
        let text: Vec<char> = ladder.to_string().chars().collect();
        let text: String = text[..cut.index(text.len())].iter().collect();
        read_as_anything(&text);
    }

    #[test]
    fn a_scaled_ladder_sums_up_to_its_total(ladder in ladders(), total in durations()) {
        let scaled = ladder.scaled(total);
        prop_assert_eq!(scaled.kill_patience(), ladder.kill_patience());
        if total.is_zero() || ladder.soft().is_empty() {
            prop_assert!(scaled.soft().is_empty());
            return Ok(());
        }
        prop_assert_eq!(scaled.total(), total);
        let labels = |ladder: &Ladder| ladder.soft().iter().map(Step::label).collect::<Vec<_>>();
        prop_assert_eq!(labels(&scaled), labels(&ladder));
    }

    #[test]
    fn scaling_keeps_the_order_of_patiences(ladder in ladders(), seconds in 1..1000_u64) {
        let scaled = ladder.scaled(Duration::from_secs(seconds));
        // Rounding moves each end of a share by less than a nanosecond.
        let slack = Duration::from_nanos(2);
        for (a, b) in ladder.soft().iter().zip(scaled.soft()) {
            for (c, d) in ladder.soft().iter().zip(scaled.soft()) {
                prop_assert!(a.patience > c.patience || b.patience <= d.patience + slack);
            }
        }
    }

    #[test]
    fn the_ladder_for_the_rest_needs_no_leader(ladder in ladders()) {
        let rest = ladder.after_leader();
        prop_assert!(!rest.needs_stdin());
        prop_assert_eq!(rest.kill_patience(), ladder.kill_patience());
        prop_assert_eq!(rest.after_leader(), rest);
    }

    #[test]
    fn a_received_signal_changes_the_first_signal_only(ladder in ladders()) {
        let started = ladder.starting_with(Signal::HUP);
        prop_assert_eq!(started.total(), ladder.total());
        prop_assert_eq!(started.soft().get(1..), ladder.soft().get(1..));
        let first = ladder.soft().first().map(|step| &step.action);
        if let Some(Action::Signal(_)) = first {
            prop_assert_eq!(&started.soft()[0].action, &Action::Signal(Signal::HUP));
        } else {
            prop_assert_eq!(started, ladder);
        }
    }
}
