//! How much of a stream its owner was shown, once it is shown no more of it.

use fullstop_cage::plain;
use fullstop_protocol::CapturedStream;
use rustix::io::Errno;

#[derive(Debug, Default)]
pub struct Shown {
    /// So many bytes of this generation; nothing, as long as all of it is shown.
    bytes: Option<u64>,
    refusal: Option<String>,
    is_told: bool,
}

impl Shown {
    /// As somebody else tells it.
    pub fn of(captured: &CapturedStream) -> Shown {
        let bytes = Some(captured.bytes.saturating_sub(captured.unshown));
        Shown { bytes, refusal: captured.refusal.clone(), is_told: true }
    }

    /// From here on nothing is shown; `why`: it was refused.
    pub fn ends(&mut self, bytes: u64, why: Option<Errno>) {
        self.bytes.get_or_insert(bytes);
        if let Some(why) = why {
            self.refusal.get_or_insert(plain(&why.into()));
        }
    }

    /// A window that cannot be written has shown so much.
    pub fn refused(&mut self, bytes: u64, why: String) {
        self.bytes.get_or_insert(bytes);
        self.refusal.get_or_insert(why);
    }

    /// Whether it was refused, once.
    pub fn refused_now(&mut self) -> bool {
        self.refusal.is_some() && !std::mem::replace(&mut self.is_told, true)
    }

    /// What became of the stream, with what was not shown of it. `unwritten` waits for an
    /// owner that is still shown all of it.
    pub fn mark(&self, captured: CapturedStream, unwritten: usize) -> CapturedStream {
        let unshown = match self.bytes {
            Some(shown) => captured.bytes.saturating_sub(shown),
            None => unwritten as u64,
        };
        CapturedStream { unshown, refusal: self.refusal.clone(), ..captured }
    }
}
