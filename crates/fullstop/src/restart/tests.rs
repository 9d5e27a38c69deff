use super::*;
use fullstop_store::{Fit, Size};

#[test]
fn the_next_generation_stands_on_its_own() {
    let plain = Ladder::default();
    let closes: Ladder = "close-stdin:1s,kill".parse().expect("a ladder");
    let own = Output::Terminal { size: Size::default(), fit: Fit::Latest };
    let file = Stdin::File("/x".into());
    let table = [
        (Stdin::Inherit, Output::Inherit, &plain, Stdin::Null, Output::Log),
        (Stdin::Inherit, Output::Show, &plain, Stdin::Null, Output::Log),
        (Stdin::Inherit, Output::Inherit, &closes, Stdin::Pipe, Output::Log),
        (Stdin::Pipe, Output::Log, &plain, Stdin::Pipe, Output::Log),
        (file.clone(), Output::Log, &plain, file, Output::Log),
        (Stdin::Null, own, &plain, Stdin::Null, own),
    ];
    for (stdin, output, ladder, next_stdin, next_output) in table {
        let streams = Streams { stdin, output, log_max: Some(1 << 20), ..Streams::default() };
        let next = in_the_background(streams.clone(), ladder);
        assert_eq!((next.stdin, next.output), (next_stdin, next_output), "{streams:?}");
        assert_eq!(next.log_max, streams.log_max);
    }
}
