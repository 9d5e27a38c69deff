//! The window of the library, against somebody who speaks like a keeper.

mod keeper;

use fullstop::{AttachOptions, Error, Exit, Reason, Run, Runs, Shown, Size, blocking};
use fullstop_protocol::{Frame, Refusal, RefusalCode, ReplyKind, RequestKind};
use keeper::Keeper;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

fn run(keeper: &Keeper) -> Run {
    let runs = Runs::at(keeper.dir()).expect("the runs");
    fullstop::blocking::wait(runs.find(keeper.id().as_str())).expect("the run")
}

const SIZE: Size = Size { rows: 30, cols: 100 };

#[test]
fn it_shows_the_screen_then_what_comes_then_the_end() {
    let keeper = Keeper::new();
    let run = run(&keeper);
    let script = thread::spawn(move || {
        let (mut client, request) = keeper.window();
        let asked = RequestKind::Attach { size: Some(SIZE), view: false, owner: false };
        assert_eq!((request.kind, request.generation), (asked, Some(1)));
        client.say(&Frame::Screen { offset: 7, bytes: b"$ ".to_vec() });
        assert_eq!(client.typed(3), b"ls\r");
        let smaller = Size { rows: 10, cols: 20 };
        assert_eq!(client.next(), Some(Frame::Resize(smaller)));
        client.say(&Frame::Bytes(b"ls\r\n".to_vec()));
        client.report(&keeper.report(Reason::Exited, Exit::Code(3)));
        keeper
    });
    blocking::wait(async {
        let options = AttachOptions { size: Some(SIZE), view: false };
        let mut window = run.attach(options).await?;
        assert_eq!(window.next().await?, Shown::Screen(b"$ ".to_vec()));
        window.type_bytes(b"ls\r").await?;
        window.resize(Size { rows: 10, cols: 20 }).await?;
        assert_eq!(window.next().await?, Shown::Bytes(b"ls\r\n".to_vec()));
        for _ in 0..2 {
            let Shown::Over(report) = window.next().await? else { panic!("it is over") };
            assert_eq!(report.exit, Some(Exit::Code(3)), "however often it is asked");
        }
        assert!(window.type_bytes(b"x").await.is_err(), "nobody is there to hear it");
        Ok(())
    })
    .expect("a window");
    script.join().expect("the keeper's side");
}

#[test]
fn what_the_log_holds_beyond_a_dead_keeper_is_shown() {
    let mut keeper = Keeper::new();
    let run = run(&keeper);
    let script = thread::spawn(move || {
        let (mut client, _) = keeper.window();
        // Three bytes were written before the window came, of which it sees the screen.
        keeper.log(b"abcdef");
        client.say(&Frame::Screen { offset: 3, bytes: b"[abc]".to_vec() });
        client.say(&Frame::Bytes(b"de".to_vec()));
        keeper.die();
        drop(client);
        keeper.log(b"ghi");
        keeper.end(&keeper.report(Reason::KeeperDied, Exit::Unknown));
        keeper
    });
    blocking::wait(async {
        let mut window = run.attach(AttachOptions::default()).await?;
        assert_eq!(window.next().await?, Shown::Screen(b"[abc]".to_vec()));
        assert_eq!(window.next().await?, Shown::Bytes(b"de".to_vec()));
        assert_eq!(window.next().await?, Shown::Bytes(b"fghi".to_vec()));
        let Shown::Over(report) = window.next().await? else { panic!("it is over") };
        assert_eq!(report.reason(), Reason::KeeperDied);
        Ok(())
    })
    .expect("a window");
    script.join().expect("the keeper's side");
}

