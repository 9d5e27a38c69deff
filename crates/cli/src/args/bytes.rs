//! Amounts of bytes as people write them: `65536`, `64KB`, `1GB`.

/// More than any disk holds is a slip of the pen.
const LARGEST: u64 = 1 << 50;

/// By the letter of the unit: how often it is 1024 times as much.
const UNITS: &[(&str, u32)] = &[("", 0), ("k", 1), ("m", 2), ("g", 3), ("t", 4)];

/// Reads an amount. A bare number counts bytes; units count by 1024, however they are
/// written: `64K`, `64kb`, `64 KiB`.
pub fn parse(text: &str) -> Result<u64, String> {
    let text = text.trim();
    if text.starts_with('-') {
        return Err(format!("{text:?} is less than nothing"));
    }
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let Some(power) = power(unit.trim()).filter(|_| digits > 0) else {
        return Err(format!(
            "{text:?} is no amount of bytes; write it as 65536, 64KB, 64MB or 1GB"
        ));
    };
    // What has too many digits for a number is too large in any unit.
    let bytes = number.parse().unwrap_or(u64::MAX).saturating_mul(1 << (10 * power));
    match bytes {
        0 => Err("must be more than zero".to_owned()),
        _ if bytes > LARGEST => Err(format!("{text:?} is more than any disk holds")),
        _ => Ok(bytes),
    }
}

fn power(unit: &str) -> Option<u32> {
    let unit = unit.to_ascii_lowercase();
    let letter = unit.strip_suffix("ib").or(unit.strip_suffix('b')).unwrap_or(&unit);
    if letter.is_empty() && unit == "ib" {
        return None;
    }
    UNITS.iter().find(|(known, _)| *known == letter).map(|(_, power)| *power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_as_people_write_them() {
        let table = [
            ("1", 1),
            ("65536", 65536),
            ("100b", 100),
            ("64KB", 64 << 10),
            ("64k", 64 << 10),
            ("64 KiB", 64 << 10),
            (" 64MB ", 64 << 20),
            ("1gb", 1 << 30),
            ("1024T", 1 << 50),
        ];
        for (text, bytes) in table {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_no_amount_is_said_to_be_none() {
        let table = [
            ("0", "more than zero"),
            ("0GB", "more than zero"),
            ("-1", "less than nothing"),
            ("-64MB", "less than nothing"),
            ("", "is no amount"),
            ("MB", "is no amount"),
            ("64ib", "is no amount"),
            ("64 parsecs", "is no amount"),
            ("1.5GB", "is no amount"),
            ("1e9", "is no amount"),
            ("0x40", "is no amount"),
            ("6４KB", "is no amount"),
            ("1025T", "more than any disk"),
            ("18446744073709551616", "more than any disk"),
            ("99999999999999999999999GB", "more than any disk"),
        ];
        for (text, part) in table {
            let why = parse(text).expect_err(text);
            assert!(why.contains(part), "{text}: {why}");
        }
    }
}
