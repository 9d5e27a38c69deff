//! `logs`: what a run has written.

use crate::fail::{Fail, complain};
use crate::following::{Looking, until_unread};
use fullstop::{LogEntry, Logs, Runs, Stream, Text, Timestamp};
use fullstop_cli::args::{LogForm, LogsOptions};
use fullstop_cli::plain::Plain;
use serde::Serialize;
use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{self, BufWriter, StdoutLock, Write as _};
use std::os::unix::ffi::OsStringExt as _;
use std::time::{Duration, UNIX_EPOCH};

pub async fn logs(options: &LogsOptions) -> Result<(), Fail> {
    let mut logs = wanted(options).await?;
    logs.open().await?;
    let mut printer = LogPrinter::new(options.form, logs.streams().len() > 1);
    let printed = if options.follow {
        until_unread(follow(logs.follow(), &mut printer)).await.unwrap_or(Ok(()))
    } else {
        print_all(logs, &mut printer).await
    };
    match printed {
        // The reader of the pipe has seen enough.
        Err(Ended::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(Ended::Write(error)) => Err(error.into()),
        Err(Ended::Read(error)) => Err(error.into()),
        Ok(()) => Ok(()),
    }
}

async fn wanted(options: &LogsOptions) -> Result<Logs, Fail> {
    let mut logs = Runs::open()?.find(&options.id).await?.logs();
    if let Some(stream) = options.stream {
        logs = logs.only(stream);
    }
    if let Some(since) = options.since {
        let since = since.unix_ms(crate::print::unix_ms());
        logs = logs.since(UNIX_EPOCH + Duration::from_millis(since));
    }
    if let Some(lines) = options.lines {
        logs = logs.tail(lines);
    }
    Ok(logs)
}

/// Why it ended before its time.
enum Ended {
    Write(io::Error),
    Read(fullstop::Error),
}

impl From<io::Error> for Ended {
    fn from(error: io::Error) -> Ended {
        Ended::Write(error)
    }
}

impl From<fullstop::Error> for Ended {
    fn from(error: fullstop::Error) -> Ended {
        Ended::Read(error)
    }
}

async fn print_all(mut logs: Logs, printer: &mut LogPrinter) -> Result<(), Ended> {
    while let Some(entry) = logs.next().await? {
        printer.print(entry)?;
    }
    Ok(printer.end()?)
}

async fn follow(mut logs: Logs, printer: &mut LogPrinter) -> Result<(), Ended> {
    let mut looking = Looking::default();
    while let Some(entry) = logs.next().await? {
        printer.print(entry)?;
        if !logs.has_ready() {
            printer.out.flush()?;
        }
        looking.tell("output", logs.why_polling());
    }
    Ok(printer.end()?)
}

/// Prints log entries on stdout, in the form that was asked for.
struct LogPrinter {
    out: BufWriter<StdoutLock<'static>>,
    form: LogForm,
    /// There is more than one stream to tell apart.
    names: bool,
    /// Each stream has sequences of its own.
    plain: HashMap<Stream, Plain>,
    /// Whose line is not ended yet.
    begun: Option<Stream>,
    text: String,
}

#[derive(Serialize)]
struct JsonLine {
    at: Timestamp,
    stream: Stream,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cut: Option<u64>,
}

impl LogPrinter {
    fn new(form: LogForm, names: bool) -> LogPrinter {
        const BUFFER: usize = 64 * 1024;
        let out = BufWriter::with_capacity(BUFFER, io::stdout().lock());
        LogPrinter { out, form, names, plain: HashMap::new(), begun: None, text: String::new() }
    }

    fn print(&mut self, entry: LogEntry) -> io::Result<()> {
        if self.form == LogForm::Json {
            return self.json(entry);
        }
        match entry {
            LogEntry::Cut { bytes, .. } => {
                self.end()?;
                complain(format!("{bytes} bytes cut here"));
                Ok(())
            }
            LogEntry::Text { stream, at, bytes, .. } => match self.form {
                LogForm::Plain { times } => self.plain(stream, times.then_some(at), &bytes),
                _ => self.out.write_all(&bytes),
            },
        }
    }

    fn plain(&mut self, stream: Stream, at: Option<u64>, bytes: &[u8]) -> io::Result<()> {
        self.text.clear();
        self.plain.entry(stream).or_default().add(bytes, &mut self.text);
        // A prompt that was not answered: the other stream begins a line of its own.
        if !self.text.is_empty() && self.begun.is_some_and(|begun| begun != stream) {
            self.out.write_all(b"\n")?;
            self.begun = None;
        }
        let mut before = String::new();
        if let Some(at) = at {
            let _ = write!(before, "{} ", Timestamp::from_unix_ms(at / 1000));
            if self.names {
                let _ = write!(before, "{stream} ");
            }
        }
        for line in self.text.split_inclusive('\n') {
            if self.begun.is_none() {
                self.out.write_all(before.as_bytes())?;
            }
            self.out.write_all(line.as_bytes())?;
            self.begun = (!line.ends_with('\n')).then_some(stream);
        }
        Ok(())
    }

    /// A line each, with its newline: together they are the log.
    fn json(&mut self, entry: LogEntry) -> io::Result<()> {
        let (at, stream) = (Timestamp::from_unix_ms(entry.at() / 1000), entry.stream());
        match entry {
            LogEntry::Cut { bytes, .. } => {
                self.json_line(&JsonLine { at, stream, text: None, cut: Some(bytes) })
            }
            LogEntry::Text { bytes, .. } => {
                for line in bytes.split_inclusive(|byte| *byte == b'\n') {
                    let text = Some(Text(OsString::from_vec(line.to_vec())));
                    self.json_line(&JsonLine { at, stream, text, cut: None })?;
                }
                Ok(())
            }
        }
    }

    fn json_line(&mut self, line: &JsonLine) -> io::Result<()> {
        let json = serde_json::to_string(line)?;
        for letter in json.chars() {
            // JSON lets these through as they are, and some terminals obey them.
            if letter.is_control() {
                write!(self.out, "\\u{:04x}", u32::from(letter))?;
            } else {
                write!(self.out, "{letter}")?;
            }
        }
        self.out.write_all(b"\n")
    }

    /// Ends a line that was begun, and sends off what is held back.
    fn end(&mut self) -> io::Result<()> {
        if self.begun.take().is_some() {
            self.out.write_all(b"\n")?;
        }
        self.out.flush()
    }
}
