use super::*;
use crate::{FailureCode, Launch, Placement, ResizePolicy, Size, Start};
use fullstop_core::id::Id;
use serde_json::{Value, json};

/// A spec of which every field differs from what is usual.
fn full() -> Spec {
    Spec {
        version: SPEC_VERSION,
        argv: vec!["claude".into(), bytes(b"notes-\xff.md")],
        env: vec![("HOME".into(), "/home/ada".into()), ("ODD".into(), bytes(b"a=\xff"))],
        cwd: Some("/work".into()),
        name: Some("research".to_owned()),
        group: Some("plan/research".to_owned()),
        labels: "app=my-app".parse().expect("a label"),
        ladder: "int@leader:5s,kill".parse().expect("a ladder"),
        on_exit: OnExit::Wait,
        on_host_exit: Some(HostPolicy::Ignore),
        cage: CagePreference::Tree,
        timeout: Some(Duration::from_millis(1500)),
        no_output_timeout: Some(Duration::from_secs(2)),
        idle_timeout: Some(Duration::from_secs(3)),
        stdin: Stdin::File("/etc/hosts".into()),
        output: Output::Terminal { size: Size { rows: 50, cols: 120 }, fit: ResizePolicy::Fixed },
        log_max: Some(1 << 20),
        drain: Drain { quiet: Duration::from_millis(7), most: Duration::from_secs(9) },
        secrets: vec![SecretFile { name: "KEY".to_owned(), path: "/run/key".into(), fd: Some(9) }],
        keep_fds: vec![5],
        report: Some("/tmp/report.json".into()),
        key: Some(Key { name: "turn/7".to_owned(), if_busy: IfBusy::Replace }),
        argv0: Some("-claude".into()),
        umask: Some(0o77),
        user: Some(User { uid: 1000, gid: 1000 }),
        groups: Some(vec![7]),
        rlimits: [(Resource::OpenFiles, 64)].into(),
        limits: Some(Limits { memory_bytes: Some(1), processes: Some(2), cpu_percent: Some(3) }),
    }
}

fn bytes(bytes: &[u8]) -> Text {
    use std::os::unix::ffi::OsStringExt as _;
    Text(std::ffi::OsString::from_vec(bytes.to_vec()))
}

fn written(spec: &Spec) -> Value {
    serde_json::to_value(spec).expect("written")
}

fn read(value: &Value) -> Result<Spec, SpecError> {
    Spec::from_json(value.to_string().as_bytes())
}

#[test]
fn every_field_survives_alone_and_with_all_others() {
    assert_eq!(read(&written(&full())), Ok(full()));
    let usual = Spec::new(vec!["true".into()]);
    for (field, value) in written(&full()).as_object().expect("an object") {
        let mut one = written(&usual);
        one[field] = value.clone();
        let spec = read(&one).expect(field);
        assert_eq!(written(&spec), one, "{field}");
        assert_eq!(spec == usual, field == "version", "{field} is what is usual");
    }
}

#[test]
fn an_unknown_field_is_refused_by_its_name_wherever_it_stands() {
    let with = |pointer: &str, field: &str| {
        let mut value = written(&full());
        value.pointer_mut(pointer).expect(pointer)[field] = json!(1);
        read(&value).expect_err(pointer)
    };
    let places = [
        ("", "memory_max", "memory_max"),
        ("/drain", "soft_ms", "drain.soft_ms"),
        ("/secrets/0", "mode", "secrets.0.mode"),
        ("/output/terminal", "depth", "output.depth"),
    ];
    for (pointer, field, named) in places {
        let error = with(pointer, field);
        assert_eq!(error, SpecError::Unsupported { field: named.to_owned() });
        assert_eq!(error.code(), FailureCode::Unsupported);
    }
}

#[test]
fn what_is_not_supported_yet_is_refused_by_its_name() {
    let usual = || Spec::new(vec!["true".into()]);
    assert_eq!(usual().check_supported(), Ok(()));
    let later = ["key", "argv0", "umask", "user", "groups", "rlimits", "limits", "secrets.fd"];
    for (field, value) in written(&full()).as_object().expect("an object") {
        let mut one = written(&usual());
        one[field] = value.clone();
        let refused = read(&one).expect(field).check_supported().err();
        let named = later.iter().find(|named| named.split('.').next() == Some(field));
        let expected = named.map(|named| SpecError::Unsupported { field: (*named).to_owned() });
        assert_eq!(refused, expected, "{field}");
    }
    let newer = Spec { version: SPEC_VERSION + 1, ..usual() };
    assert_eq!(
        newer.check_supported().map_err(|error| error.code()),
        Err(FailureCode::Unsupported)
    );
}

