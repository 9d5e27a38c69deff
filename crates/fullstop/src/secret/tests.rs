use super::*;
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("fullstop-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("made");
        Scratch(path)
    }

    fn file(&self, name: &str, content: &[u8]) -> SecretFile {
        let path = self.0.join(name);
        std::fs::write(&path, content).expect("written");
        SecretFile { name: "TOKEN".to_owned(), path }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn named(name: &str) -> SecretFile {
    SecretFile { name: name.to_owned(), path: PathBuf::from("/dev/null") }
}

#[test]
fn a_file_is_read_whole_and_byte_by_byte() {
    let scratch = Scratch::new("secret-whole");
    for content in [&b"s3cret\n"[..], b"", b"\xff\0\n", &vec![7; MOST]] {
        let secret = scratch.file("token", content).read().expect("read");
        assert_eq!(secret.content.0.as_bytes(), content);
        assert_eq!(secret.name.0, "TOKEN");
        assert!(PathBuf::from(secret.path.0).is_absolute());
    }
}

#[test]
fn a_pipe_is_read_once() {
    let (theirs, mut ours) = io::pipe().expect("a pipe");
    ours.write_all(b"s3cret").expect("written");
    drop(ours);
    let path = PathBuf::from(format!("/dev/fd/{}", theirs.as_raw_fd()));
    let pipe = SecretFile { name: "TOKEN".to_owned(), path };
    assert_eq!(pipe.read().expect("read").content.0, "s3cret");
    let why = pipe.read_again().expect_err("again").to_string();
    assert!(why.contains("TOKEN") && why.contains("read again"), "{why}");
}

#[test]
fn a_file_is_read_anew_for_the_next_generation() {
    let scratch = Scratch::new("secret-anew");
    let file = scratch.file("token", b"old");
    assert_eq!(file.read().expect("read").content.0, "old");
    scratch.file("token", b"new");
    assert_eq!(file.read_again().expect("read").content.0, "new");
    std::fs::remove_file(&file.path).expect("removed");
    let why = file.read_again().expect_err("removed").to_string();
    assert!(why.contains("no such file"), "{why}");
}

#[test]
fn what_cannot_be_a_secret_gets_one_line() {
    let scratch = Scratch::new("secret-wrong");
    let directory = SecretFile { name: "TOKEN".to_owned(), path: scratch.0.clone() };
    let nowhere = SecretFile { name: "TOKEN".to_owned(), path: scratch.0.join("none") };
    let table = [
        (scratch.file("long", &vec![7; MOST + 1]), "longer than 1 MB"),
        (directory, "directory"),
        (nowhere, "no such file"),
    ];
    for (file, part) in table {
        let why = file.read().expect_err(part).to_string();
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
