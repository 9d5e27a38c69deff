use super::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc as channel};
use std::task::Waker;
use tokio::sync::oneshot;

/// Longer than anything that is meant to happen at once takes on a busy machine.
const SOON: Duration = Duration::from_mins(1);

fn poll_once<T>(future: Pin<&mut impl Future<Output = T>>) -> Poll<T> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Waits without tokio, as another executor would.
fn wait<T>(mut future: Pin<&mut impl Future<Output = T>>) -> T {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(done) => return done,
            Poll::Pending => std::thread::park(),
        }
    }
}

#[test]
fn an_order_that_is_dropped_after_one_poll_is_carried_out() {
    let (done, is_done) = channel::channel();
    let (go, gone) = oneshot::channel::<()>();
    {
        let order = pin!(carry_out(async move {
            let _ = gone.await;
            let _ = done.send(());
            Ok(())
        }));
        assert!(poll_once(order).is_pending());
    }
    assert!(is_done.try_recv().is_err());
    drop(go);
    is_done.recv_timeout(SOON).expect("carried out");
}

#[test]
fn an_order_that_was_never_polled_was_not_given() {
    let given = Arc::new(AtomicBool::new(false));
    let theirs = Arc::clone(&given);
    drop(carry_out(async move {
        theirs.store(true, Ordering::SeqCst);
        Ok(())
    }));
    // What is given later is carried out later.
    wait(pin!(carry_out(async { Ok(()) }))).expect("carried out");
    assert!(!given.load(Ordering::SeqCst));
}

#[test]
fn waiting_ends_with_the_future() {
    let (told, tell) = oneshot::channel::<()>();
    {
        let waiting = pin!(await_there(async move {
            std::future::pending::<()>().await;
            drop(told);
            Ok(())
        }));
        assert!(poll_once(waiting).is_pending());
    }
    // The other end is dropped with what waited.
    assert!(wait(pin!(tell)).is_err());
}

#[test]
fn no_runtime_is_needed_and_progress_is_told_in_order() {
    let mut heard = Vec::new();
    let order = |sender: ProgressSender<u32>| async move {
        for progress in 1..=3 {
            sleep(Duration::from_millis(1)).await;
            sender.send(progress);
        }
        Ok(4)
    };
    let here = std::thread::current().id();
    let tell = |progress| {
        assert_eq!(std::thread::current().id(), here);
        heard.push(progress);
    };
    let done = wait(pin!(carry_out_telling(order, tell)));
    assert_eq!(done.ok(), Some(4));
    assert_eq!(heard, [1, 2, 3]);
}

#[test]
fn a_panic_comes_back_to_whoever_waits() {
    let order = pin!(carry_out::<()>(async { panic!("as it should") }));
    let caught = catch_unwind(AssertUnwindSafe(|| wait(order)));
    let panic = caught.expect_err("it was swallowed");
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"as it should"));
    assert_eq!(wait(pin!(carry_out(async { Ok(7) }))).ok(), Some(7));
}

/// As after a fork: what was given before is carried out by the original, and told there.
#[test]
fn an_order_that_a_copy_of_the_process_waits_for_is_unfinished() {
    let mut given = give(async { Ok(7) }).expect("a thread");
    given.owner = Owner::of_another_process();
    assert!(matches!(wait(pin!(given)), Err(Error::Unfinished)));
}
