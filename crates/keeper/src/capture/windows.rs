//! Windows on a run's terminal: any number of them, and none can slow the agent but
//! the one it was started from.

use crate::backlog::{Backlog, Gone};
use crate::control::Handed;
use fullstop_protocol::{Frame, FrameDecoder, ResizePolicy, Size};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// A window that is this far behind is not told more; it is shown the screen once it
/// has caught up.
const MOST_BEHIND: usize = 1 << 20;
/// The window it was started from misses nothing: with so much to read, the agent waits.
const OWNER_BEHIND: usize = 256 * 1024;
/// What is read of a window's keys at once; what it types beyond waits with it.
const KEYS: usize = 4096;
/// Enough for every screen of one person; each is a descriptor of the keeper's.
const MOST_WINDOWS: usize = 32;
/// No frame of a window's is this long.
const MOST_TYPED: usize = 128 * 1024;

#[derive(Debug, Default)]
pub struct Windows {
    all: Vec<Window>,
    /// Counts what happens, to know the latest.
    clock: u64,
    /// The window it was started from says its size again.
    owner_again: bool,
    /// What that one has shown, and why it cannot show more.
    refusal: Option<(u64, String)>,
}

#[derive(Debug)]
#[allow(clippy::struct_excessive_bools)] // Each is a question of its own.
struct Window {
    stream: OwnedFd,
    frames: FrameDecoder,
    backlog: Backlog,
    /// Nothing, if there is no terminal behind it.
    size: Option<Size>,
    role: Role,
    /// It is told how large the terminal is.
    sizes: bool,
    /// It missed something, and is owed the screen. An owner misses nothing.
    behind: bool,
    /// It was asked whether all is shown, and has not answered.
    asked: bool,
    gone: bool,
    /// When it was last resized, attached, or typed into.
    used: u64,
}

/// What a window is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// The one the run was started from: it misses nothing.
    Owner,
    Guest,
    /// Only to look through.
    View,
}

/// What is wanted of a connection that becomes a window.
#[derive(Clone, Copy, Debug)]
pub struct AttachRequest {
    pub size: Option<Size>,
    pub view: bool,
    pub owner: bool,
    pub sizes: bool,
}

/// What a window is told that has just come, or has missed something.
pub struct Picture {
    pub size: Size,
    pub frame: Frame,
}

impl Windows {
    pub fn open(&mut self, handed: Handed, request: AttachRequest, first: &Picture) {
        let AttachRequest { size, view, owner, sizes } = request;
        let role = match (owner, view) {
            (true, _) => Role::Owner,
            (false, false) => Role::Guest,
            (false, true) => Role::View,
        };
        let mut frames = FrameDecoder::default();
        frames.feed(&handed.unread);
        self.clock += 1;
        let size = size.map(Size::clamped);
        let mut window = Window {
            stream: handed.stream,
            frames,
            backlog: handed.unsent,
            size,
            role,
            sizes,
            behind: false,
            asked: false,
            gone: false,
            used: self.clock,
        };
        window.draw(first);
        self.all.push(window);
    }

    /// The terminal has another size.
    pub fn tell_size(&mut self, size: Size) {
        // One that is behind is told with its screen.
        for window in self.all.iter_mut().filter(|window| window.sizes && !window.behind) {
            window.backlog.push(&Frame::Resize(size).encode());
            window.flush();
        }
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub fn has_room(&self) -> bool {
        self.all.len() < MOST_WINDOWS
    }

    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        self.all.iter().map(|window| window.stream.as_raw_fd())
    }

    /// Whether a window has a terminal, which answers the questions of a full-screen program.
    pub fn has_terminal(&self) -> bool {
        self.all.iter().any(|window| window.size.is_some() && window.role != Role::View)
    }

    /// Whether the command must wait for the owner's window.
    pub fn owner_is_behind(&self) -> bool {
        self.all
            .iter()
            .any(|window| window.role == Role::Owner && window.backlog.len() > OWNER_BEHIND)
    }

    pub fn owner_is_owed(&self) -> bool {
        self.all.iter().any(|window| window.role == Role::Owner && !window.backlog.is_empty())
    }

    /// Asks the window it was started from to say when all is shown.
    pub fn ask_owner(&mut self) {
        for window in self.all.iter_mut().filter(|window| window.role == Role::Owner) {
            window.backlog.push(&Frame::All.encode());
            window.asked = true;
            window.flush();
        }
    }

    /// Whether it has not answered.
    pub fn owner_is_asked(&self) -> bool {
        self.all.iter().any(|window| window.asked)
    }

    /// Whether it has said its size again, since this was last asked.
    pub fn owner_again(&mut self) -> bool {
        std::mem::take(&mut self.owner_again)
    }

