//! The options of `send`.

use super::call::{Call, SendOptions};
use super::words::{Read, Words, wrong};
use fullstop::Key;
use std::time::Duration;

/// As the table says it: time for a busy command to come back to its input.
const TIMEOUT: Duration = Duration::from_secs(5);

pub fn send(mut words: Words<'_>) -> Read<Call> {
    let (mut keys, mut timeout, mut json) = (Vec::new(), TIMEOUT, false);
    while let Some(option) = words.next()? {
        match option.long {
            "key" => keys.push(key(&words.text(option)?)?),
            "enter" => keys.push(Key::enter()),
            "timeout" => timeout = words.timeout(option)?,
            "json" => json = true,
            _ => return words.unknown(option),
        }
    }
    let (id, text) = words.first_and_rest()?;
    if text.is_empty() && keys.is_empty() {
        return wrong("nothing to send: give a text, --key or --enter (see fullstop send --help)");
    }
    if text.len() > 1 && text.iter().any(|word| word == "-") {
        return wrong("- is whatever stdin has, and stands alone (a dash is --key -)");
    }
    Ok(Call::Send(SendOptions { id, text, keys, timeout, json }))
}

fn key(name: &str) -> Read<Key> {
    name.parse().or_else(|why| wrong(format!("--key: {why}")))
}
