use super::*;
use std::time::Duration;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn ladder(text: &str) -> Ladder {
    text.parse().unwrap()
}

/// A ladder as the table below writes it and as it is written out.
#[test]
fn reads_every_form() {
    let table = [
        ("kill", "kill"),
        ("KILL", "kill"),
        ("sigkill", "kill"),
        ("9", "kill"),
        ("kill:2s", "kill:2s"),
        ("kill:4s", "kill"),
        ("term", "term@leader:2s,kill"),
        ("term@tree", "term@tree:2s,kill"),
        ("term:3s", "term@leader:3s,kill"),
        ("term@leader:3s,term@tree:2s,kill", "term@leader:3s,term@tree:2s,kill"),
        ("SIGINT@Leader:5,kill", "int@leader:5s,kill"),
        ("2@group:1m30s", "int@group:1m30s,kill"),
        (" int , term@tree : 1m 30s , kill : 1s ", "int@leader:2s,term@tree:1m30s,kill:1s"),
        ("rtmin+3@tree:0s", "rtmin+3@tree:0s,kill"),
        ("kill@leader:1s", "kill@leader:1s,kill"),
        ("kill@group,kill@tree,kill", "kill@group:2s,kill@tree:2s,kill"),
        ("close-stdin", "close-stdin:2s,kill"),
        ("close-stdin@leader:500ms", "close-stdin:500ms,kill"),
        ("input:\"x\"", "input:\"x\":2s,kill"),
        (r#"input:"/exit\n"@leader:2s"#, r#"input:"/exit\n":2s,kill"#),
        (r#"input : "a,b:c@d" @leader : 1s , kill"#, r#"input:"a,b:c@d":1s,kill"#),
        (r#"input:"\r\t\e\x03\x7F\"\\é""#, r#"input:"\r\t\e\x03\x7f\"\\é":2s,kill"#),
        ("input:\"\x01\n\"", r#"input:"\x01\n":2s,kill"#),
    ];
    for (text, written) in table {
        assert_eq!(ladder(text).to_string(), written, "{text}");
        assert_eq!(ladder(written), ladder(text), "{text}");
    }
}

/// A text, the byte and the column of its mistake.
const MISTAKES: &[(&str, usize, &str)] = &[
    ("", 0, "the ladder is empty at column 1"),
    (" \t", 0, "the ladder is empty at column 1"),
    ("tern@leader:3s", 0, "unknown signal \"tern\" at column 1"),
    ("term,, kill", 5, "a step is missing at column 6"),
    ("term,", 5, "a step is missing at column 6"),
    (",term", 0, "a step is missing at column 1"),
    ("term, @tree", 6, "a step is missing at column 7"),
    ("term@", 5, "unknown target \"\" (leader, group or tree) at column 6"),
    ("term@all:3s", 5, "unknown target \"all\" (leader, group or tree) at column 6"),
    ("term@tree@tree", 9, "a comma is expected, not '@' at column 10"),
    ("term:", 5, "a duration is missing at column 6"),
    ("term:,kill", 5, "a duration is missing at column 6"),
    ("term:3x", 6, "unknown unit \"x\" at column 7"),
    ("term@leader: 1m 3x,kill", 17, "unknown unit \"x\" at column 18"),
    ("term:-3s", 5, "a duration cannot be negative at column 6"),
    ("term:200y", 8, "unknown unit \"y\" at column 9"),
    ("term:40000d", 5, "longer than a hundred years at column 6"),
    ("kill,term", 5, "nothing can follow the last step, kill at column 6"),
    ("kill , term", 7, "nothing can follow the last step, kill at column 8"),
    ("kill,", 5, "nothing can follow the last step, kill at column 6"),
    ("kill:0s", 0, "kill needs time to see the end, not 0s at column 1"),
    ("kill@all", 5, "unknown target \"all\" (leader, group or tree) at column 6"),
    ("close-stdin@tree", 12, "only the leader has a stdin to reach, not the tree at column 13"),
    (r#"input:"x"@group"#, 10, "only the leader has a stdin to reach, not the group at column 11"),
    ("input", 5, r#"input needs a text, as in input:"/exit\n" at column 6"#),
    ("input:3s", 6, r#"input needs a text, as in input:"/exit\n" at column 7"#),
    ("input@leader", 5, r#"input needs a text, as in input:"/exit\n" at column 6"#),
    ("term,input:\"x", 11, "the quote is not closed at column 12"),
    (r#"input:"x\""#, 6, "the quote is not closed at column 7"),
    (r#"input:"x\"#, 8, "the escape is not finished at column 9"),
    (r#"input:"\q""#, 7, r"unknown escape \q at column 8"),
    (r#"input:"é\xfF""#, 9, r"\x needs two hexadecimal digits, 00 to 7f at column 9"),
    (r#"input:"\x1""#, 7, r"\x needs two hexadecimal digits, 00 to 7f at column 8"),
    (r#"input:"\x+1""#, 7, r"\x needs two hexadecimal digits, 00 to 7f at column 8"),
    (r#"input:"\xé""#, 7, r"\x needs two hexadecimal digits, 00 to 7f at column 8"),
    (r#"input:"x"y"#, 9, "a comma is expected, not 'y' at column 10"),
    (r#"term"x""#, 4, "a comma is expected, not '\"' at column 5"),
    ("term kill", 0, "unknown signal \"term kill\" at column 1"),
];

#[test]
fn points_at_the_mistake() {
    for &(text, position, message) in MISTAKES {
        let error = text.parse::<Ladder>().unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("ladder: {message}: {text}").replace('\t', "\u{fffd}")
        );
        assert_eq!(error.position, position, "{text}");
    }
}

#[test]
fn the_ladders_made_without_text_are_the_ones_written() {
    assert_eq!(Ladder::default(), ladder("term@leader:3s,term@tree:2s,kill"));
    assert_eq!(host_gone(), ladder("term@tree:500ms,kill"));
    assert_eq!(Ladder::default().kill_patience(), KILL_PATIENCE);
}

#[test]
fn scales_in_proportion() {
    let table = [
        ("term@leader:3s,term@tree:2s,kill", ms(10_000), "term@leader:6s,term@tree:4s,kill"),
        ("term@leader:3s,term@tree:2s,kill", ms(1), "term@leader:0.6ms,term@tree:0.4ms,kill"),
        ("term@leader:3s,term@tree:2s,kill:1s", ms(0), "kill:1s"),
        ("term:0s,int:0s", ms(3), "term@leader:1.5ms,int@leader:1.5ms,kill"),
        ("term:0s,int:1s", ms(3), "term@leader:0s,int@leader:3ms,kill"),
        ("kill", ms(3), "kill"),
    ];
    for (text, total, scaled) in table {
        assert_eq!(ladder(text).scaled(total).to_string(), scaled);
    }
}

#[test]
fn begins_with_the_signal_that_was_received() {
    let table = [
        ("term@leader:3s,term@tree:2s", "int@leader:3s,term@tree:2s,kill"),
        ("term@tree:1s", "int@tree:1s,kill"),
        ("close-stdin:1s,term:1s", "close-stdin:1s,term@leader:1s,kill"),
        ("input:\"q\":1s,term:1s", "input:\"q\":1s,term@leader:1s,kill"),
        ("kill", "kill"),
    ];
    for (text, expected) in table {
        assert_eq!(ladder(text).starting_with(Signal::INT).to_string(), expected);
    }
}

#[test]
fn asks_the_rest_from_term_on() {
    let table = [
        ("term@leader:3s,term@tree:2s", "term@leader:3s,term@tree:2s,kill"),
        ("int:1s,int:2s,term@tree:2s,quit@tree:1s", "term@tree:2s,quit@tree:1s,kill"),
        ("int:1s,hup@tree:2s", "int@leader:1s,hup@tree:2s,kill"),
        ("close-stdin:1s,int:1s", "int@leader:1s,kill"),
        ("term:1s,input:\"q\":1s,int:1s", "term@leader:1s,int@leader:1s,kill"),
        ("close-stdin:1s,kill:1s", "kill:1s"),
    ];
    for (text, expected) in table {
        assert_eq!(ladder(text).after_leader().to_string(), expected);
    }
}

#[test]
fn tells_what_it_needs() {
    let table = [
        ("kill", ms(0), false),
        ("term:3s,term@tree:2s", ms(5000), false),
        ("close-stdin:1s,term:500ms", ms(1500), true),
        ("term:1s,input:\"q\":1s", ms(2000), true),
    ];
    for (text, total, needs_stdin) in table {
        assert_eq!(ladder(text).total(), total);
        assert_eq!(ladder(text).needs_stdin(), needs_stdin);
    }
}

#[test]
fn names_a_step_without_its_patience() {
    let labels = |text| -> Vec<String> { ladder(text).soft().iter().map(Step::label).collect() };
    assert_eq!(
        labels(r#"term,int@tree,kill@group:1s,close-stdin,input:"q\n""#),
        ["term@leader", "int@tree", "kill@group", "close-stdin", r#"input:"q\n""#]
    );
}

#[test]
fn is_a_string_in_json() {
    let json = serde_json::to_string(&Ladder::default()).unwrap();
    assert_eq!(json, "\"term@leader:3s,term@tree:2s,kill\"");
    assert_eq!(serde_json::from_str::<Ladder>(&json).unwrap(), Ladder::default());
    let error = serde_json::from_str::<Ladder>("\"tern\"").unwrap_err();
    assert!(error.to_string().starts_with("ladder: unknown signal \"tern\" at column 1: tern"));
}
