//! Words, ladder and state machine.
#![forbid(unsafe_code)]
