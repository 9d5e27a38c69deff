//! The working directory of our own processes.

/// Goes to `/`, so that no process of ours keeps a file system from being unmounted, or a
/// directory that was removed from being freed: what the caller and its command do with
/// their directories is theirs.
///
/// Whatever is found by a relative path must have been found before.
pub fn leave_callers_directory() {
    let _ = rustix::process::chdir("/");
}
