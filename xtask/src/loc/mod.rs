//! `cargo xtask loc`: how many lines there are, and where. Rust alone is counted.

mod count;

use std::path::{Path, PathBuf};

use crate::Outcome;
use crate::cargo::{Metadata, root};
use crate::table::{Side, aligned};
use count::Lines;

/// The product; what stands elsewhere tests it, measures it or builds it.
const PRODUCT: &str = "crates";
/// So many of the largest files are named.
const LARGEST: usize = 10;

/// One package and its files.
struct Package {
    name: String,
    is_product: bool,
    files: Vec<(PathBuf, Lines)>,
}

pub fn run() -> Outcome<bool> {
    let root = root();
    let mut packages = Vec::new();
    for package in Metadata::ask()?.packages {
        let dir = package.manifest_path.parent().unwrap_or(&root).to_owned();
        let is_product = dir.starts_with(root.join(PRODUCT));
        let mut files = Vec::new();
        read(&dir, &root, &mut files)?;
        packages.push(Package { name: package.name, is_product, files });
    }
    print!("{}", shown(&packages));
    Ok(true)
}

/// All Rust files beneath a directory, with paths from the root on.
fn read(dir: &Path, root: &Path, files: &mut Vec<(PathBuf, Lines)>) -> Outcome<()> {
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "target") {
                read(&path, root, files)?;
            }
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let short = path.strip_prefix(root).unwrap_or(&path).to_owned();
            let lines = Lines::of(&short, &std::fs::read_to_string(&path)?);
            files.push((short, lines));
        }
    }
    Ok(())
}

fn shown(packages: &[Package]) -> String {
    let mut rows = vec![["", "files", "code", "comments", "tests"].map(ToOwned::to_owned)];
    for (title, is_product) in [("the product", true), ("tests and tooling", false)] {
        let part = || packages.iter().filter(move |package| package.is_product == is_product);
        let mut crates: Vec<_> = part().map(|package| (&package.name, &package.files)).collect();
        crates.sort_by(|one, other| one.0.cmp(other.0));
        let all = part().flat_map(|package| &package.files);
        rows.push(row(title, all));
        rows.extend(crates.into_iter().map(|(name, files)| row(&format!("  {name}"), files)));
    }
    let mut sides = [Side::Right; 5];
    sides[0] = Side::Left;
    format!("{}\nthe largest files, by code\n{}", aligned(&sides, &rows), largest(packages))
}

fn row<'a>(name: &str, files: impl IntoIterator<Item = &'a (PathBuf, Lines)>) -> [String; 5] {
    let (mut count, mut sum) = (0, Lines::default());
    for (_, lines) in files {
        count += 1;
        sum += *lines;
    }
    let [files, code, comments, tests] =
        [count, sum.code, sum.comments, sum.tests].map(|n: usize| n.to_string());
    [name.to_owned(), files, code, comments, tests]
}

fn largest(packages: &[Package]) -> String {
    let mut files: Vec<_> = packages.iter().flat_map(|package| &package.files).collect();
    files.sort_by_key(|(path, lines)| (std::cmp::Reverse(lines.code), path));
    let rows: Vec<_> = files
        .iter()
        .take(LARGEST)
        .map(|(path, lines)| [lines.code.to_string(), path.display().to_string()])
        .collect();
    aligned(&[Side::Right, Side::Left], &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, is_product: bool, sizes: &[usize]) -> Package {
        let file = |&code: &usize| {
            let path = PathBuf::from(format!("{name}/{code}.rs"));
            (path, Lines { code, comments: 1, tests: 2 })
        };
        Package { name: name.to_owned(), is_product, files: sizes.iter().map(file).collect() }
    }

    #[test]
    fn the_product_is_counted_apart() {
        let text = shown(&[package("zoo", false, &[5]), package("core", true, &[10, 20])]);
        let line = |name: &str| {
            let line = text.lines().find(|line| line.trim_start().starts_with(name));
            line.unwrap().split_whitespace().rev().take(4).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(line("the product"), "4 2 30 2");
        assert_eq!(line("core"), "4 2 30 2");
        assert_eq!(line("tests and tooling"), "2 1 5 1");
        assert!(text.contains("20  core/20.rs\n  10  core/10.rs\n   5  zoo/5.rs\n"), "{text}");
    }
}
