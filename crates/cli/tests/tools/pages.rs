//! Man pages, as those see them who print and judge them.

use crate::kit::{Scratch, with};
use fullstop_cli::grammar::FULLSTOP;
use fullstop_cli::man;
use libtest_mimic::Trial;
use std::process::Command;

pub fn trials() -> Vec<Trial> {
    vec![
        with("groff", "has_no_warning", || {
            let said = said("groff", &["-man", "-ww", "-z", "-Tutf8"]);
            assert_eq!(said, "");
        }),
        with("mandoc", "has_no_warning", || {
            let said = said("mandoc", &["-Tlint", "-Wwarning"]);
            // A date would be that of the last edit of a table, which tells nobody anything.
            let other: Vec<_> =
                said.lines().filter(|line| !line.contains("missing date")).collect();
            assert_eq!(other, Vec::<&str>::new());
        }),
        with("groff", "shows_what_was_written", || {
            let scratch = written();
            let page = scratch.run("groff", &["-man", "-Tascii", "-P-cbou", "man/fullstop-run.1"]);
            for part in
                ["--on-host-exit WHAT", "fullstop run [options] [--] COMMAND", "EXIT STATUS"]
            {
                assert!(page.contains(part), "{part}: {page}");
            }
        }),
    ]
}

fn written() -> Scratch {
    let scratch = Scratch::new();
    man::write_all(&scratch.path().join("man")).unwrap();
    scratch
}

/// Everything a judge says of any page.
fn said(program: &str, args: &[&str]) -> String {
    let scratch = written();
    let mut said = String::new();
    for command in FULLSTOP.all() {
        let page = scratch.path().join("man").join(man::file_name(command));
        let output = Command::new(program).args(args).arg(page).output().unwrap();
        said.push_str(&String::from_utf8_lossy(&output.stdout));
        said.push_str(&String::from_utf8_lossy(&output.stderr));
    }
    said
}
