//! Specs, and starts, which have one within.

use super::samples::{bytes, id, process, words, written};
use super::vector::Vector;
use fullstop_core::cage::CagePreference;
use fullstop_core::words::OnExit;
use fullstop_protocol::{
    Drain, GroupGenerations, Host, HostPolicy, IfBusy, Key, Launch, Limits, Output, Placement,
    ResizePolicy, Resource, SPEC_VERSION, Sealed, SecretFile, Size, Spec, Start, Stdin, User,
};
use serde_json::json;
use std::time::Duration;

pub fn specs() -> Vec<Vector> {
    let mut vectors = vec![
        Vector::new("usual", &usual()),
        Vector::short("minimal", json!({"argv": ["true"]}), &usual()),
        Vector::new("every field", &full()),
    ];
    let mut add = |name: String, spec: Spec| vectors.push(Vector::new(name, &spec));
    for on_exit in words::<OnExit>() {
        add(format!("on_exit {}", written(&on_exit)), Spec { on_exit, ..usual() });
    }
    for policy in words::<HostPolicy>() {
        let spec = Spec { on_host_exit: Some(policy), ..usual() };
        add(format!("on_host_exit {}", written(&policy)), spec);
    }
    for cage in words::<CagePreference>() {
        add(format!("cage {}", written(&cage)), Spec { cage, ..usual() });
    }
    for stdin in words::<Stdin>() {
        add(format!("stdin {}", written(&stdin)), Spec { stdin, ..usual() });
    }
    for output in words::<Output>() {
        add(format!("output {}", written(&output)), Spec { output, ..usual() });
    }
    for fit in words::<ResizePolicy>() {
        let output = Output::Terminal { size: Size::default(), fit };
        add(format!("a terminal that fits the {}", written(&fit)), Spec { output, ..usual() });
    }
    for if_busy in words::<IfBusy>() {
        let key = Some(Key { name: "turn/7".to_owned(), if_busy });
        add(format!("if_busy {}", written(&if_busy)), Spec { key, ..usual() });
    }
    vectors
}

pub fn usual() -> Spec {
    Spec::new(vec!["true".into()])
}

/// A spec of which every field differs from what is usual.
pub fn full() -> Spec {
    Spec {
        version: SPEC_VERSION,
        argv: vec!["claude".into(), bytes(b"notes-\xff.md")],
        env: vec![
            ("HOME".into(), "/home/ada".into()),
            ("EMPTY".into(), "".into()),
            ("=ODD".into(), bytes(b"a=\xff")),
        ],
        cwd: Some("/work/größe".into()),
        name: Some("research".to_owned()),
        group: Some("plan/research".to_owned()),
        labels: "app=my-app".parse().expect("a label"),
        ladder: r#"input:"/exit\n":1s,int@group:5s,kill:10s"#.parse().expect("a ladder"),
        on_exit: OnExit::Wait,
        on_host_exit: Some(HostPolicy::Ignore),
        cage: CagePreference::Tree,
        timeout: Some(Duration::from_millis(1500)),
        no_output_timeout: Some(Duration::from_secs(2)),
        idle_timeout: Some(Duration::from_secs(3)),
        stdin: Stdin::File(bytes(b"/etc/h\xffsts")),
        output: Output::Terminal { size: Size { rows: 50, cols: 120 }, fit: ResizePolicy::Fixed },
        log_max: Some(1 << 20),
        drain: Drain { quiet: Duration::from_millis(7), most: Duration::from_secs(9) },
        secrets: vec![SecretFile { name: "KEY".to_owned(), path: "/run/key".into(), fd: Some(9) }],
        keep_fds: vec![5],
        report: Some("/tmp/report.json".into()),
        key: Some(Key { name: "turn/7".to_owned(), if_busy: IfBusy::Replace }),
        argv0: Some("-claude".into()),
        umask: Some(0o77),
        user: Some(User { uid: 1000, gid: 100 }),
        groups: Some(vec![7]),
        rlimits: words::<Resource>().into_iter().zip(64..).collect(),
        limits: Some(Limits { memory_bytes: Some(1), processes: Some(2), cpu_percent: Some(3) }),
    }
}

pub fn starts() -> Vec<Vector> {
    let usual = |placement| Start::new(usual(), Launch::new(id(), placement));
    let short = json!({
        "spec": {"argv": ["true"]},
        "launch": {"id": id(), "generation": 1, "placement": "background"},
    });
    let full = Start::new(full(), full_launch());
    let mut vectors = vec![
        Vector::short("minimal", short, &usual(Placement::Background)),
        Vector::new("every field", &full),
        Vector::new("every field, and later ones", &full)
            .with_unknown("", "hub", json!("night"))
            .with_unknown("/launch", "lane", json!({"name": "night"}))
            .with_unknown("/launch/host", "badge", json!(7)),
    ];
    for placement in words::<Placement>() {
        let name = format!("placement {}", written(&placement));
        vectors.push(Vector::new(name, &usual(placement)));
    }
    vectors
}

fn full_launch() -> Launch {
    Launch {
        id: id(),
        generation: 2,
        placement: Placement::Beside,
        host: Some(Host { app: Some("my-app".to_owned()), process: process(4711) }),
        state_dir: Some("/var/lib/my-app".into()),
        group_generations: Some(GroupGenerations(vec!["1".to_owned(), "3".to_owned()])),
        secrets: vec![Sealed::new(b"sk-\xff".to_vec())],
    }
}
