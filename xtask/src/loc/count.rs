//! What a line of Rust is.
//!
//! A line is a test, a comment or code; blank ones are not counted. The rules go by what
//! rustfmt leaves: a top-level item ends with the brace in its first column.

use std::ops::AddAssign;
use std::path::Path;

/// How the files are called that hold tests alone, wherever they are.
const TEST_FILES: [&str; 2] = ["tests.rs", "testing.rs"];
const TEST_ENDING: &str = "_tests.rs";
const TEST_DIRS: [&str; 2] = ["tests", "examples"];

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Lines {
    pub code: usize,
    /// Documentation, too.
    pub comments: usize,
    /// Whatever is in them.
    pub tests: usize,
}

impl AddAssign for Lines {
    fn add_assign(&mut self, other: Self) {
        self.code += other.code;
        self.comments += other.comments;
        self.tests += other.tests;
    }
}

impl Lines {
    pub fn of(path: &Path, text: &str) -> Self {
        let mut lines = Self::default();
        let is_test = is_test_file(path);
        let mut in_test_item = false;
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            in_test_item |= starts_test_item(line);
            if is_test || in_test_item {
                lines.tests += 1;
            } else if line.trim_start().starts_with("//") {
                lines.comments += 1;
            } else {
                lines.code += 1;
            }
            in_test_item &= !ends_item(line);
        }
        lines
    }
}

fn is_test_file(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let mut dirs = path.iter().filter_map(|dir| dir.to_str());
    TEST_FILES.contains(&name)
        || name.ends_with(TEST_ENDING)
        || dirs.any(|dir| TEST_DIRS.contains(&dir))
}

fn starts_test_item(line: &str) -> bool {
    line.starts_with("#[cfg(test)]") || line.starts_with("#[cfg(all(test,")
}

/// Of an item at the top level: its closing brace, or the end of its only line.
fn ends_item(line: &str) -> bool {
    line == "}" || (!line.starts_with([' ', '#', '/']) && line.ends_with([';', '}']))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, text: &str) -> (usize, usize, usize) {
        let Lines { code, comments, tests } = Lines::of(Path::new(path), text);
        (code, comments, tests)
    }

    #[test]
    fn code_comments_and_blank_lines() {
        let text = "//! A page.\n\nuse a::b;\n\n/// Why.\nfn f() { // not why\n    // Why.\n}\n";
        assert_eq!(count("src/a.rs", text), (3, 3, 0));
    }

    #[test]
    fn a_module_of_tests_ends_with_its_brace() {
        let text = "fn f() {}\n#[cfg(test)]\nmod tests {\n    // Why.\n    fn g() {\n    }\n}\nfn h() {}\n";
        assert_eq!(count("src/a.rs", text), (2, 0, 6));
    }

    #[test]
    fn a_module_elsewhere_ends_with_its_line() {
        let text = "#[cfg(test)]\n#[path = \"a_tests.rs\"]\nmod tests;\nmod b;\n";
        assert_eq!(count("src/a.rs", text), (1, 0, 3));
    }

    #[test]
    fn files_of_tests_are_known_by_their_names() {
        for path in ["core/tests/laws.rs", "cage/src/birth_tests.rs", "cage/src/testing.rs"] {
            assert_eq!(count(path, "// Why.\nfn f() {}\n"), (0, 0, 2), "{path}");
        }
        assert_eq!(count("xtask/src/test.rs", "fn f() {}\n"), (1, 0, 0));
    }
}
