//! What the members do when something is done to them.

mod world;

use world::{User, ask};

fn root(script: &str) -> Option<String> {
    ask(User::Root, script, &[])
}

const SIGNALS: [&str; 3] = ["INT", "TERM", "HUP"];

#[test]
fn the_graceful_save_on_every_polite_signal() {
    for signal in SIGNALS {
        for member in ["save-on-term", "save-needs-children"] {
            let script = format!(
                r#"
                start {member}
                read -r word count <&3
                census; set -- $pids
                kill -{signal} $1
                read -r gone status <&3
                echo "$status $(cat saved)"
                "#
            );
            let Some(said) = root(&script) else { return };
            assert_eq!(said, "0 saved\n", "{member} {signal}");
        }
    }
}

#[test]
fn a_signal_to_the_whole_group_ruins_the_save() {
    let script = r#"
        start save-needs-children
        read -r word count <&3
        census
        kill -TERM $pids
        read -r gone status <&3
        [ -e saved ] && echo saved
        echo "$status"
    "#;
    let Some(said) = root(script) else { return };
    assert!(said.starts_with("1\n"), "{said}");
}

#[test]
fn a_new_tree_answers_the_signal() {
    for signal in SIGNALS {
        let script = format!(
            r#"
            start tree-on-term
            read -r word count <&3
            census
            kill -{signal} $pids
            read -r gone status <&3
            census
            kill -INT $pids; kill -TERM $pids; kill -HUP $pids
            before=$alive
            census
            echo "$status $before $alive"
            "#
        );
        let Some(said) = root(&script) else { return };
        assert_eq!(said, "0 3 3\n", "{signal}");
    }
}

#[test]
fn the_pair_comes_back_until_both_are_dead() {
    let script = r#"
        start respawn-pair
        read -r word count <&3
        census; set -- $pids
        leader=$1
        for round in 1 2 3 4 5 6 7 8 9 10; do
            census; set -- $pids
            kill -KILL $2
            while census; set -- $pids; [ "$alive" != 3 ]; do :; done
        done
        echo "$alive"
        while census; [ "$alive" != 1 ]; do
            # In one call: a busy machine gives the other one time between two.
            pair=; for pid in $pids; do [ $pid = $leader ] || pair="$pair $pid"; done
            kill -KILL $pair 2>/dev/null
        done
        echo "$pids"
    "#;
    let Some(said) = root(script) else { return };
    let lines: Vec<_> = said.lines().collect();
    assert_eq!((lines.len(), lines[0]), (2, "3"), "{said}");
}

#[test]
fn the_storm_rages_on_when_many_are_killed() {
    // More kills than there are places: they must not use the storm up. That it goes on is
    // seen in the last pid, the fifth field. This shell is too slow for a census, and only
    // buries orphans while it waits for a child.
    let script = r#"
        start storm
        read -r word count <&3
        read -r leader rest </proc/$keeper/task/$keeper/children
        killed=0
        while [ $killed -lt 400 ]; do
            /bin/true
            for at in /proc/[0-9]*; do
                case ${at#/proc/} in
                    1 | "$keeper" | "$leader") ;;
                    *) kill -KILL "${at#/proc/}" && killed=$((killed + 1)) ;;
                esac
            done 2>/dev/null
        done
        read -r a b c d before </proc/loadavg
        while read -r a b c d now </proc/loadavg; [ $now -lt $((before + 1000)) ]; do
            /bin/true
        done
        echo raging
    "#;
    let Some(said) = root(script) else { return };
    assert_eq!(said, "raging\n");
}

#[test]
fn the_disguise_fools_ps() {
    let script = r#"
        start disguise
        read -r word count <&3
        census; set -- $pids
        for pid; do
            read -r name </proc/$pid/comm
            echo "$name $(tr '\0' ' ' </proc/$pid/cmdline)"
        done
    "#;
    let Some(said) = root(script) else { return };
    let shown: Vec<_> = said.lines().map(str::trim).collect();
    assert_eq!(shown, ["sshd sshd: -D"; 2]);
}

#[test]
fn the_daemons_are_as_bare_as_they_say() {
    let script = r"
        export MARKER=marked
        start daemon-bare-env
        read -r word count <&3
        census; set -- $pids
        wc -c </proc/$2/environ
        kill -KILL $pids
        read -r gone status <&3
        start daemon-no-fds
        read -r word count <&3
        census; set -- $pids
        ls /proc/$2/fd | wc -l
    ";
    let Some(said) = root(script) else { return };
    assert_eq!(said, "0\n0\n");
}

#[test]
fn state_d_need_not_be_immortal() {
    let script = r#"
        start vfork-parent
        read -r word count <&3
        census; set -- $pids
        state $2; echo $state
        kill -KILL $pids
        while census; [ "$alive" != 0 ]; do :; done
        echo dead
    "#;
    let Some(said) = root(script) else { return };
    assert_eq!(said, "D\ndead\n");
}

#[test]
fn a_hung_read_can_be_killed() {
    let script = r#"
        mkfifo serving
        exec 4<>serving
        mkdir mnt
        { ./zoo --dir "$PWD" fuse-serve mnt 3<&- 4<&-; echo "gone $?" >&4; } &
        read -r word status <&4
        [ $word = serving ] || { echo "$word $status"; exit; }
        start fuse-reader mnt/file
        read -r word count <&3
        read -r reader rest </proc/$keeper/task/$keeper/children
        while state $reader; [ $state != D ]; do :; done
        kill -KILL $reader
        read -r gone status <&3
        echo $status
    "#;
    let Some(said) = root(script) else { return };
    if said.starts_with("gone 3") {
        println!("no FUSE here: {said}");
        return;
    }
    assert!(said.starts_with("137\n"), "{said}");
}
