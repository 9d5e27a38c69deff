//! Messages for people, on stderr. Whoever reads them may be gone; a run is not
//! ended by that.

macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), "fullstop: {}", format_args!($($text)*));
    }};
}