    /// What it has shown if it cannot show more, once.
    pub fn refused_now(&mut self) -> Option<(u64, String)> {
        self.refusal.take()
    }

    pub fn interest(&self, hears: bool) -> impl Iterator<Item = PollFd<'_>> {
        // One that is not heard now would say again and again that it has left.
        let asked = move |window: &&Window| hears || !window.backlog.is_empty();
        self.all.iter().filter(asked).map(move |window| {
            let keys = if hears { PollFlags::IN } else { PollFlags::empty() };
            let room = if window.backlog.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
            PollFd::new(&window.stream, keys | room)
        })
    }

    /// Shows all windows what was written.
    pub fn show(&mut self, bytes: &[u8]) {
        let frame = Frame::Bytes(bytes.to_vec()).encode();
        for window in self.all.iter_mut().filter(|window| !window.behind) {
            if window.role != Role::Owner && window.backlog.len() + frame.len() > MOST_BEHIND {
                window.behind = true;
                continue;
            }
            window.backlog.push(&frame);
            window.flush();
        }
        self.all.retain(|window| !window.gone);
    }

    /// Writes what waits, and gives the screen to the windows that have caught up.
    pub fn flush(&mut self, screen: impl Fn() -> Picture) {
        for window in &mut self.all {
            window.flush();
            if window.behind && window.backlog.is_empty() {
                window.behind = false;
                window.draw(&screen());
            }
        }
        self.all.retain(|window| !window.gone);
    }

    /// Hears what is typed, as far as `room` goes; the sizes are noted.
    pub fn hear(&mut self, mut room: usize) -> Vec<u8> {
        let mut typed = Vec::new();
        for window in &mut self.all {
            if room == 0 {
                break;
            }
            window.read(room);
            while let Some(frame) = window.frames.next() {
                match frame {
                    Ok(Frame::Bytes(bytes)) if window.role != Role::View => {
                        room = room.saturating_sub(bytes.len());
                        typed.extend(bytes);
                    }
                    Ok(Frame::Resize(size)) => {
                        let size = Some(size.clamped());
                        // A window that says again how large it is has lost its screen.
                        let again = size == window.size;
                        window.size = size;
                        match window.role {
                            Role::Owner => self.owner_again |= again,
                            Role::Guest | Role::View => window.behind |= again,
                        }
                    }
                    Ok(Frame::Shown { bytes, refusal }) if window.role == Role::Owner => {
                        window.asked = false;
                        self.refusal = refusal.map(|why| (bytes, why));
                        continue;
                    }
                    Ok(_) => continue,
                    Err(_) => {
                        window.gone = true;
                        break;
                    }
                }
                self.clock += 1;
                window.used = self.clock;
            }
        }
        self.all.retain(|window| !window.gone);
        typed
    }

    /// The size that the terminal should have; nothing, if no window has a size.
    pub fn size(&self, fit: ResizePolicy) -> Option<Size> {
        let asked = self.all.iter().filter(|window| window.role != Role::View);
        let sized = asked.filter_map(|window| Some((window.used, window.size?)));
        match fit {
            ResizePolicy::Fixed => None,
            ResizePolicy::Latest => sized.max_by_key(|(used, _)| *used).map(|(_, size)| size),
            ResizePolicy::Smallest => sized.map(|(_, size)| size).reduce(|one, other| Size {
                rows: one.rows.min(other.rows),
                cols: one.cols.min(other.cols),
            }),
        }
    }

    /// Tells all windows how it ended. A window that missed something is shown the last screen.
    pub fn tell(&mut self, report: &Frame, screen: impl Fn() -> Picture) {
        for window in &mut self.all {
            if std::mem::take(&mut window.behind) {
                window.draw(&screen());
            }
            window.backlog.push(&report.encode());
            window.flush();
        }
        self.all.retain(|window| !window.gone);
    }

    pub fn is_told(&self) -> bool {
        self.all.iter().all(|window| window.backlog.is_empty())
    }
}

impl Window {
    fn draw(&mut self, picture: &Picture) {
        if self.sizes {
            self.backlog.push(&Frame::Resize(picture.size).encode());
        }
        self.backlog.push(&picture.frame.encode());
        self.flush();
    }

    fn flush(&mut self) {
        self.gone |= self.backlog.send(&self.stream) == Err(Gone);
    }

