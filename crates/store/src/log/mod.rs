//! The logs of a run: what it wrote, byte for byte, and when.
//!
//! ```text
//! out.log                        the head: the whole stream, if there is no cap
//! out.log.00000000000033554432   the part of the stream that begins there
//! out.idx  out.idx.000000000…    when what was written, for each of them
//! ```
//!
//! The keeper writes ([`Log`]), whoever wants to know reads ([`LogReader`]), and
//! neither waits for the other. See `docs/output.md`.

mod index;
mod parts;
mod reader;
mod seek;
mod times;
mod writer;

pub use reader::{Extent, LogReader, Piece};
pub use writer::{Log, Took};
