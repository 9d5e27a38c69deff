use super::*;
use crate::blocking::wait;
use crate::error::Error;
use std::future::poll_fn;

/// Gives what it has, then what comes later, then an error.
struct Source {
    has: Vec<u32>,
    later: Vec<u32>,
}

fn next(mut source: Source) -> Next<Source, u32> {
    Box::pin(async move {
        tokio::task::yield_now().await;
        let item = source.later.pop().ok_or(Error::Unfinished);
        (source, Some(item))
    })
}

#[test]
fn a_stream_gives_all_and_ends_behind_an_error() {
    let source = Source { has: vec![2, 1], later: vec![4, 3] };
    let mut stream = Streamed::new(source, |source: &mut Source| source.has.pop(), next);
    let mut given = Vec::new();
    let ended = wait(async {
        while let Some(item) = poll_fn(|context| Pin::new(&mut stream).poll_next(context)).await {
            given.push(item?);
        }
        Ok(())
    });
    assert!(matches!(ended, Err(Error::Unfinished)));
    assert_eq!(given, [1, 2, 3, 4]);
    let behind = wait(async {
        Ok(poll_fn(|context| Pin::new(&mut stream).poll_next(context)).await.is_none())
    });
    assert_eq!(behind.ok(), Some(true), "it goes on behind an error");
}
