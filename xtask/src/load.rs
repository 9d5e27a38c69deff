//! A busy core beside the tests: a child that spins until we end it, or until
//! we are gone.

use std::io::Read;
use std::process::{Child, Command, Stdio};

use crate::Outcome;

/// The job of the spinning child; not for people.
pub const SPIN: &str = "spin-until-stdin-ends";

pub struct Load(Child);

impl Load {
    pub fn start() -> Outcome<Self> {
        let child =
            Command::new(std::env::current_exe()?).arg(SPIN).stdin(Stdio::piped()).spawn()?;
        eprintln!("xtask: one core is kept busy by process {}", child.id());
        Ok(Self(child))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        // Our own child, not reaped yet: the number is still its own.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn spin() -> ! {
    std::thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(0);
    });
    loop {
        std::hint::spin_loop();
    }
}
