use super::*;
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;

struct Scratch(PathBuf);

fn secret_at(name: &str, path: impl Into<PathBuf>) -> SecretFile {
    SecretFile { name: name.to_owned(), path: Text(path.into().into_os_string()), fd: None }
}

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("fullstop-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("made");
        Scratch(path)
    }

    fn file(&self, name: &str, content: &[u8]) -> SecretFile {
        let path = self.0.join(name);
        std::fs::write(&path, content).expect("written");
        secret_at("TOKEN", path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn named(name: &str) -> SecretFile {
    secret_at(name, PathBuf::from("/dev/null"))
}

#[test]
fn a_file_is_read_whole_and_byte_by_byte() {
    let scratch = Scratch::new("secret-whole");
    for content in [&b"s3cret\n"[..], b"", b"\xff\0\n", &vec![7; MOST]] {
        let secret = read(&scratch.file("token", content)).expect("read");
        assert_eq!(secret.bytes(), content);
    }
}

#[test]
fn a_pipe_is_read_once() {
    let (theirs, mut ours) = io::pipe().expect("a pipe");
    ours.write_all(b"s3cret").expect("written");
    drop(ours);
    let path = PathBuf::from(format!("/dev/fd/{}", theirs.as_raw_fd()));
    let pipe = secret_at("TOKEN", path);
    assert_eq!(read(&pipe).expect("read").bytes(), b"s3cret");
    let why = read_again(&pipe).expect_err("again").to_string();
    assert!(why.contains("TOKEN") && why.contains("read again"), "{why}");
}

fn fifo(scratch: &Scratch, name: &str) -> SecretFile {
    let path = scratch.0.join(name);
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).expect("a fifo");
    secret_at("TOKEN", path)
}

#[test]
fn a_fifo_that_nobody_opens_is_not_waited_for() {
    let scratch = Scratch::new("secret-fifo");
    let secret = fifo(&scratch, "token");
    let (told, result) = std::sync::mpsc::channel();
    let reading = secret.clone();
    std::thread::spawn(move || told.send(read_within(&reading, std::time::Duration::ZERO)));
    let read = result.recv_timeout(std::time::Duration::from_secs(20)).expect("it hangs");
    let why = read.expect_err("nobody wrote").to_string();
    assert!(why.contains("TOKEN") && why.contains("no process has opened it"), "{why}");
}

#[test]
fn a_fifo_is_read_to_the_end_of_its_writer() {
    let scratch = Scratch::new("secret-writer");
    for content in [&b"s3cret"[..], b""] {
        let secret = fifo(&scratch, &format!("token-{}", content.len()));
        let path = secret.path.clone();
        // It opens when there is a reader, and what it writes is read until it closes.
        let writer = std::thread::spawn(move || {
            let mut file = File::options().write(true).open(path.0).expect("opened");
            for byte in content {
                file.write_all(&[*byte]).expect("written");
            }
        });
        assert_eq!(read(&secret).expect("read").bytes(), content);
        writer.join().expect("joined");
    }
}

/// As a shell leaves it: opened both ways, written to, and read by its number.
#[test]
fn what_is_left_in_a_fifo_without_a_writer_is_all_of_it() {
    let scratch = Scratch::new("secret-left");
    let secret = fifo(&scratch, "token");
    let both = File::options().read(true).write(true).open(&secret.path.0).expect("opened");
    let reader = File::open(&secret.path.0).expect("opened");
    (&both).write_all(b"s3cret").expect("written");
    drop(both);
    let path = PathBuf::from(format!("/dev/fd/{}", reader.as_raw_fd()));
    let by_number = secret_at("TOKEN", path);
    assert_eq!(read(&by_number).expect("read").bytes(), b"s3cret");
}

#[test]
fn an_empty_pipe_that_was_closed_is_an_empty_secret() {
    let (theirs, ours) = io::pipe().expect("a pipe");
    drop(ours);
    let path = PathBuf::from(format!("/dev/fd/{}", theirs.as_raw_fd()));
    let pipe = secret_at("TOKEN", path);
    assert_eq!(read(&pipe).expect("read").bytes(), b"");
}

#[test]
fn a_file_is_read_anew_for_the_next_generation() {
    let scratch = Scratch::new("secret-anew");
    let file = scratch.file("token", b"old");
    assert_eq!(read(&file).expect("read").bytes(), b"old");
    scratch.file("token", b"new");
    assert_eq!(read_again(&file).expect("read").bytes(), b"new");
    std::fs::remove_file(&file.path.0).expect("removed");
    let why = read_again(&file).expect_err("removed").to_string();
    assert!(why.contains("no such file"), "{why}");
}

#[test]
fn what_cannot_be_a_secret_gets_one_line() {
    let scratch = Scratch::new("secret-wrong");
    let directory = secret_at("TOKEN", scratch.0.clone());
    let nowhere = secret_at("TOKEN", scratch.0.join("none"));
    let table = [
        (scratch.file("long", &vec![7; MOST + 1]), "longer than 1 MB"),
        (directory, "directory"),
        (nowhere, "no such file"),
    ];
    for (file, part) in table {
        let why = read(&file).expect_err(part).to_string();
        assert!(why.starts_with("cannot read the secret TOKEN from /"), "{why}");
        assert!(why.contains(part) && !why.contains('\n'), "{why}");
    }
}

#[test]
fn names_are_of_variables_and_of_their_own() {
    let check_one = |name: &str| check(&[named(name)], &["SET".into()]);
    for name in ["A", "_", "API_KEY", "a1"] {
        assert!(check_one(name).is_ok(), "{name}");
    }
    for name in ["", "1A", "A-B", "A B", "A=B", "É", "SET", "FULLSTOP_RUN"] {
        assert!(check_one(name).is_err(), "{name}");
    }
    let twice = check(&[named("A"), named("B"), named("A")], &[]).expect_err("twice");
    assert_eq!(twice.to_string(), "secret: \"A\" is given twice");
}
