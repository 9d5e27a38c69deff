//! Output that its owner could not be shown, told to people.

use fullstop_core::id::Id;
use fullstop_core::words::Stream;
use fullstop_protocol::CapturedStream;

/// What could not be written, how much of it is missing there, and where it is instead; a
/// line for each stream.
pub fn name_unshown(id: &Id, output: &[CapturedStream]) -> Vec<String> {
    let line = |stream: &CapturedStream| {
        let why = stream.refusal.as_ref()?;
        let name = match stream.stream {
            Stream::Err => "stderr",
            // A window shows on stdout.
            Stream::Out | Stream::Tty => "stdout",
        };
        let (unshown, bytes) = (stream.unshown, stream.bytes);
        let kept = if stream.cut > 0 { "has what is left of them" } else { "has them" };
        Some(format!(
            "cannot write {name}: {why}; {unshown} of {bytes} bytes were not shown, \
             fullstop logs {id} {kept}"
        ))
    };
    output.iter().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_refused_is_told() {
        let id = Id::new(1_800_000_000_000, 7);
        let output: Vec<CapturedStream> = serde_json::from_str(
            r#"[{"stream": "out", "bytes": 12, "unshown": 5},
                {"stream": "err", "bytes": 9, "unshown": 4, "refusal": "no space left"},
                {"stream": "tty", "bytes": 8, "cut": 3, "unshown": 8, "refusal": "no space left"}]"#,
        )
        .expect("streams");
        let logs = format!("fullstop logs {id}");
        assert_eq!(
            name_unshown(&id, &output),
            [
                format!(
                    "cannot write stderr: no space left; 4 of 9 bytes were not shown, {logs} has them"
                ),
                format!(
                    "cannot write stdout: no space left; 8 of 8 bytes were not shown, \
                     {logs} has what is left of them"
                ),
            ]
        );
    }
}