#[test]
fn what_is_no_spec_says_why() {
    let wrong: [&[u8]; 6] = [
        b"",
        b"{}",
        b"[]",
        br#"{"argv": "true"}"#,
        br#"{"argv": ["true"], "cage": "vm"}"#,
        br#"{"argv": ["true"]} {"argv": ["false"]}"#,
    ];
    for json in wrong {
        let error = Spec::from_json(json).expect_err("no spec");
        assert_eq!(error.code(), FailureCode::InvalidSpec, "{error}");
    }
    for variable in ["HOME", "", "=x"] {
        let json = json!({"argv": ["true"], "env": [variable]});
        assert_eq!(
            read(&json).map_err(|error| error.code()),
            Err(FailureCode::InvalidSpec),
            "{variable}"
        );
    }
}

#[test]
fn no_name_is_written_like_an_id() {
    let named = |name: &str| {
        let name = Some(name.to_owned());
        Spec { name, ..Spec::new(vec!["true".into()]) }.check().map_err(|error| error.code())
    };
    for refused in ["0tfsgdc50f59n", "", "two\nlines"] {
        assert_eq!(named(refused), Err(FailureCode::InvalidSpec), "{refused:?}");
    }
    assert!(named("0tfs").is_ok() && named("research").is_ok());
}

/// The kernel would take what stands before it for the whole.
#[test]
fn there_is_no_zero_in_what_the_kernel_gets() {
    let usual = || Spec::new(vec!["true".into()]);
    for spec in [
        Spec { argv: vec!["true".into(), "a\0b".into()], ..usual() },
        Spec { env: vec![("A".into(), "\0".into())], ..usual() },
        Spec { cwd: Some("/\0".into()), ..usual() },
    ] {
        assert!(matches!(spec.check(), Err(SpecError::Field { .. })), "{spec:?}");
    }
}

#[test]
fn a_start_has_what_is_in_its_secrets() {
    let launch = || Launch::new(Id::new(1_800_000_000_000, 7), Placement::Background);
    let spec = Spec { secrets: full().secrets, ..Spec::new(vec!["true".into()]) };
    let spec = Spec { secrets: vec![SecretFile { fd: None, ..spec.secrets[0].clone() }], ..spec };
    let start = Start::new(spec, launch());
    assert!(matches!(start.check(), Err(SpecError::Field { field: "secrets", .. })));
    let secrets = vec![crate::Sealed::new(b"key".to_vec())];
    assert_eq!(Start { launch: Launch { secrets, ..launch() }, ..start }.check(), Ok(()));
}

#[test]
fn a_time_that_was_given_is_never_none() {
    let timeout = Some(Duration::from_micros(1));
    let spec = Spec { timeout, ..Spec::new(vec!["true".into()]) };
    assert_eq!(written(&spec)["timeout_ms"], 1);
}

#[test]
fn what_a_launch_alone_can_give_is_named() {
    let apart =
        || Spec { stdin: Stdin::Null, output: Output::Log, ..Spec::new(vec!["true".into()]) };
    assert_eq!(apart().needs_caller(), None);
    for needs in [
        Spec { stdin: Stdin::Inherit, ..apart() },
        Spec { output: Output::Inherit, ..apart() },
        Spec { output: Output::Show, ..apart() },
        Spec { keep_fds: vec![3], ..apart() },
    ] {
        assert!(needs.needs_caller().is_some(), "{needs:?}");
    }
}

#[test]
fn a_start_is_strict_about_its_spec_alone() {
    let launch = Launch::new(Id::new(1_800_000_000_000, 7), Placement::Background);
    let start = Start::new(full(), launch);
    let mut value = serde_json::to_value(&start).expect("written");
    value["launch"]["lane"] = json!("night");
    let read = |value: &Value| Start::from_json(value.to_string().as_bytes());
    assert_eq!(read(&value), Ok(start));
    value["spec"]["lane"] = json!("night");
    assert_eq!(read(&value), Err(SpecError::Unsupported { field: "lane".to_owned() }));
}

#[test]
fn a_start_in_another_version_of_the_wire_is_refused_whatever_else_it_says() {
    for protocol in [1, PROTOCOL_VERSION + 1] {
        let json = json!({"protocol": protocol, "spec": 7}).to_string();
        let refused = Start::from_json(json.as_bytes()).unwrap_err();
        assert_eq!(refused, SpecError::UnsupportedProtocol { theirs: protocol });
        assert_eq!(refused.code(), FailureCode::UnsupportedProtocol);
    }
}
