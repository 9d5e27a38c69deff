//! Bash: the function is called as readline calls it, and COMPREPLY looked at.

use crate::kit::{Scratch, calls, lines, with};
use fullstop_cli::args::Shell;
use libtest_mimic::Trial;

pub fn trials() -> Vec<Trial> {
    vec![
        with("bash", "has_no_mistake", has_no_mistake),
        with("bash", "offers_what_fits", offers_what_fits),
        with("bash", "values_behind_an_equals_sign", values_behind_an_equals_sign),
        with("bash", "leaves_files_to_readline", leaves_files_to_readline),
        with("bash", "hands_the_rest_to_bash_completion", hands_the_rest_to_bash_completion),
    ]
}

/// `complete_words WORD…` completes the last one. `compopt` only works while
/// readline waits, so here it prints what it was asked.
const HARNESS: &str = r#"
source ./script
compopt() { COMPREPLY+=("compopt $*"); }
complete_words() {
    COMP_WORDS=("$@")
    COMP_CWORD=$(($# - 1))
    _fullstop fullstop "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
}
complete_line() {
    local words
    read -ra words <<<"$1"
    [[ $1 == *' ' ]] && words+=('')
    complete_words "${words[@]}"
    local reply
    for reply in "${COMPREPLY[@]}"; do printf '%s\t%s\n' "$1" "$reply"; done
}
"#;

fn bash(script: &str) -> (Scratch, String) {
    let scratch = Scratch::new();
    scratch.script(Shell::Bash);
    scratch.file("test", &format!("{HARNESS}{script}"));
    let printed = scratch.run("bash", &["--norc", "./test"]);
    (scratch, printed)
}

fn has_no_mistake() {
    let scratch = Scratch::new();
    scratch.script(Shell::Bash);
    scratch.run("bash", &["-n", "./script"]);
}

fn offers_what_fits() {
    let (scratch, printed) = bash(&calls(&lines()));
    scratch.check_all(&printed);
    let (scratch, printed) = bash("complete_line 'fullstop run --group ev'\n");
    assert_eq!(printed, "fullstop run --group ev\tevil\\$\\(touch\\ harm\\)\n");
    assert!(!scratch.path().join("harm").exists());
}

/// Readline makes a word of its own of `=`.
fn values_behind_an_equals_sign() {
    let show = "; echo \"${COMPREPLY[*]}\"\n";
    let (_scratch, printed) = bash(&format!(
        "complete_words fullstop run --on-exit ={show}\
         complete_words fullstop run --on-exit = w{show}\
         complete_words fullstop run --on-exit = wait --cage = t{show}\
         complete_words fullstop run --env A = B --cage ''{show}\
         complete_words fullstop start --wait-ready tcp : 80 --cage ''{show}"
    ));
    let lines: Vec<_> = printed.lines().collect();
    let cages = "auto cgroup tree";
    assert_eq!(lines, ["stop wait release", "wait", "tree", cages, cages]);
}

fn leaves_files_to_readline() {
    let (_scratch, printed) = bash(
        "complete_line 'fullstop run --report '\n\
         complete_line 'fullstop run --cwd x'\n\
         complete_line 'fullstop run -- cat --on'\n\
         complete_line 'fullstop run cat --on'\n",
    );
    let offers: Vec<_> = printed.lines().filter_map(|line| line.split('\t').nth(1)).collect();
    let default = "compopt -o default";
    assert_eq!(offers, [default, "compopt -o dirnames", default, default]);
}

fn hands_the_rest_to_bash_completion() {
    let (_scratch, printed) = bash(
        "_command_offset() { COMPREPLY=(\"from $1\"); }\n\
         complete_line 'fullstop run -q -- git comm'\n\
         complete_line 'fullstop run --cage tree gi'\n",
    );
    let offers: Vec<_> = printed.lines().filter_map(|line| line.split('\t').nth(1)).collect();
    assert_eq!(offers, ["from 4", "from 4"]);
}
