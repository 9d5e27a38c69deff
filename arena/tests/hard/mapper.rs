//! A member that locks its own memory map for as long as a file system hangs.
//! It is this test executable under another name: it takes two threads and a
//! shared mapping, which no shell has.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::process::ExitCode;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI32, Ordering};

use arena::{Context, Outcome, World, await_until, seconds};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// What it is called.
pub const NAME: &str = "mapper";
const WORD: &str = "--hard-mapper";
const PAGE: usize = 4096;

/// The command line that makes it.
pub fn command(world: &World, file: &Path) -> Vec<String> {
    let program = world.bystander_command(NAME).get_program().to_string_lossy().into_owned();
    vec![program, WORD.into(), file.to_string_lossy().into_owned()]
}

pub fn requested() -> Option<ExitCode> {
    let mut args = std::env::args().skip(1);
    if args.next()? != WORD {
        return None;
    }
    let lived = live(Path::new(&args.next()?));
    Some(lived.map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS))
}

fn live(path: &Path) -> Outcome {
    // No member lives for ever, whoever forgets it.
    std::thread::spawn(|| {
        std::thread::sleep(seconds(100));
        std::process::exit(1)
    });
    let file = File::options().read(true).write(true).open(path).context("file")?;
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping of a file nobody else maps; it is used through this
    // pointer alone.
    let page = unsafe { mmap(null_mut(), PAGE, protection, MapFlags::SHARED, &file, 0) };
    let page = page.context("mmap")?.expose_provenance();
    fs::write("ready", "up\n").context("ready")?;
    let mut told = [0];
    File::open("go").context("go")?.read_exact(&mut told).context("go")?;
    std::thread::spawn(move || write_to(page));
    await_until(seconds(5), || {
        let thread = WRITER.load(Ordering::Acquire);
        thread != 0 && is_waiting(thread)
    });
    // SAFETY: nobody uses the page afterwards but the thread that waits for it,
    // and that one only ever dies.
    let _ = unsafe { munmap(std::ptr::with_exposed_provenance_mut(page), PAGE) };
    Ok(())
}

/// The thread that writes.
static WRITER: AtomicI32 = AtomicI32::new(0);

fn write_to(page: usize) {
    WRITER.store(rustix::thread::gettid().as_raw_pid(), Ordering::Release);
    // SAFETY: the page is mapped, and unmapped only once this write waits.
    unsafe { std::ptr::with_exposed_provenance_mut::<u8>(page).write_volatile(2) };
}

fn is_waiting(thread: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('D'))
}
