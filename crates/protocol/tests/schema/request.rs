//! What a client says: the hello, and every kind of request.

use super::samples::{bytes, words, written};
use super::vector::Vector;
use fullstop_core::signal::Signal;
use fullstop_protocol::{
    Hello, HostPolicy, PROTOCOL_VERSION, Request, RequestKind, Size, StopReason,
};
use serde_json::json;
use std::time::Duration;

pub fn hellos() -> Vec<Vector> {
    // The name of a program has its version, with which a vector must not change.
    let ours = |hello: Hello| Hello { program: "fullstop 1.2.3".to_owned(), ..hello };
    let least = Hello { protocol: PROTOCOL_VERSION, program: String::new(), can: Vec::new() };
    let json = json!({"type": "hello", "protocol": PROTOCOL_VERSION});
    vec![
        Vector::new("of a client", &ours(Hello::of_client())),
        Vector::new("of a keeper", &ours(Hello::of_keeper())),
        Vector::short("the least", json, &least),
        Vector::new("of a later client", &Hello { protocol: PROTOCOL_VERSION + 1, ..least })
            .with_unknown("", "codec", json!("cbor")),
    ]
}

pub fn requests() -> Vec<Vector> {
    let mut vectors = Vec::new();
    let mut add = |name: &str, kind: RequestKind| vectors.push(Vector::new(name, &request(kind)));
    for reason in words::<StopReason>() {
        let kind = RequestKind::Stop { reason, signal: None, within: None };
        add(&format!("stop: {}", written(&reason)), kind);
    }
    add("stop, passed on", stop(Some(Signal::HUP)));
    let (reason, within) = (StopReason::Stopped, Some(Duration::from_millis(2500)));
    add("stop, within a time", RequestKind::Stop { reason, signal: None, within });
    add("kill", RequestKind::Kill);
    add("signal", RequestKind::Signal { signal: Signal::USR1 });
    let signal = Signal::new(37).expect("a signal");
    add("a real-time signal", RequestKind::Signal { signal });
    add("input", RequestKind::Input { text: "größer\n".into() });
    add("input that is not UTF-8", RequestKind::Input { text: bytes(b"a\xff\0") });
    add("await-room", RequestKind::AwaitRoom { bytes: 8192 });
    add("close-stdin", RequestKind::CloseStdin);
    add("resize", RequestKind::Resize { size: SIZE });
    let window = |size| RequestKind::Attach { size, view: false, owner: false, sizes: false };
    add("attach", window(Some(SIZE)));
    let view = RequestKind::Attach { size: None, view: true, owner: false, sizes: true };
    add("attach to look, and be told the size", view);
    let (size, view, sizes) = (Some(SIZE), false, false);
    add("attach as the owner", RequestKind::Attach { size, view, owner: true, sizes });
    add("stay", RequestKind::Stay);
    for on_host_exit in [HostPolicy::Stop, HostPolicy::Ignore] {
        let app = Some("my-app".to_owned());
        let name = format!("adopt: {}", written(&on_host_exit));
        add(&name, RequestKind::Adopt { app, on_host_exit });
    }
    let nameless = RequestKind::Adopt { app: None, on_host_exit: HostPolicy::Stop };
    add("adopt, without a name", nameless);
    add("leave", RequestKind::Leave);
    add("census", RequestKind::Census);
    add("subscribe", RequestKind::Subscribe);

    let full = Request { generation: Some(2), by: Some("Ada".to_owned()), ..request(stop(None)) };
    vectors.extend([
        Vector::new("of one generation, on behalf of somebody", &full),
        Vector::short("the least stop", json!({"id": 3, "type": "stop"}), &request(stop(None))),
        Vector::short(
            "the least attach",
            json!({"id": 3, "type": "attach"}),
            &request(window(None)),
        ),
        Vector::new("stop, with later fields", &request(stop(None))).with_unknown(
            "",
            "urgent",
            json!(true),
        ),
        Vector::new("resize, with later fields", &request(RequestKind::Resize { size: SIZE }))
            .with_unknown("/size", "pixels", json!([640, 480])),
    ]);
    vectors
}

const SIZE: Size = Size { rows: 50, cols: 120 };

fn stop(signal: Option<Signal>) -> RequestKind {
    RequestKind::Stop { reason: StopReason::Stopped, signal, within: None }
}

fn request(kind: RequestKind) -> Request {
    Request { id: 3, generation: None, by: None, kind }
}
