//! Waiting for the first of several things.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

pub(crate) type Wait<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Returns when the first of them is done; the others are dropped.
pub(crate) async fn any_of<const N: usize>(mut all: [Wait<'_>; N]) {
    poll_fn(|context| {
        let done = all.iter_mut().any(|one| one.as_mut().poll(context).is_ready());
        if done { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}
