//! A window on a run's terminal, for programs with an async runtime.

mod halves;

pub use halves::{WindowReader, WindowWriter};

use crate::attach::{AttachOptions, Attachment, WindowEvent};
use crate::error::Result;
use crate::keys::Key;
use crate::run::Run;
use fullstop_protocol::Size;

/// A window on a run's terminal. There may be many, and what becomes of one is
/// nothing to the run: it does not wait for a window that does not read.
///
/// It can be [split](Window::split) into halves for two tasks. Dropped, it is closed.
///
/// ```no_run
/// use fullstop::{AttachOptions, Runs, WindowEvent, blocking};
///
/// let report = blocking::wait(async {
///     let run = Runs::open()?.find("research").await?;
///     let mut window = run.attach(AttachOptions::default()).await?;
///     window.type_bytes(b"exit\r").await?;
///     loop {
///         if let WindowEvent::Over(report) = window.next().await? {
///             return Ok(report);
///         }
///     }
/// })?;
/// println!("{}", report.reason());
/// # Ok::<(), fullstop::Error>(())
/// ```
#[derive(Debug)]
pub struct Window {
    reader: WindowReader,
    writer: WindowWriter,
}

impl Window {
    pub(crate) async fn open(run: &Run, options: AttachOptions) -> Result<Window> {
        let (reader, writer) = halves::of(Attachment::open(run, options).await?);
        Ok(Window { reader, writer })
    }

    /// The side that shows and the side that types, for two tasks at once. The window is closed
    /// when both are dropped.
    ///
    /// ```no_run
    /// # async fn example(run: fullstop::Run) -> fullstop::Result<()> {
    /// use fullstop::{AttachOptions, Key, WindowEvent};
    ///
    /// let (mut reader, mut writer) = run.attach(AttachOptions::default()).await?.split();
    /// let typing = tokio::spawn(async move { writer.type_keys(&[Key::enter()]).await });
    /// while !matches!(reader.next().await?, WindowEvent::Over(_)) {}
    /// # drop(typing);
    /// # Ok(())
    /// # }
    /// ```
    pub fn split(self) -> (WindowReader, WindowWriter) {
        (self.reader, self.writer)
    }

    /// As [`WindowReader::next`].
    pub async fn next(&mut self) -> Result<WindowEvent> {
        self.reader.next().await
    }

    /// As [`WindowWriter::type_bytes`].
    pub async fn type_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.writer.type_bytes(bytes).await
    }

    /// As [`WindowWriter::type_keys`].
    pub async fn type_keys(&mut self, keys: &[Key]) -> Result<()> {
        self.writer.type_keys(keys).await
    }

    /// As [`WindowWriter::resize`].
    pub async fn resize(&mut self, size: Size) -> Result<()> {
        self.writer.resize(size).await
    }

    /// As [`WindowWriter::typed`].
    pub fn typed(&self) -> u64 {
        self.writer.typed()
    }
}
