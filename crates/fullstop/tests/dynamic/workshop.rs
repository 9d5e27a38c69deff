//! What is compiled for these tests, once for all of them. Later runs find it made.

use serde_json::Value;
use std::collections::BTreeSet;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

#[derive(Debug)]
pub struct Made {
    /// The embedder as a program.
    pub program: PathBuf,
    /// The same as a shared library.
    pub library: PathBuf,
    /// A program that loads it.
    pub loader: PathBuf,
    /// A library with a thread.
    pub early_thread: PathBuf,
}

impl Made {
    pub fn get() -> Result<&'static Made> {
        static MADE: OnceLock<std::result::Result<Made, String>> = OnceLock::new();
        MADE.get_or_init(|| make().map_err(|error| error.to_string()))
            .as_ref()
            .map_err(|why| why.as_str().into())
    }
}

fn make() -> Result<Made> {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("dynamic");
    let library = compile_library(&dir)?;
    let made = Made {
        program: dir.join("program"),
        library: dir.join("libembedder.so"),
        loader: dir.join("loader"),
        early_thread: dir.join("libearly_thread.so"),
    };
    compile(&library, "bin", &made.program)?;
    compile(&library, "cdylib", &made.library)?;
    compile_c("loader.c", &["-ldl"], &made.loader)?;
    compile_c("early_thread.c", &["-shared", "-fPIC", "-pthread"], &made.early_thread)?;
    Ok(made)
}

/// The library as it is for whoever does not link statically.
fn compile_library(dir: &Path) -> Result<Library> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
    cargo.args([
        "build",
        "--lib",
        "--locked",
        "--offline",
        "--message-format",
        "json",
        "--target-dir",
    ]);
    cargo.arg(dir);
    // It is compiled as fast as may be: nothing here computes much.
    for name in ["fullstop-core", "fullstop-store"] {
        cargo.arg("--config").arg(format!("profile.dev.package.{name}.opt-level=0"));
    }
    // Said here, these replace the workspace's.
    cargo.env_remove("CARGO_ENCODED_RUSTFLAGS").env("RUSTFLAGS", "-C debuginfo=0");
    let messages = done(&mut cargo)?;
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let files = messages.flat_map(|message| match &message["filenames"] {
        Value::Array(files) => files.iter().filter_map(Value::as_str).map(PathBuf::from).collect(),
        _ => Vec::new(),
    });
    let files: Vec<PathBuf> = files.collect();
    let itself = files.iter().find(|file| file.ends_with("libfullstop.rlib"));
    let itself = itself.ok_or("no library was made")?.clone();
    let places = files.iter().filter_map(|file| file.parent().map(Path::to_owned)).collect();
    Ok(Library { itself, places })
}

struct Library {
    itself: PathBuf,
    /// Where it and its dependencies are.
    places: BTreeSet<PathBuf>,
}

fn compile(library: &Library, kind: &str, output: &Path) -> Result<()> {
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.args(["--edition", "2024", "--crate-name", "embedder", "--crate-type", kind]);
    rustc.arg("--extern").arg(format!("fullstop={}", library.itself.display()));
    for place in &library.places {
        rustc.arg("-L").arg(format!("dependency={}", place.display()));
    }
    done(rustc.arg(source("embedder.rs")).arg("-o").arg(output)).map(drop)
}

fn compile_c(name: &str, options: &[&str], output: &Path) -> Result<()> {
    // Rust links by it, so it is there.
    done(Command::new("cc").arg(source(name)).arg("-o").arg(output).args(options)).map(drop)
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dynamic").join(name)
}

/// What a command writes.
fn done(command: &mut Command) -> Result<String> {
    let done = command.stdin(Stdio::null()).output()?;
    if !done.status.success() {
        return Err(format!("{command:?}: {}", String::from_utf8_lossy(&done.stderr)).into());
    }
    Ok(String::from_utf8(done.stdout)?)
}
