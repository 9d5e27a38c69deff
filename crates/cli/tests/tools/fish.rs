//! Fish completes a line on request.

use crate::kit::{Scratch, calls, lines, with};
use fullstop_cli::args::Shell;
use libtest_mimic::Trial;

pub fn trials() -> Vec<Trial> {
    vec![
        with("fish", "has_no_mistake", has_no_mistake),
        with("fish", "offers_what_fits", offers_what_fits),
        with("fish", "completes_the_command_of_run", completes_the_command_of_run),
    ]
}

/// Behind a tab stands the description, which is not looked at.
const HARNESS: &str = r"
source ./script
function complete_line
    for offer in (complete -C $argv[1])
        printf '%s\t%s\n' $argv[1] (string split \t -- $offer)[1]
    end
end
";

fn fish(script: &str) -> (Scratch, String) {
    let scratch = Scratch::new();
    scratch.script(Shell::Fish);
    scratch.file("test", &format!("{HARNESS}{script}"));
    let printed = scratch.run("fish", &["--no-config", "./test"]);
    (scratch, printed)
}

fn has_no_mistake() {
    let scratch = Scratch::new();
    scratch.script(Shell::Fish);
    scratch.run("fish", &["--no-execute", "./script"]);
}

fn offers_what_fits() {
    let (scratch, printed) = fish(&calls(&lines()));
    scratch.check_all(&printed);
}

fn completes_the_command_of_run() {
    let (_scratch, printed) = fish(
        "complete -c toy -l only-of-toy\n\
         complete_line 'fullstop run -q -- toy --on'\n\
         complete_line 'fullstop run --cage tree toy --on'\n\
         complete_line 'fullstop run --on-exit=w'\n",
    );
    let offers: Vec<_> = printed.lines().filter_map(|line| line.split('\t').nth(1)).collect();
    assert_eq!(offers, ["--only-of-toy", "--only-of-toy", "--on-exit=wait"]);
}