#[test]
fn what_a_dead_keeper_has_written_to_the_next_file_is_shown() {
    let mut keeper = Keeper::new();
    let run = run(&keeper);
    let script = thread::spawn(move || {
        let (mut client, _) = keeper.window();
        keeper.log(&[b'-'; 38]);
        client.say(&Frame::Screen { offset: 38, bytes: b"[-]".to_vec() });
        keeper.log(b"abcdef");
        keeper.die();
        drop(client);
        keeper.end(&keeper.report(Reason::KeeperDied, Exit::Unknown));
        keeper
    });
    blocking::wait(async {
        let mut window = run.attach(AttachOptions::default()).await?;
        assert_eq!(window.next().await?, Shown::Screen(b"[-]".to_vec()));
        assert_eq!(window.next().await?, Shown::Bytes(b"ab".to_vec()));
        assert_eq!(window.next().await?, Shown::Bytes(b"cdef".to_vec()));
        assert!(matches!(window.next().await?, Shown::Over(_)));
        Ok(())
    })
    .expect("a window");
    script.join().expect("the keeper's side");
}

#[test]
fn a_keeper_that_only_hung_up_is_asked_again() {
    let keeper = Keeper::new();
    let run = run(&keeper);
    let script = thread::spawn(move || {
        drop(keeper.window());
        let (mut client, _) = keeper.window();
        client.say(&Frame::Screen { offset: 0, bytes: b"again".to_vec() });
        assert_eq!(client.next(), None);
        keeper
    });
    blocking::wait(async {
        let mut window = run.attach(AttachOptions::default()).await?;
        assert_eq!(window.next().await?, Shown::Screen(b"again".to_vec()));
        Ok(())
    })
    .expect("a window");
    script.join().expect("the keeper's side");
}

#[test]
fn being_cut_short_in_the_middle_of_a_frame_loses_nothing() {
    let keeper = Keeper::new();
    let run = run(&keeper);
    let (go_on, wait) = channel::<()>();
    let script = thread::spawn(move || {
        let (mut client, _) = keeper.window();
        let bytes = Frame::Bytes(b"whole".to_vec()).encode();
        for piece in bytes.chunks(3) {
            client.write(piece);
            let _ = wait.recv();
        }
        keeper
    });
    blocking::wait(async {
        let mut window = run.attach(AttachOptions::default()).await?;
        loop {
            let soon = Duration::from_millis(5);
            match tokio::time::timeout(soon, window.next()).await {
                Err(_) => go_on.send(()).expect("the keeper goes on"),
                Ok(shown) => {
                    assert_eq!(shown?, Shown::Bytes(b"whole".to_vec()));
                    drop(go_on);
                    return Ok(());
                }
            }
        }
    })
    .expect("a window");
    script.join().expect("the keeper's side");
}

#[test]
fn who_only_looks_cannot_type_and_who_is_refused_is_told_why() {
    let keeper = Keeper::new();
    let run = run(&keeper);
    let script = thread::spawn(move || {
        let (client, request) = keeper.window();
        assert!(matches!(request.kind, RequestKind::Attach { view: true, size: None, .. }));
        let (mut other, _) = keeper.hear();
        let refusal = Refusal::new(RefusalCode::NoTerminal, "it has no terminal");
        other.answer(ReplyKind::Refused(refusal));
        drop(client);
        keeper
    });
    blocking::wait(async {
        let view = AttachOptions { view: true, size: None };
        let mut window = run.attach(view).await?;
        assert!(matches!(window.type_bytes(b"x").await, Err(Error::Unfit(_))));
        let refused = run.attach(view).await.map(drop);
        assert_eq!(refused.unwrap_err().to_string(), "it has no terminal");
        Ok(())
    })
    .expect("a window");
    script.join().expect("the keeper's side");
}

#[test]
fn a_run_that_is_over_has_no_window() {
    let mut keeper = Keeper::new();
    let run = run(&keeper);
    keeper.end(&keeper.report(Reason::Exited, Exit::Code(0)));
    let refused = blocking::wait(async { run.attach(AttachOptions::default()).await.map(drop) });
    assert!(refused.unwrap_err().to_string().ends_with("is over"));
}
