use super::*;
use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

const STOP: &[u8] = b"{\"ask\":\"stop\",\"generation\":1}\n";

struct Door {
    control: Control,
    path: PathBuf,
}

impl Door {
    fn open(name: &str) -> Door {
        let path = std::env::temp_dir().join(format!("fullstop-{name}-{}", std::process::id()));
        let listener = UnixListener::bind(&path).expect("a socket");
        rustix::net::listen(&listener, 4096).expect("a long queue");
        listener.set_nonblocking(true).expect("no waiting");
        let mut control = Control::default();
        control.listen(listener.into());
        Door { control, path }
    }

    fn client(&self, says: &[u8]) -> UnixStream {
        let mut client = UnixStream::connect(&self.path).expect("connected");
        client.write_all(says).expect("said");
        client
    }

    /// One turn of the keeper: how many orders it hears, and answers.
    fn hear(&mut self) -> usize {
        let (orders, _) = self.control.turn();
        for Order { from, request } in &orders {
            assert!(matches!(request, Ok(Request::Stop { .. })), "{request:?}");
            self.control.answer(*from, &Reply::Refused { why: "heard".to_owned() });
        }
        self.control.tidy();
        orders.len()
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn is_answered(client: &mut UnixStream) -> bool {
    client.set_nonblocking(true).expect("no waiting");
    let mut answer = [0; 64];
    client.read(&mut answer).is_ok_and(|length| length > 0)
}

/// More than there is room for come at once, each with a stop: nobody is sent away, and
/// all are heard in time.
#[test]
fn a_new_client_never_pushes_out_the_stop_of_another() {
    let mut door = Door::open("crowd");
    let mut clients: Vec<UnixStream> = (0..=2 * MOST_CLIENTS).map(|_| door.client(STOP)).collect();
    let mut heard = 0;
    for _ in 0..3 {
        door.control.deaf_until = None;
        heard += door.hear();
    }
    assert_eq!(heard, clients.len());
    // The last turn lets in who waited at the door; the others are done, and may go.
    assert!(clients.iter_mut().all(is_answered));
}

/// A crowd that was answered, or never asks, keeps nobody out.
#[test]
fn who_is_idle_makes_room() {
    let mut door = Door::open("idle");
    let silent: Vec<UnixStream> = (0..MOST_CLIENTS).map(|_| door.client(b"")).collect();
    assert_eq!(door.hear(), 0);
    let late = door.client(STOP);
    assert_eq!(door.hear(), 0, "they have only just come");
    for client in &mut door.control.clients {
        client.since = Moment::default();
    }
    door.control.deaf_until = None;
    assert_eq!(door.hear(), 1);
    drop((silent, late));
}
