//! Is every member what it says it is, and does it end by itself?

mod world;

use std::process::Command;
use std::thread::scope;

use world::{User, ask};

/// Member, argument, processes. A question mark: as many as there were at that instant.
const MEMBERS: &[(&str, &str, &str)] = &[
    ("plain", "", "5"),
    ("ignore-term", "", "3"),
    ("stopped-child", "", "2"),
    ("exit-at-once", "", "1"),
    ("wide", "", "101"),
    ("wide", "1000", "1001"),
    ("chain", "", "201"),
    ("own-group", "", "3"),
    ("own-session", "", "3"),
    ("nohup", "", "2"),
    ("daemon", "", "2"),
    ("daemon-bare-env", "", "2"),
    ("daemon-no-fds", "", "2"),
    ("hold-stdout", "", "2"),
    ("leftovers", "", "3"),
    ("respawn-pair", "", "3"),
    ("hop", "", "2"),
    ("storm", "", "?"),
    ("flood", "", "2"),
    ("save-on-term", "", "1"),
    ("save-needs-children", "", "3"),
    ("tree-on-term", "", "1"),
    ("own-pty", "", "3"),
    ("subreaper", "", "3"),
    ("clone-parent", "", "3"),
    ("namespaces", "", "4"),
    ("change-uid", "", "2"),
    ("setuid-root", "", "2"),
    ("disguise", "", "2"),
    ("frozen-writer", "file", "1"),
    ("fuse-reader", "file", "1"),
    ("vfork-parent", "", "3"),
    ("bystander", "", "1"),
];

/// Leaders that are gone a moment after the announcement.
const BRIEF: &[&str] = &["exit-at-once", "hold-stdout", "leftovers"];

/// Says `ready COUNT ALIVE`, or `gone 3` of a member that cannot exist here.
const STAND: &str = r#"
echo content content content content content content content content >file
chmod 666 file
start --life 20 "$@"
read -r word count <&3
census
echo "$word $count $alive"
[ "$word" = ready ] || cat err
"#;

fn stands(user: User, name: &str, argument: &str, expected: &str) {
    let arguments: Vec<_> = [name, argument].into_iter().filter(|word| !word.is_empty()).collect();
    let Some(said) = ask(user, STAND, &arguments) else {
        return;
    };
    let words: Vec<_> = said.split_whitespace().collect();
    let who = format!("{name} {argument} as {user:?}: {said}");
    if let ["gone", "3", ..] = words[..] {
        println!("cannot exist here: {who}");
        return;
    }
    let ["ready", count, alive, ..] = words[..] else { panic!("{who}") };
    let (count, alive): (usize, usize) = (count.parse().expect(&who), alive.parse().expect(&who));
    match (name, expected) {
        (_, "?") => assert!((50..=300).contains(&count) && alive <= 300, "{who}"),
        // The hopper is two for as long as a fork and an exit take.
        ("hop", _) => assert!(count == 2 && (2..=3).contains(&alive), "{who}"),
        _ => {
            let gone = usize::from(BRIEF.contains(&name));
            assert_eq!(count.to_string(), expected, "{who}");
            assert!(alive == count || alive + gone == count, "{who}");
        }
    }
}

#[test]
fn every_member_stands_as_root() {
    for (name, argument, expected) in MEMBERS {
        stands(User::Root, name, argument, expected);
    }
}

#[test]
fn every_member_stands_as_nobody() {
    for (name, argument, expected) in MEMBERS {
        stands(User::Nobody, name, argument, expected);
    }
}

#[test]
fn the_list_names_every_member_once() {
    let said = Command::new(env!("CARGO_BIN_EXE_zoo")).arg("list").output().expect("zoo");
    let listed = String::from_utf8(said.stdout).expect("names");
    let mut known: Vec<_> = MEMBERS.iter().map(|(name, ..)| *name).collect();
    known.dedup();
    known.retain(|name| *name != "bystander");
    assert_eq!(listed.lines().collect::<Vec<_>>(), known);
}

/// With two seconds to live, nothing is there after ten; only a namespace that is
/// really empty lets this script end in time.
const END: &str = r#"
echo content content content content content content content content >file
chmod 666 file
start --life 2 "$@"
read -r word count <&3
waited=0
while census; [ "$alive" != 0 ]; do
    [ $waited -lt 100 ] || { echo "$alive live on: $pids"; exit 1; }
    waited=$((waited + 1))
    sleep 0.1
done
echo "$word $count"
"#;

#[test]
fn every_member_ends_by_itself() {
    scope(|scope| {
        for (name, argument, _) in MEMBERS {
            let arguments = [*name, *argument];
            scope.spawn(move || {
                let given = arguments.iter().filter(|word| !word.is_empty());
                ask(User::Root, END, &given.copied().collect::<Vec<_>>());
            });
        }
    });
}
