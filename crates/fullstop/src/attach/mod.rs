//! A window on a run's terminal, without any waiting of its own.
//!
//! A program with an async runtime takes a [`Window`](crate::Window), which is made of this. This
//! module is for a program with an event loop of its own: a loop that polls the window's
//! descriptor together with a terminal and signals, as the command `fullstop attach` does, or the
//! loop of a toolkit.
//!
//! [`Attachment::advance`] says what is to be done next: show something, wait for the descriptor, or
//! do some [`Work`] that takes its time.
//!
//! ```
//! use fullstop::attach::{Attachment, Next};
//! use fullstop::{AttachOptions, Report, Run, WindowEvent, blocking};
//! use rustix::event::{PollFd, PollFlags, poll};
//! use std::io::Write as _;
//!
//! fn show(run: &Run) -> Result<Report, Box<dyn std::error::Error>> {
//!     let mut attachment = blocking::wait(Attachment::open(run, AttachOptions::default()))?;
//!     loop {
//!         match attachment.advance()? {
//!             Next::Show(WindowEvent::Screen(bytes) | WindowEvent::Bytes(bytes)) => {
//!                 std::io::stdout().write_all(&bytes)?;
//!             }
//!             Next::Show(WindowEvent::Over(report)) => return Ok(*report),
//!             Next::Show(_) => {}
//!             // A program that has more to do does this on a thread: see `blocking::Background`.
//!             Next::Work(work) => {
//!                 let finished = blocking::wait(async { Ok(work.run().await) })?;
//!                 attachment.finish(finished)?;
//!             }
//!             Next::Wait => {
//!                 if let Some(descriptor) = attachment.descriptor() {
//!                     poll(&mut [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)], None)?;
//!                 }
//!             }
//!         }
//!     }
//! }
//! ```

mod attachment;
mod link;
mod work;

pub use attachment::{AttachOptions, Attachment, Next, WindowEvent};
pub use work::{Finished, Work};
