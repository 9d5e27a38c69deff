//! The words of `logs`.

use super::words::{Read, Words, wrong};
use super::{Call, LogForm, LogsOptions};
use fullstop::Stream;

pub fn logs(mut words: Words<'_>) -> Read<Call> {
    let mut options = LogsOptions::default();
    let (mut times, mut raw, mut json) = (false, false, false);
    while let Some(option) = words.next()? {
        match option.long {
            "follow" => options.follow = true,
            "lines" => options.lines = Some(words.number(option)?),
            "since" => {
                let since = words.text(option)?.parse();
                options.since = Some(since.or_else(|why| wrong(format!("--since: {why}")))?);
            }
            "times" => times = true,
            "stream" => {
                options.stream = Some(match words.word(option)? {
                    "err" => Stream::Err,
                    "tty" => Stream::Tty,
                    _ => Stream::Out,
                });
            }
            "raw" => raw = true,
            "json" => json = true,
            _ => return words.unknown(option),
        }
    }
    options.form = match (raw, times, json) {
        (true, true, _) => return words.fail("--raw is the bytes as they are; give it or --times"),
        (true, _, true) => return words.fail("--raw and --json: only one of them"),
        (true, false, false) => LogForm::Raw,
        (false, _, true) => LogForm::Json,
        (false, times, false) => LogForm::Plain { times },
    };
    options.id = words.single()?;
    Ok(Call::Logs(options))
}
