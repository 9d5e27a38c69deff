//! What is read one by one, as a [`Stream`].

use crate::error::Result;
use futures_core::Stream;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// The source again, and what it gave; nothing at its end.
pub(crate) type Next<S, T> = Pin<Box<dyn Future<Output = (S, Option<Result<T>>)> + Send>>;

/// Gives what a source gives. It ends with the source, or behind the first error.
pub(crate) struct Streamed<S, T> {
    state: State<S, T>,
    /// What can be had without waiting: nothing is allocated for it.
    at_once: fn(&mut S) -> Option<T>,
    next: fn(S) -> Next<S, T>,
}

enum State<S, T> {
    Here(S),
    Away(Next<S, T>),
    Over,
}

impl<S, T> Streamed<S, T> {
    pub fn new(
        source: S,
        at_once: fn(&mut S) -> Option<T>,
        next: fn(S) -> Next<S, T>,
    ) -> Streamed<S, T> {
        Streamed { state: State::Here(source), at_once, next }
    }
}

impl<S: Unpin, T> Stream for Streamed<S, T> {
    type Item = Result<T>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<T>>> {
        let at_once = self.at_once;
        if let State::Here(source) = &mut self.state {
            if let Some(item) = at_once(source) {
                return Poll::Ready(Some(Ok(item)));
            }
            if let State::Here(source) = std::mem::replace(&mut self.state, State::Over) {
                self.state = State::Away((self.next)(source));
            }
        }
        let State::Away(next) = &mut self.state else { return Poll::Ready(None) };
        let (source, item) = ready!(next.as_mut().poll(context));
        self.state = if matches!(item, Some(Ok(_))) { State::Here(source) } else { State::Over };
        Poll::Ready(item)
    }
}

#[cfg(test)]
mod tests;