    fn read(&mut self, most: usize) {
        let mut buffer = [0; KEYS];
        let most = most.min(KEYS);
        match recv(&self.stream, &mut buffer[..most], RecvFlags::DONTWAIT) {
            Ok((0, _)) => self.gone = true,
            // No person types this much in one piece.
            Ok(_) if self.frames.waiting() > MOST_TYPED => self.gone = true,
            Ok((length, _)) => self.frames.feed(&buffer[..length]),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.gone = true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream;

    const SIZE: Size = Size { rows: 24, cols: 80 };

    /// A window, and the side on which it is played.
    fn window(windows: &mut Windows, owner: bool) -> UnixStream {
        asking(windows, AttachRequest { size: Some(SIZE), view: false, owner, sizes: false })
    }

    fn asking(windows: &mut Windows, request: AttachRequest) -> UnixStream {
        let (ours, theirs) = UnixStream::pair().expect("sockets");
        ours.set_nonblocking(true).expect("does not wait");
        let handed =
            Handed { stream: theirs.into(), unread: Vec::new(), unsent: Backlog::default() };
        let frame = Frame::Bytes(b"first ".to_vec());
        windows.open(handed, request, &Picture { size: SIZE, frame });
        ours
    }

    fn say(mut window: &UnixStream, frame: &Frame) {
        window.write_all(&frame.encode()).expect("said");
    }

    /// All that came, screens in brackets.
    fn shown(mut window: &UnixStream) -> String {
        let (mut bytes, mut frames, mut text) =
            (vec![0; 1 << 16], FrameDecoder::default(), Vec::new());
        while let Ok(length) = window.read(&mut bytes) {
            frames.feed(&bytes[..length]);
        }
        while let Some(frame) = frames.next() {
            match frame.expect("a frame") {
                Frame::Bytes(bytes) => text.extend(bytes),
                Frame::Screen { bytes, .. } => text.extend([b"[", &bytes[..], b"]"].concat()),
                Frame::All => text.extend(b"(all)"),
                Frame::Resize(size) => text.extend(format!("({size})").into_bytes()),
                other => panic!("{other:?}"),
            }
        }
        String::from_utf8(text).expect("text")
    }

    fn screen() -> Picture {
        Picture { size: SIZE, frame: Frame::Screen { offset: 0, bytes: b"screen".to_vec() } }
    }

    #[test]
    fn a_size_is_told_to_who_asks_for_sizes() {
        let mut windows = Windows::default();
        let asks = AttachRequest { size: None, view: true, owner: false, sizes: true };
        let (asking, other) = (asking(&mut windows, asks), window(&mut windows, false));
        windows.tell_size(Size { rows: 5, cols: 9 });
        windows.all[0].behind = true;
        windows.tell_size(SIZE);
        windows.flush(screen);
        assert_eq!(shown(&asking), "(24x80)first (5x9)(24x80)[screen]");
        assert_eq!(shown(&other), "first ");
    }

    /// Says its size again in the middle of what is written.
    fn says_again(owner: bool) -> (String, bool) {
        let mut windows = Windows::default();
        let window = window(&mut windows, owner);
        say(&window, &Frame::Resize(SIZE));
        windows.hear(usize::MAX);
        windows.show(b"second ");
        windows.flush(screen);
        windows.show(b"third");
        (shown(&window), windows.owner_again())
    }

    #[test]
    fn an_owner_that_says_its_size_again_misses_nothing_and_gets_no_screen() {
        assert_eq!(says_again(true), ("first second third".to_owned(), true));
    }

    #[test]
    fn a_guest_that_says_its_size_again_is_shown_the_screen() {
        assert_eq!(says_again(false), ("first [screen]third".to_owned(), false));
    }

    #[test]
    fn an_owner_answers_what_it_has_shown() {
        let mut windows = Windows::default();
        let (owner, guest) = (window(&mut windows, true), window(&mut windows, false));
        assert!(!windows.owner_is_asked());
        windows.ask_owner();
        assert_eq!((&*shown(&owner), &*shown(&guest)), ("first (all)", "first "));
        // Only the owner is asked, and only it can answer.
        let refused = Frame::Shown { bytes: 3, refusal: Some("no space left".to_owned()) };
        say(&guest, &refused);
        windows.hear(usize::MAX);
        assert!(windows.owner_is_asked() && windows.refused_now().is_none());
        say(&owner, &refused);
        windows.hear(usize::MAX);
        assert!(!windows.owner_is_asked());
        assert_eq!(windows.refused_now(), Some((3, "no space left".to_owned())));
        assert_eq!(windows.refused_now(), None, "it is told once");
    }

    #[test]
    fn an_owner_that_left_is_not_waited_for() {
        let mut windows = Windows::default();
        let owner = window(&mut windows, true);
        windows.ask_owner();
        drop(owner);
        windows.hear(usize::MAX);
        assert!(!windows.owner_is_asked());
    }
}
