//! `bench-flood FIFO BYTES`: so many bytes to stdout, 64 KiB at a time, as fast as
//! they are taken. At the end it tells FIFO when it began and how much processor time
//! it has used, both in nanoseconds.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use fullstop_bench::clock::now_ns;

const BLOCK: usize = 64 * 1024;
/// Whoever divides it into lines finds some.
const LINE: &[u8] = b"the water rises, and rises, and rises, and does not come to rest\n";
/// It never outlives a bench that went wrong.
const LIFE_SECONDS: u32 = 120;

fn main() -> ExitCode {
    let began = now_ns();
    let mut args = std::env::args_os().skip(1);
    let fifo = args.next().map(PathBuf::from);
    let bytes = args.next().and_then(|bytes| bytes.to_str()?.parse().ok());
    let (Some(fifo), Some(bytes)) = (fifo, bytes) else {
        eprintln!("usage: bench-flood FIFO BYTES");
        return ExitCode::from(2);
    };
    // SAFETY: alarm has no preconditions.
    unsafe { libc::alarm(LIFE_SECONDS) };
    match pour(bytes).and_then(|()| tell(&fifo, began)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-flood: {error}");
            ExitCode::FAILURE
        }
    }
}

fn pour(bytes: usize) -> io::Result<()> {
    let water: Vec<u8> = LINE.iter().copied().cycle().take(BLOCK).collect();
    // Not std's, which looks for lines.
    let mut out = std::fs::File::from(rustix::io::dup(rustix::stdio::stdout())?);
    let mut left = bytes;
    while left > 0 {
        left -= out.write(&water[..left.min(BLOCK)])?;
    }
    Ok(())
}

fn tell(fifo: &Path, began: u64) -> io::Result<()> {
    let mut fifo = OpenOptions::new().write(true).open(fifo)?;
    writeln!(fifo, "{began} {}", used_ns())
}

fn used_ns() -> i64 {
    // SAFETY: a zeroed rusage is valid, and is written by the call.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    };
    let ns = |time: libc::timeval| time.tv_sec * 1_000_000_000 + time.tv_usec * 1000;
    ns(usage.ru_utime) + ns(usage.ru_stime)
}
