//! What passes between a window and a keeper arrives as it was sent, however it is
//! cut on the way; and nothing that arrives can break whoever reads it.

use fullstop_protocol::{Frame, FrameDecoder, InvalidFrame, Size};
use proptest::collection::vec;
use proptest::prelude::*;

fn frame() -> impl Strategy<Value = Frame> {
    let bytes = || vec(any::<u8>(), 0..300);
    prop_oneof![
        bytes().prop_map(Frame::Bytes),
        any::<(u16, u16)>().prop_map(|(rows, cols)| Frame::Resize(Size { rows, cols })),
        (any::<u64>(), bytes()).prop_map(|(offset, bytes)| Frame::Screen { offset, bytes }),
        Just(Frame::All),
        (any::<u64>(), "\\PC{0,30}").prop_map(|(bytes, why)| Frame::Shown {
            bytes,
            refusal: (!why.is_empty()).then_some(why),
        }),
        bytes().prop_map(Frame::Report),
    ]
}

/// The same bytes in pieces; a cut may fall anywhere, and twice on the same place.
fn pieces(bytes: &[u8], cuts: &[prop::sample::Index]) -> Vec<Vec<u8>> {
    let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    at.extend([0, bytes.len()]);
    at.sort_unstable();
    at.windows(2).map(|pair| bytes[pair[0]..pair[1]].to_vec()).collect()
}

/// Everything understood so far.
fn heard(frames: &mut FrameDecoder) -> Vec<Result<Frame, InvalidFrame>> {
    let mut all = Vec::new();
    while let Some(next) = frames.next() {
        let broken = next.is_err();
        all.push(next);
        if broken {
            break;
        }
    }
    all
}

proptest! {
    #[test]
    fn frames_arrive_as_they_were_sent_in_any_pieces(
        sent in vec(frame(), 0..8),
        cuts in vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let stream: Vec<u8> = sent.iter().flat_map(Frame::encode).collect();
        let mut frames = FrameDecoder::default();
        let mut arrived = Vec::new();
        for piece in pieces(&stream, &cuts) {
            frames.feed(&piece);
            arrived.extend(heard(&mut frames));
        }
        prop_assert_eq!(arrived, sent.into_iter().map(Ok).collect::<Vec<_>>());
        prop_assert_eq!(frames.next(), None, "nothing is left over");
    }

    #[test]
    fn a_frame_comes_with_its_last_byte_and_not_before(frame in frame()) {
        let whole = frame.encode();
        let (last, most) = whole.split_last().expect("a frame has a head");
        let mut frames = FrameDecoder::default();
        frames.feed(most);
        prop_assert_eq!(frames.next(), None);
        frames.feed(&[*last]);
        prop_assert_eq!(frames.next(), Some(Ok(frame)));
    }

    #[test]
    fn nothing_that_arrives_breaks_the_reader(
        noise in vec(any::<u8>(), 0..200),
        cuts in vec(any::<prop::sample::Index>(), 0..4),
    ) {
        let mut frames = FrameDecoder::default();
        for piece in pieces(&noise, &cuts) {
            frames.feed(&piece);
            heard(&mut frames);
        }
    }

    #[test]
    fn a_head_of_chance_with_a_short_body_breaks_nothing(
        kind in prop::sample::select(b"brsawe".to_vec()),
        body in vec(any::<u8>(), 0..12),
    ) {
        let length = u32::try_from(body.len()).expect("a short body");
        let mut frames = FrameDecoder::default();
        frames.feed(&[&[kind][..], &length.to_be_bytes(), &body].concat());
        prop_assert!(frames.next().is_some(), "a whole frame is understood or refused");
        prop_assert_eq!(frames.next(), None);
    }
}

#[test]
fn a_kind_that_is_not_known_yet_is_passed_over() {
    let mut frames = FrameDecoder::default();
    frames.feed(b"Z\0\0\0\x03new");
    frames.feed(&Frame::All.encode());
    assert_eq!(frames.next(), Some(Ok(Frame::All)));
    assert_eq!(frames.next(), None);
}

#[test]
fn a_frame_too_long_to_be_true_is_refused_before_it_comes() {
    let mut frames = FrameDecoder::default();
    frames.feed(&[b'b', 0xff, 0xff, 0xff, 0xff]);
    let refused = frames.next().expect("it need not be waited for");
    assert!(refused.expect_err("too long").to_string().contains("4294967295"));
}

#[test]
fn the_longest_frame_that_may_come_is_waited_for() {
    const LONGEST: u32 = 64 << 20;
    let mut frames = FrameDecoder::default();
    frames.feed(&[&b"b"[..], &LONGEST.to_be_bytes()].concat());
    assert_eq!(frames.next(), None);
    let mut frames = FrameDecoder::default();
    frames.feed(&[&b"b"[..], &(LONGEST + 1).to_be_bytes()].concat());
    assert!(matches!(frames.next(), Some(Err(_))));
}

#[test]
fn a_size_of_the_wrong_length_is_refused() {
    for length in [0_u8, 3, 5] {
        let mut frames = FrameDecoder::default();
        frames.feed(&[b'r', 0, 0, 0, length]);
        frames.feed(&vec![0; length.into()]);
        assert!(matches!(frames.next(), Some(Err(_))), "{length}");
    }
}
