use super::*;
use fullstop_protocol::{Output, SecretFile};

#[test]
fn a_report_that_cannot_be_written_again_is_found_beforehand() {
    let here = std::env::temp_dir().join(format!("fullstop-restart-{}", std::process::id()));
    std::fs::create_dir_all(&here).expect("made");
    let fine = [here.join("new.json"), here.clone()];
    for path in &fine {
        check_report(&Text(path.clone().into_os_string())).expect("it can be written");
    }
    for wrong in ["/dev/fd/7", "/proc/self/fd/7", "/nowhere/at/all.json"] {
        let why = check_report(&wrong.into()).expect_err(wrong).to_string();
        assert!(why.starts_with(&format!("cannot write the report {wrong}: ")), "{why}");
    }
    std::fs::remove_dir_all(&here).expect("removed");
}

#[test]
fn what_a_command_begins_with_must_be_there() {
    let apart = || Spec {
        stdin: Stdin::Null,
        output: Output::Log,
        cwd: Some("/".into()),
        ..Spec::new(vec!["/bin/sh".into()])
    };
    check_place(&apart()).expect("all is there");
    let gone = || Text::from("/nowhere");
    for lacks in [
        Spec { cwd: Some(gone()), ..apart() },
        Spec { stdin: Stdin::File(gone()), ..apart() },
        Spec { report: Some("/nowhere/report".into()), ..apart() },
        Spec { argv: vec![gone()], ..apart() },
    ] {
        assert!(check_place(&lacks).is_err(), "{lacks:?}");
    }
    let pipe = SecretFile { name: "KEY".to_owned(), path: "/dev/fd/9".into(), fd: None };
    assert!(secret::read_again(&pipe).is_err());
}
