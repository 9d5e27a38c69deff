//! What a keeper answers: every kind of reply, and every code of a refusal.

use super::samples::{at, id, later, member, plain_member, states, words, written};
use super::vector::Vector;
use fullstop_core::cage::Member;
use fullstop_core::words::Reason;
use fullstop_protocol::{
    Census, Death, Failure, FailureCode, Refusal, RefusalCode, Reply, ReplyKind, RunState,
    Timestamp, TrackedMember,
};
use serde_json::json;

pub fn replies() -> Vec<Vector> {
    let mut vectors = Vec::new();
    let mut add = |name: &str, kind: ReplyKind| vectors.push(Vector::new(name, &reply(kind)));
    for state in states() {
        add(&format!("accepted: {}", state.word()), accepted(state));
    }
    for reason in words::<Reason>() {
        let state = RunState::Ended { reason: reason.into() };
        add(&format!("accepted: ended, {}", written(&reason)), accepted(state));
    }
    for code in words::<RefusalCode>() {
        add(&format!("refused: {}", written(&code)), ReplyKind::Refused(refusal(code)));
    }
    let refused = Refusal { code: later("lane-full"), message: "no".to_owned(), hint: None };
    add("refused: a later code", ReplyKind::Refused(refused));
    for code in words::<FailureCode>() {
        let failure = Failure::with_code(code, "it does not run");
        add(&format!("failed: {}", written(&code)), ReplyKind::Failed(failure));
    }
    let failure = Failure { code: later("lane-closed"), status: 125, message: "no".to_owned() };
    add("failed: a later code", ReplyKind::Failed(failure));
    add("census", ReplyKind::Census(census()));
    add("a crowd, of whom none is named", ReplyKind::Census(crowd()));
    let wrote_at = Some(Timestamp::from_unix_ms(1_794_790_765_448));
    add("sample", ReplyKind::Sample { census: census(), died: deaths(), cpu_ms: 12, wrote_at });
    let silent = ReplyKind::Sample { census: census(), died: vec![], cpu_ms: 12, wrote_at: None };
    add("sample of a run that has written nothing", silent);

    let to_host = Reply { id: 0, kind: accepted(RunState::Running) };
    let refused = ReplyKind::Refused(refusal(RefusalCode::NotHost));
    vectors.extend([
        Vector::new("accepted: to a host", &to_host),
        Vector::new("accepted, with later fields", &reply(accepted(RunState::Running)))
            .with_unknown("", "queue", json!(0))
            .with_unknown("", "step", json!("none")),
        Vector::new("refused, with later fields", &reply(refused)).with_unknown(
            "",
            "retry_ms",
            json!(50),
        ),
    ]);
    vectors
}

fn reply(kind: ReplyKind) -> Reply {
    Reply { id: 3, kind }
}

fn accepted(state: RunState) -> ReplyKind {
    ReplyKind::Accepted { run: id(), generation: 1, state, at: at(3) }
}

fn refusal(code: RefusalCode) -> Refusal {
    let (message, hint) = match code {
        RefusalCode::NoHello => {
            ("a connection begins with a hello", Some(r#"{"type":"hello","protocol":2}"#))
        }
        RefusalCode::UnsupportedProtocol => ("this keeper speaks version 2 of the wire", None),
        RefusalCode::UnknownRequest => {
            ("this keeper knows no request \"dance\"", Some("it knows stop"))
        }
        RefusalCode::InvalidRequest => ("this is no request", None),
        RefusalCode::Superseded => ("generation 1 is gone; this is generation 2", None),
        RefusalCode::NotHost => ("only the program that the run belongs to may let it stay", None),
        RefusalCode::HasHost => ("its host lives (pid 4711)", None),
        RefusalCode::Ending => ("it is stopping", None),
        RefusalCode::UnseenPeer => ("who asks cannot be seen from here", None),
        RefusalCode::NoTerminal => ("it has no terminal of its own", Some("fullstop run --pty")),
        RefusalCode::TooManyWindows => ("it has too many windows already", None),
        RefusalCode::NoStdin => ("its stdin is not ours to write", Some("--stdin pipe, or --pty")),
        RefusalCode::StdinClosed => ("its stdin is closed", None),
        RefusalCode::InputFull => ("the command does not read its input", None),
    };
    Refusal { code: code.into(), message: message.to_owned(), hint: hint.map(str::to_owned) }
}

fn census() -> Census {
    let members = vec![member(), plain_member()];
    let alive = members.len();
    let members = members.into_iter().map(tracked).collect();
    Census { at: at(9_000), alive, memory_bytes: 1 << 20, members }
}

fn crowd() -> Census {
    Census { at: at(9_000), alive: 12_000, memory_bytes: 1 << 33, members: Vec::new() }
}

/// The first one ignored what it was asked.
fn tracked(member: Member) -> TrackedMember {
    let asked_by = vec!["int@leader".to_owned(), "term@tree".to_owned()];
    TrackedMember { member, outlived: asked_by[..1].to_vec(), asked_by }
}

fn deaths() -> Vec<Death> {
    let death = |pid, is_exact| Death {
        pid,
        start_ticks: 880_410,
        command: "sleep 60".to_owned(),
        at: at(9_500),
        is_exact,
    };
    vec![death(4120, true), death(4121, false)]
}
