//! What passes between a window and a keeper, once [`RequestKind::Attach`] was accepted.
//!
//! [`RequestKind::Attach`]: crate::RequestKind::Attach

use crate::streams::Size;

/// What passes between a window and a keeper: a byte for the kind, four for the
/// length, and as many bytes as that.
///
/// ```
/// use fullstop_protocol::{Frame, FrameDecoder};
///
/// let mut frames = FrameDecoder::default();
/// frames.feed(&Frame::Bytes(b"ls\r".to_vec()).encode());
/// assert_eq!(frames.next(), Some(Ok(Frame::Bytes(b"ls\r".to_vec()))));
/// assert_eq!(frames.next(), None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// What was typed, or is to be shown.
    Bytes(Vec<u8>),
    /// From the window: its size, as it is now. From the keeper, to a window that has asked for
    /// sizes: that of the terminal.
    Resize(Size),
    /// From the keeper: the screen as it is now, whatever was shown before. The
    /// number of bytes of `tty.log` that it stands for.
    Screen {
        /// So many bytes of `tty.log` are shown by it.
        offset: u64,
        /// What a terminal is to be sent.
        bytes: Vec<u8>,
    },
    /// From the keeper to the window the run was started from: that was all of it, and
    /// it is to be answered by [`Frame::Shown`] once it was shown.
    All,
    /// From the window the run was started from: so many bytes were shown; `refusal`:
    /// why it cannot show more.
    Shown {
        /// How many.
        bytes: u64,
        /// Why it cannot show more.
        refusal: Option<String>,
    },
    /// From the keeper: over, or stuck; the report as JSON.
    Report(Vec<u8>),
}

const BYTES: u8 = b'b';
const RESIZE: u8 = b'r';
const SCREEN: u8 = b's';
const ALL: u8 = b'a';
const SHOWN: u8 = b'w';
const REPORT: u8 = b'e';
const HEAD: usize = 5;
/// A screen of the largest size, each character in a colour of its own, and no more.
const LONGEST_FRAME: usize = 64 << 20;

impl Frame {
    /// The frame as it is sent.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Frame::Bytes(bytes) => frame(BYTES, &[bytes]),
            Frame::Resize(size) => {
                frame(RESIZE, &[&size.rows.to_be_bytes(), &size.cols.to_be_bytes()])
            }
            Frame::Screen { offset, bytes } => frame(SCREEN, &[&offset.to_be_bytes(), bytes]),
            Frame::All => frame(ALL, &[]),
            Frame::Shown { bytes, refusal } => {
                let why = refusal.as_deref().unwrap_or_default();
                frame(SHOWN, &[&bytes.to_be_bytes(), why.as_bytes()])
            }
            Frame::Report(json) => frame(REPORT, &[json]),
        }
    }

    /// Nothing, if it is of a kind that only a later fullstop knows.
    fn decode(kind: u8, body: &[u8]) -> Result<Option<Frame>, InvalidFrame> {
        let short = || InvalidFrame { kind: char::from(kind), length: body.len() };
        Ok(Some(match kind {
            BYTES => Frame::Bytes(body.to_vec()),
            REPORT => Frame::Report(body.to_vec()),
            ALL => Frame::All,
            SHOWN => {
                let (bytes, why) = body.split_first_chunk().ok_or_else(short)?;
                let refusal = (!why.is_empty()).then(|| String::from_utf8_lossy(why).into_owned());
                Frame::Shown { bytes: u64::from_be_bytes(*bytes), refusal }
            }
            RESIZE => match *body {
                [r1, r0, c1, c0] => Frame::Resize(Size {
                    rows: u16::from_be_bytes([r1, r0]),
                    cols: u16::from_be_bytes([c1, c0]),
                }),
                _ => return Err(short()),
            },
            SCREEN => {
                let (offset, bytes) = body.split_first_chunk().ok_or_else(short)?;
                Frame::Screen { offset: u64::from_be_bytes(*offset), bytes: bytes.to_vec() }
            }
            _ => return Ok(None),
        }))
    }
}

fn frame(kind: u8, parts: &[&[u8]]) -> Vec<u8> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let mut frame = vec![kind];
    frame.extend(u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
    for part in parts {
        frame.extend_from_slice(part);
    }
    frame
}

/// What is no frame: it is longer than any, or too short for its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a frame {kind:?} of {length} bytes")]
pub struct InvalidFrame {
    kind: char,
    length: usize,
}

/// Frames out of the pieces in which they arrive.
#[derive(Debug, Default)]
pub struct FrameDecoder(Vec<u8>);

impl FrameDecoder {
    /// Takes what has arrived.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// How much has come that is no whole frame yet, or was not asked for.
    pub fn waiting(&self) -> usize {
        self.0.len()
    }

    /// The next whole frame. After an error nothing more can be understood.
    #[allow(clippy::should_implement_trait)] // More may come after nothing.
    pub fn next(&mut self) -> Option<Result<Frame, InvalidFrame>> {
        loop {
            let (&[kind, length @ ..], _) = self.0.split_first_chunk::<HEAD>()?;
            let length = u32::from_be_bytes(length) as usize;
            if length > LONGEST_FRAME {
                return Some(Err(InvalidFrame { kind: char::from(kind), length }));
            }
            let body = self.0.get(HEAD..HEAD + length)?;
            let frame = Frame::decode(kind, body).transpose();
            self.0.drain(..HEAD + length);
            if frame.is_some() {
                return frame;
            }
        }
    }
}
